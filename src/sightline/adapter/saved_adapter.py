"""An adapter in a folder (`adapter.json`, `adapter.safetensors`), and the checkpoints of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import torch
from msgspec import Struct, field
from msgspec.structs import replace
from safetensors.torch import load_file, save

from sightline.adapter.architectures import AdapterConfig, Lora
from sightline.adapter.attach import embedding_width, merge_lora, prefix_module, with_adapter
from sightline.adapter.examples import source_digests
from sightline.adapter.trainer import Trainer, TrainingStep, Validation
from sightline.errors import UserError
from sightline.formats.files import AtomicFile, write_atomically
from sightline.models.local.load import Loaded, parameters_by_dtype, refusal_text
from sightline.models.model_files import digest_of_files
from sightline.text import UNDECODABLE, fault
from sightline.types import Request

METADATA, WEIGHTS = "adapter.json", "adapter.safetensors"


class AdapterMetadata(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of adapter.json.

    `base` is the identity of the model that it was trained on and `parameters` that model's parameter count.
    `training` holds the settings of the training. `images` are the digests of all training images.
    """

    adapter: AdapterConfig
    base: str
    parameters: int
    training: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[str, ...] = ()


class SavedAdapter:
    """An adapter on disk, which can be attached to the model that it was trained on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metadata = read_metadata(folder)
        if not (folder / WEIGHTS).is_file():
            raise UserError(f"lacks {WEIGHTS}", file=folder)
        self._training_images = frozenset(self.metadata.images)
        self.identity = digest_of_files(folder, {Path(METADATA), Path(WEIGHTS)})

    @property
    def parameters(self) -> int:
        return parameters_by_dtype(self.folder / WEIGHTS).total()

    @property
    def memory(self) -> int:
        """The size of the weights in bytes."""
        return sum(tensor.nbytes for tensor in read_weights(self.folder).values())

    def check_base(self, base: str) -> None:
        """Check that the adapter fits a model; the number type may differ."""
        trained = self.metadata.base
        if base.split()[:2] != trained.split()[:2]:
            raise UserError(
                "this adapter was trained on another model",
                file=self.folder / METADATA,
                field="base",
                found=trained,
                expected=f"{base!r}, the identity of the model: give the model of the training",
            )
        template, expected = (identity.partition(" template ")[2] or "auto" for identity in (base, trained))
        if template != expected:
            raise UserError(
                "this adapter was trained with another template",
                file=self.folder,
                found=template,
                expected=f"--model-arg template={expected}",
            )

    def refusal(self, request: Request) -> str:
        """Explain why a request must not be sent: it contains a training image."""
        used = [file.path for file in request.images.values() if file.digest in self._training_images]
        return refusal_text(used[0], str(self.folder)) if used else ""

    def training_overlap(self, folder: Path) -> str:
        """Warn about data made from training images, even if the files differ; '' for none."""
        # A manifest of another tool says nothing about sources.
        with suppress(UserError):
            sources = set(source_digests(folder).values())
            if shared := len(sources & self._training_images):
                return (
                    f"{shared:,} of the {len(sources):,} images that {folder} was made from are training"
                    f" images of {self.folder}: this is not a test on unseen images"
                )
        return ""

    def attach(self, loaded: Loaded) -> Loaded:
        config, file = self.metadata.adapter, self.folder / WEIGHTS
        saved = read_weights(self.folder)
        if not isinstance(config, Lora):
            # The metadata may declare more than any memory holds: nothing is allocated yet.
            with torch.device("meta"):
                declared = prefix_module(config, embedding_width(loaded))
            refuse_other_shapes(saved, dict(declared.named_parameters()), file)
        adapted = with_adapter(loaded, config)
        copy_weights(saved, adapted.weights, file)
        if isinstance(config, Lora):
            merge_lora(adapted.loaded)
        return adapted.loaded


def copy_weights(
    saved: Mapping[str, torch.Tensor], weights: Mapping[str, torch.nn.Parameter], file: Path
) -> None:
    refuse_other_shapes(saved, weights, file)
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(saved[name])


def refuse_other_shapes(
    saved: Mapping[str, torch.Tensor], weights: Mapping[str, torch.nn.Parameter], file: Path
) -> None:
    expected = {name: tuple(weight.shape) for name, weight in weights.items()}
    shapes = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    if expected != shapes:
        wrong = sorted(dict(expected.items() ^ shapes.items()))
        raise UserError(f"the weights do not fit {METADATA}", file=file, found=wrong[0])


def save_adapter(folder: Path, metadata: AdapterMetadata, weights: Mapping[str, torch.nn.Parameter]) -> None:
    """Write an adapter; the metadata come last, so that a folder with metadata is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}
    write_atomically(folder / WEIGHTS, [save(tensors)])
    write_atomically(folder / METADATA, [msgspec.json.format(msgspec.json.encode(metadata)), b"\n"])


def read_metadata(folder: Path) -> AdapterMetadata:
    file = folder / METADATA
    try:
        return msgspec.json.decode(file.read_bytes(), type=AdapterMetadata)
    except FileNotFoundError:
        if (folder / STATE).exists():
            raise UserError(
                "contains an unfinished training",
                file=folder,
                expected="the same `sightline adapter train` command again, which continues it",
            ) from None
        raise UserError(
            f"lacks {METADATA}", file=folder, expected="a folder written by `sightline adapter train`"
        ) from None
    except (OSError, *UNDECODABLE) as error:
        raise UserError(f"cannot be read ({fault(error)})", file=file) from None


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(folder / WEIGHTS)
    except FileNotFoundError:
        raise UserError(f"lacks {WEIGHTS}", file=folder) from None
    # A damaged header can name any type and any size.
    except Exception as error:
        raise UserError(f"cannot be read ({error})", file=folder / WEIGHTS) from None


# -- Checkpoints of a training on disk: `state.pt` and `log.jsonl`, each replaced atomically

STATE, LOG = "state.pt", "log.jsonl"


class LogEntry(Struct, frozen=True, omit_defaults=True):
    """A line of log.jsonl: a step (0: the model without the adapter), with the validation after it."""

    step: int
    loss: float | None = None
    disagreement: float | None = None
    validation: Validation | None = None


class TrainingCheckpoint:
    """The checkpoint of one training in a folder, with its log."""

    def __init__(self, folder: Path, training: Mapping[str, Any]) -> None:
        self._folder = folder
        self.training = dict(training)
        self.entries: list[LogEntry] = []

    def read(self) -> dict[str, Any] | None:
        """Read the trainer's state at the last checkpoint, and its log; None without a checkpoint."""
        file = self._folder / STATE
        if not file.exists():
            return None
        try:
            content = torch.load(file, map_location="cpu", weights_only=True)
            training, state = dict(content["training"]), dict(content["state"])
            self.entries = msgspec.convert(content["entries"], list[LogEntry])
            names = sorted({*training, *self.training})
        # A file that is not a checkpoint can fail with any exception of pickle.
        except Exception as error:
            raise self._broken(error) from None
        for name in names:
            if training.get(name) != self.training.get(name):
                raise UserError(
                    "contains the checkpoint of another training",
                    file=self._folder,
                    field=name,
                    found=training.get(name),
                    expected=f"{self.training.get(name)}, or another --out",
                )
        return state

    def restore(self, trainer: Trainer, state: Mapping[str, Any]) -> None:
        """Continue a training from the state that `read` returned."""
        try:
            trainer.restore(state)
        # Whatever is wrong in it: names, shapes, types.
        except Exception as error:
            raise self._broken(error) from None

    def write(self, state: Mapping[str, Any]) -> None:
        entries = msgspec.to_builtins(self.entries)
        with AtomicFile(self._folder / STATE) as file:
            content = {"training": self.training, "state": dict(state), "entries": entries}
            torch.save(content, cast(IO[bytes], file))
        self._write_log()

    def begin(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot be created ({error.strerror})", file=self._folder, expected="another --out"
            ) from None
        self.entries = [LogEntry(0)]

    def add_step(self, step: TrainingStep) -> None:
        self.entries.append(LogEntry(step.number, step.loss, step.disagreement))

    def add_validation(self, validation: Validation) -> None:
        self.entries[-1] = replace(self.entries[-1], validation=validation)

    def lacks_validation(self, every: int) -> bool:
        """Tell whether the validation after the last step is missing because it failed."""
        last = self.entries[-1]
        return last.step > 0 and last.step % every == 0 and last.validation is None

    def finish(self) -> None:
        self._write_log()
        (self._folder / STATE).unlink(missing_ok=True)

    def validations(self) -> Sequence[Validation]:
        return [entry.validation for entry in self.entries if entry.validation is not None]

    def _broken(self, error: Exception) -> UserError:
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        return UserError(
            f"is not a checkpoint of this training ({why})",
            file=self._folder / STATE,
            expected="another --out",
        )

    def _write_log(self) -> None:
        encode = msgspec.json.Encoder().encode
        write_atomically(self._folder / LOG, [encode(entry) + b"\n" for entry in self.entries])
