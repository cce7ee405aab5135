"""An adapter in a folder: what it is, on which model it was trained and how, and its weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct, field
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from sightline.adapter.attach import attach, merge
from sightline.adapter.checkpoint import STATE
from sightline.adapter.examples import sources_of
from sightline.adapter.kinds import Kind, Lora
from sightline.errors import UserError
from sightline.formats.files import write_atomically
from sightline.models.local.headers import parameters
from sightline.models.local.load import Loaded
from sightline.models.weights import digest_of
from sightline.types import Request

SETTINGS, WEIGHTS = "adapter.json", "adapter.safetensors"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """adapter.json. `base` is the identity of the model it was trained on, `parameters` how many numbers that
    has, `training` how; `images` are the digests of all images that were shown in training."""

    adapter: Kind
    base: str
    parameters: int
    training: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[str, ...] = ()


class SavedAdapter:
    """An adapter to be attached to the model that it was trained on."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError where the folder holds no adapter."""
        self.folder = folder
        self.settings = read_settings(folder)
        if not (folder / WEIGHTS).is_file():
            raise UserError(f"lacks {WEIGHTS}", file=folder)
        self._known = frozenset(self.settings.images)
        self.identity = digest_of(folder, {Path(SETTINGS), Path(WEIGHTS)})

    @property
    def parameters(self) -> int:
        """How many numbers it holds."""
        return parameters(self.folder / WEIGHTS)

    @property
    def memory(self) -> int:
        """The bytes that its weights take."""
        return sum(tensor.nbytes for tensor in read_weights(self.folder).values())

    def refuse_other(self, base: str) -> None:
        """Raise UserError where it was trained on another model, or on other prompts made of the same
        questions; another number type is the same model."""
        trained = self.settings.base
        if base.split()[:2] != trained.split()[:2]:
            raise UserError(
                "this adapter was trained on another model", file=self.folder, found=base, expected=trained
            )
        here, there = (identity.partition(" template ")[2] or "auto" for identity in (base, trained))
        if here != there:
            raise UserError(
                "this adapter was trained with another template",
                file=self.folder,
                found=here,
                expected=f"--model-arg template={there}",
            )

    def refusal(self, request: Request) -> str:
        """Why this must not be asked of it: an image was shown to it in training; else nothing."""
        known = [file.path for file in request.images.values() if file.digest in self._known]
        return f"{known[0]}: {self.folder} was trained on this image" if known else ""

    def caution(self, folder: Path) -> str:
        """What to tell where a builder made the data in a folder from images that training showed too,
        under whatever files; else nothing."""
        # Data may have a manifest that is none of a builder: nothing is known of its sources then.
        with suppress(UserError):
            sources = set(sources_of(folder).values())
            if shared := len(sources & self._known):
                return (
                    f"{shared:,} of the {len(sources):,} images that {folder} was made from were shown to"
                    f" {self.folder} in training: with it, this is no test on images that it has not seen"
                )
        return ""

    def attach(self, loaded: Loaded) -> Loaded:
        """The model with it. Raises UserError where its weights do not fit its settings."""
        made = attach(loaded, self.settings.adapter)
        fill(made.weights, read_weights(self.folder), self.folder / WEIGHTS)
        if isinstance(self.settings.adapter, Lora):
            merge(made.loaded)
        return made.loaded


def fill(weights: Mapping[str, torch.nn.Parameter], saved: Mapping[str, torch.Tensor], file: Path) -> None:
    """Put saved numbers into an adapter's weights. Raises UserError where they are not its own."""
    wanted = {name: tuple(weight.shape) for name, weight in weights.items()}
    found = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    if wanted != found:
        odd = sorted(dict(wanted.items() ^ found.items()))
        raise UserError("its weights do not belong to its settings", file=file, found=odd[0])
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(saved[name])


def save_adapter(folder: Path, settings: Settings, weights: Mapping[str, torch.nn.Parameter]) -> None:
    """Write an adapter, each file whole or not at all; the settings come last."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}
    write_atomically(folder / WEIGHTS, [save(plain)])
    write_atomically(folder / SETTINGS, [msgspec.json.format(msgspec.json.encode(settings)), b"\n"])


def read_settings(folder: Path) -> Settings:
    """adapter.json of a folder. Raises UserError."""
    file = folder / SETTINGS
    try:
        return msgspec.json.decode(file.read_bytes(), type=Settings)
    except FileNotFoundError:
        if (folder / STATE).exists():
            raise UserError(
                "holds a training that is not at its end",
                file=folder,
                expected="the same `sightline adapter train` again, which goes on",
            ) from None
        raise UserError(
            f"lacks {SETTINGS}", file=folder, expected="a folder that `sightline adapter train` made"
        ) from None
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"cannot be read ({error})", file=file) from None


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The weights in a folder. Raises UserError."""
    try:
        return load_file(folder / WEIGHTS)
    except FileNotFoundError:
        raise UserError(f"lacks {WEIGHTS}", file=folder) from None
    except (OSError, SafetensorError) as error:
        raise UserError(f"cannot be read ({error})", file=folder / WEIGHTS) from None
