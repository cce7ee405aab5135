"""An adapter on a loaded model, at one place: the embeddings that its language model is given."""

from __future__ import annotations

from collections.abc import Mapping
from threading import local
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace
from torch import Tensor

from sightline.adapter.kinds import Kind, Lora
from sightline.adapter.module import PrefixModule, prefix_module
from sightline.errors import UserError
from sightline.models.local.attachment import entrance, language_model
from sightline.models.local.load import Loaded


class PromptPrefix:
    """Vectors put before prompts by a hook on the part that reads them.

    Each row has room for them in front; positions, masks and caches are then the model's own affair.
    """

    def __init__(self, module: PrefixModule, reads: Any) -> None:
        self.module = module
        self.length = module.length
        # Two threads may each have a batch in work.
        self._armed = local()
        reads.register_forward_pre_hook(self._put, with_kwargs=True)

    def arm(self, seen: Tensor) -> None:
        """Put them into the next call. `seen` (B, T) is 1 where a row's room and prompt are; what follows
        behind T has no part in the vectors."""
        self._armed.seen = seen.bool()

    def _put(self, _: Any, args: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        seen: Tensor | None = getattr(self._armed, "seen", None)
        self._armed.seen = None
        if seen is None or self.length == 0:
            return None
        embeddings: Tensor | None = given.get("inputs_embeds")
        if embeddings is None:
            raise UserError("an adapter cannot be attached: the language model is given no embeddings")
        room = seen & (seen.cumsum(1) <= self.length)
        # In the precision that answers are made with: training must not know another prefix than they do.
        with torch.autocast(embeddings.device.type, enabled=False):
            vectors = self.module(embeddings[:, : seen.shape[1]].to(_dtype(self.module)), seen & ~room)
        everywhere = torch.nn.functional.pad(room, (0, embeddings.shape[1] - room.shape[1]))[..., None]
        placed = embeddings.masked_scatter(everywhere, vectors.to(embeddings.dtype))
        return args, {**given, "inputs_embeds": placed}


class Attached(NamedTuple):
    """A model with an adapter, and the adapter's weights by name: nothing else of it can be trained."""

    loaded: Loaded
    weights: Mapping[str, torch.nn.Parameter]


def attach(loaded: Loaded, kind: Kind) -> Attached:
    """The model with a new adapter, its weights by torch's own dice.

    Raises UserError where the model has no language model of its own, or peft is missing for LoRA.
    """
    reads = entrance(loaded)
    if reads is None:
        raise UserError(
            f"an adapter cannot be attached to {loaded.kind}: it has no language model of its own"
        )
    loaded.model.requires_grad_(False)
    if isinstance(kind, Lora):
        return Attached(loaded, _with_lora(loaded, kind))
    module = prefix_module(kind, width_of(loaded)).to(loaded.device)
    return Attached(replace(loaded, before=PromptPrefix(module, reads)), dict(module.named_parameters()))


def merge(loaded: Loaded) -> None:
    """Put LoRA's changes into the weights that they change: answers then cost nothing more (Hu et al. 2021,
    4.1), and nothing is left to be trained."""
    from peft.tuners.lora import LoraLayer

    for parent in list(loaded.model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, LoraLayer):
                layer.merge()
                setattr(parent, name, layer.get_base_layer())


def width_of(loaded: Loaded) -> int:
    """How wide the language model's input embeddings are."""
    return int(loaded.model.get_input_embeddings().weight.shape[1])


def _with_lora(loaded: Loaded, kind: Lora) -> dict[str, torch.nn.Parameter]:
    try:
        import peft
    except ImportError:
        raise UserError("LoRA needs peft", expected="pip install 'sightline[adapter]'") from None
    config = peft.LoraConfig(r=kind.rank, lora_alpha=kind.alpha, target_modules="all-linear")
    peft.inject_adapter_in_model(config, language_model(loaded))
    own = {name: weight for name, weight in loaded.model.named_parameters() if weight.requires_grad}
    for weight in own.values():
        # In half the precision a step is lost, or is no number; the layers convert what they are given.
        weight.data = weight.data.float()
    return own


def _dtype(module: torch.nn.Module) -> torch.dtype:
    return next(module.parameters()).dtype
