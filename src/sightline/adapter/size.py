"""The size of an adapter relative to its model, computed from the model's configuration alone."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct

from sightline.adapter.architectures import AdapterConfig
from sightline.adapter.attach import embedding_width, with_adapter
from sightline.errors import UserError
from sightline.models.local.load import Loaded
from sightline.models.local.processor import first_line, silent


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
