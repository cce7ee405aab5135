"""What can be attached to a loaded model: something that goes before its prompts, or changes its layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from sightline.models.local.load import Loaded
from sightline.types import Request


class Attachment(Protocol):
    """A trained adapter. `identity` is a part of whose answers these are."""

    identity: str

    def refuse_other(self, base: str) -> None:
        """Raise UserError where it was trained on a model of another identity."""

    def refusal(self, request: Request) -> str:
        """Why this must not be asked of it: an image was shown to it in training; else nothing."""

    def caution(self, folder: Path) -> str:
        """What to tell where data in a folder came of images of its training; else nothing."""

    def attach(self, loaded: Loaded) -> Loaded:
        """The model with it. Raises UserError where it does not fit."""


def language_model(loaded: Loaded) -> Any:
    """The language model within a model, None where there is none of its own."""
    for whole in (loaded.model, loaded.model.base_model):
        for name in ("language_model", "text_model"):
            if (found := getattr(whole, name, None)) is not None:
                return found
    return None


def entrance(loaded: Loaded) -> Any:
    """The part that is given the embeddings of a whole prompt, images among them: the language model, or
    its encoder where it has one; None where there is no such part."""
    found = language_model(loaded)
    return found.get_encoder() if loaded.is_seq2seq and found is not None else found
