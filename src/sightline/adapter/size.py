"""How large an adapter is beside a model, from the model's configuration alone."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct

from sightline.adapter.attach import attach, width_of
from sightline.adapter.kinds import Kind
from sightline.errors import UserError
from sightline.models.local.load import Loaded
from sightline.models.local.processor import first_line, silent


class Size(Struct, frozen=True):
    """Parameters of a model and of an adapter, and how wide the embeddings are that it is put before."""

    architecture: str
    width: int
    model: int
    adapter: int


def size_of(folder: Path, kind: Kind) -> Size:
    """The size of an adapter for the model whose config.json lies in a folder; no weights are read.

    Raises UserError where that is no configuration of an image-text-to-text model.
    """
    library: Any = import_module("transformers")
    try:
        config = library.AutoConfig.from_pretrained(str(folder), local_files_only=True)
        with silent(), torch.device("meta"):
            model = library.AutoModelForImageTextToText.from_config(config)
    # A foreign folder fails in as many ways as there are libraries below.
    except Exception as error:
        raise UserError(
            "holds no configuration of an image-text-to-text model",
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
    whole = sum(weight.numel() for weight in model.parameters())
    with torch.device("meta"):
        own = sum(weight.numel() for weight in attach(loaded, kind).weights.values())
    return Size(type(model).__name__, width_of(loaded), whole, own)
