"""Checkpoints of a training on disk: `state.pt` and `log.jsonl`, each replaced atomically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import torch
from msgspec import Struct
from msgspec.structs import replace

from sightline.adapter.trainer import Trainer, TrainingStep
from sightline.adapter.validate import Validation
from sightline.errors import UserError
from sightline.formats.atomic_file import AtomicFile
from sightline.formats.files import write_atomically

STATE, LOG = "state.pt", "log.jsonl"


class LogEntry(Struct, frozen=True, omit_defaults=True):
    """A line of log.jsonl: a step, with the validation after it if there was one.

    Step 0 is the model without the adapter.
    """

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
        """Read the last checkpoint, and the log that belongs to it.

        Returns:
            The trainer's state, or None if there is no checkpoint.
        """
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
        """Write a checkpoint, then the log."""
        entries = msgspec.to_builtins(self.entries)
        with AtomicFile(self._folder / STATE) as file:
            content = {"training": self.training, "state": dict(state), "entries": entries}
            torch.save(content, cast(IO[bytes], file))
        self._write_log()

    def begin(self) -> None:
        """Create the folder and start the log with step 0."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot be created ({error.strerror})", file=self._folder, expected="another --out"
            ) from None
        self.entries = [LogEntry(0)]

    def add_step(self, step: TrainingStep) -> None:
        """Add a finished step to the log."""
        self.entries.append(LogEntry(step.number, step.loss, step.disagreement))

    def add_validation(self, validation: Validation | None) -> None:
        """Add a validation to the last step of the log.

        Args:
            validation: The validation, or None if there was none.
        """
        if validation is not None:
            self.entries[-1] = replace(self.entries[-1], validation=validation)

    def lacks_validation(self, every: int) -> bool:
        """Tell whether the validation after the last step is missing because it failed."""
        last = self.entries[-1]
        return last.step > 0 and last.step % every == 0 and last.validation is None

    def finish(self) -> None:
        """End the training: write the log and remove the checkpoint."""
        self._write_log()
        (self._folder / STATE).unlink(missing_ok=True)

    def validations(self) -> Sequence[Validation]:
        """List all validations so far."""
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
