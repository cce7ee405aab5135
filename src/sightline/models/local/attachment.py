"""The interface of adapters, which put vectors before prompts or change layers of a loaded model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from sightline.models.local.load import Loaded
from sightline.types import Request


class Attachment(Protocol):
    """A trained adapter; `identity` becomes part of the model's identity."""

    identity: str

    def check_base(self, base: str) -> None:
        """Check that the adapter was trained on this model."""

    def refusal(self, request: Request) -> str:
        """Check whether a request may be sent."""

    def training_overlap(self, folder: Path) -> str:
        """Check whether data was made from images of the training."""

    def attach(self, loaded: Loaded) -> Loaded:
        """Attach the adapter."""


def language_model(loaded: Loaded) -> Any:
    """Find the language model within a model.

    Returns:
        The module, None if there is no separate one.
    """
    for parent in (loaded.model, loaded.model.base_model):
        for name in ("language_model", "text_model"):
            if (module := getattr(parent, name, None)) is not None:
                return module
    return None


def embedding_receiver(loaded: Loaded) -> Any:
    """Find the part that receives the embeddings of a whole prompt, images included.

    Returns:
        The language model, or its encoder if it has one; None if there is no such part.
    """
    module = language_model(loaded)
    return module.get_encoder() if loaded.is_seq2seq and module is not None else module
