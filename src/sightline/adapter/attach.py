"""Attaches an adapter to a loaded model, at the embeddings that its language model gets; counts its size."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from threading import local
from typing import Any, NamedTuple, cast

import torch
from msgspec import Struct
from msgspec.structs import replace
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sightline.adapter.architectures import AdapterConfig, BiLstm, Lora, Prefix
from sightline.errors import UserError
from sightline.models.local.load import Loaded, first_line, silent
from sightline.models.local.model import embedding_receiver, language_model


class PromptPrefix:
    """Inserts the vectors of a prefix module in front of prompts, by a hook on the language model.

    Each row must begin with `length` placeholder tokens. Positions, masks and caches then need no change.
    """

    def __init__(self, module: PrefixModule, receiver: Any) -> None:
        self.module = module
        self.length = module.length
        # Two threads may each run a batch.
        self._active = local()
        receiver.register_forward_pre_hook(self._insert, with_kwargs=True)

    def activate(self, prompt_mask: Tensor) -> None:
        """Insert vectors in the next call of the model in this thread.

        `prompt_mask`: shape (B, T), 1 for the placeholders and the prompt of a row. Tokens after T do not
        influence the vectors.
        """
        self._active.prompt_mask = prompt_mask.bool()

    def _insert(self, _: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        mask: Tensor | None = getattr(self._active, "prompt_mask", None)
        self._active.prompt_mask = None
        if mask is None or self.length == 0:
            return None
        embeddings: Tensor | None = kwargs.get("inputs_embeds")
        if embeddings is None:
            raise UserError("an adapter cannot be adapted: the language model receives no embeddings")
        placeholders = mask & (mask.cumsum(1) <= self.length)
        # Training must compute the vectors in the same precision as inference.
        with torch.autocast(embeddings.device.type, enabled=False):
            inputs = embeddings[:, : mask.shape[1]].to(next(self.module.parameters()).dtype)
            vectors = self.module(inputs, mask & ~placeholders)
        behind = embeddings.shape[1] - placeholders.shape[1]
        positions = torch.nn.functional.pad(placeholders, (0, behind))[..., None]
        inserted = embeddings.masked_scatter(positions, vectors.to(embeddings.dtype))
        return args, {**kwargs, "inputs_embeds": inserted}


class AdaptedModel(NamedTuple):
    """A model with an adapter, and the adapter's weights by name. All other weights are frozen."""

    loaded: Loaded
    weights: Mapping[str, torch.nn.Parameter]


def with_adapter(loaded: Loaded, config: AdapterConfig) -> AdaptedModel:
    """Attach a new adapter with weights from torch's global random generator."""
    receiver = embedding_receiver(loaded)
    if receiver is None:
        raise UserError(f"an adapter cannot be attached to {loaded.kind}: it has no separate language model")
    loaded.model.requires_grad_(False)
    if isinstance(config, Lora):
        return AdaptedModel(loaded, _with_lora(loaded, config))
    module = prefix_module(config, embedding_width(loaded)).to(loaded.device)
    return AdaptedModel(
        replace(loaded, prefix_vectors=PromptPrefix(module, receiver)), dict(module.named_parameters())
    )


def merge_lora(loaded: Loaded) -> None:
    """Merge LoRA's updates into the weights that they change, in place (Hu et al. 2021, 4.1).

    Answers then cost no extra time, and no trainable weight remains.
    """
    from peft.tuners.lora import LoraLayer

    for parent in list(loaded.model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, LoraLayer):
                layer.merge()
                setattr(parent, name, layer.get_base_layer())


def embedding_width(loaded: Loaded) -> int:
    return int(loaded.model.get_input_embeddings().weight.shape[1])


def _with_lora(loaded: Loaded, lora: Lora) -> dict[str, torch.nn.Parameter]:
    try:
        import peft
    except ImportError:
        raise UserError("LoRA needs peft", expected="pip install 'sightline[adapter]'") from None
    config = peft.LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules="all-linear")
    peft.inject_adapter_in_model(config, language_model(loaded))
    trainable = {name: weight for name, weight in loaded.model.named_parameters() if weight.requires_grad}
    for weight in trainable.values():
        # In half precision small updates vanish or overflow. The layers convert their inputs.
        weight.data = weight.data.float()
    return trainable


# -- The size of an adapter relative to its model, computed from the model's configuration alone


class AdapterSize(Struct, frozen=True):
    """The parameter counts of a model and of an adapter, and the width of the model's embeddings."""

    architecture: str
    width: int
    model: int
    adapter: int


def adapter_size(folder: Path, adapter: AdapterConfig) -> AdapterSize:
    """Compute the size of an adapter without reading any weights."""
    library: Any = import_module("transformers")
    try:
        config = library.AutoConfig.from_pretrained(str(folder), local_files_only=True)
        with silent(), torch.device("meta"):
            model = library.AutoModelForImageTextToText.from_config(config)
    # A configuration from elsewhere can fail with any exception of several libraries.
    except Exception as error:
        raise UserError(
            "contains no configuration of an image-text-to-text model",
            file=folder,
            found=f"{type(error).__name__}: {first_line(error)}",
        ) from None
    loaded = Loaded(
        kind=config.model_type,
        model=model,
        processor=None,
        device=torch.device("meta"),
        positions=None,
        ends=frozenset(),
        pad=0,
        is_seq2seq=bool(getattr(config.get_text_config(), "is_encoder_decoder", False)),
    )
    model_count = sum(weight.numel() for weight in model.parameters())
    with torch.device("meta"):
        adapter_count = sum(weight.numel() for weight in with_adapter(loaded, adapter).weights.values())
    return AdapterSize(type(model).__name__, embedding_width(loaded), model_count, adapter_count)


# -- The modules that compute the prefix vectors of a prompt

INITIAL_STD = 0.02
"""The standard deviation of free vectors before training: that of the embeddings of most models."""


class BiLstmPrefix(nn.Module):
    """The adapter of MM-R3 (5.1): Bi-LSTM, max-pooling over the tokens, MLP.

    The paper gives the number of layers, their width and the size of the prefix. The MLP follows Newman et
    al. 2022, on whom the paper builds: one hidden layer as wide as its input, with ReLU.
    """

    def __init__(self, config: BiLstm, width: int) -> None:
        super().__init__()
        hidden = config.hidden or width
        self.length, self.width = config.prefix, width
        self.lstm = nn.LSTM(width, hidden, config.layers, batch_first=True, bidirectional=True)
        self.mlp = nn.Sequential(
            nn.Linear(2 * hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, config.prefix * width)
        )

    def forward(self, embeddings: Tensor, prompt_mask: Tensor) -> Tensor:
        """Compute the prefix of each row.

        Args:
            embeddings: Shape (B, T, width).
            prompt_mask: Shape (B, T), bool: True where a token belongs to the prompt, at least once in each
                row. The other embeddings do not influence the result.

        Returns:
            The prefix vectors, shape (B, prefix, width).
        """
        lengths = prompt_mask.sum(1)
        order = (~prompt_mask).to(torch.uint8).argsort(dim=1, stable=True)[:, : int(lengths.max())]
        prompts = embeddings.gather(1, order[..., None].expand(-1, -1, self.width))
        packed = pack_padded_sequence(prompts, lengths.cpu(), batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=float("-inf"))
        return cast(Tensor, self.mlp(hidden.amax(1))).view(-1, self.length, self.width)


class FreePrefix(nn.Module):
    """The same trainable vectors for every prompt."""

    def __init__(self, config: Prefix, width: int) -> None:
        super().__init__()
        self.length, self.width = config.prefix, width
        self.vectors = nn.Parameter(torch.randn(config.prefix, width) * INITIAL_STD)

    def forward(self, embeddings: Tensor, prompt_mask: Tensor) -> Tensor:
        return self.vectors.expand(len(embeddings), -1, -1)


PrefixModule = BiLstmPrefix | FreePrefix


def prefix_module(config: BiLstm | Prefix, width: int) -> PrefixModule:
    """Create a module with new weights from torch's global random generator."""
    return BiLstmPrefix(config, width) if isinstance(config, BiLstm) else FreePrefix(config, width)
