"""The state of a training on disk, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import torch
from msgspec import Struct
from msgspec.structs import replace

from sightline.adapter.train import Step
from sightline.adapter.validate import Validation
from sightline.errors import UserError
from sightline.formats.files import write_atomically
from sightline.formats.stream import WholeFile

STATE, LOG = "state.pt", "log.jsonl"


class Entry(Struct, frozen=True, omit_defaults=True):
    """A line of log.jsonl: a step, and the validation after it where there was one. Step 0 is the model
    without the adapter."""

    step: int
    loss: float | None = None
    apart: float | None = None
    validation: Validation | None = None


class Checkpoint:
    """The state of one training in a folder, and its log."""

    def __init__(self, folder: Path, training: Mapping[str, Any]) -> None:
        """`training` is all that decides what is learned: another is refused in the same folder."""
        self._folder = folder
        self.training = dict(training)
        self.entries: list[Entry] = []

    def read(self) -> dict[str, Any] | None:
        """The state that was written last, None where there is none.

        Raises UserError where it is broken, or belongs to another training.
        """
        file = self._folder / STATE
        if not file.exists():
            return None
        try:
            found = torch.load(file, map_location="cpu", weights_only=True)
            training, state, entries = found["training"], found["state"], found["entries"]
        # A file that is no checkpoint fails in as many ways as pickles can.
        except Exception as error:
            raise UserError(f"is no checkpoint ({error})", file=file, expected="another --out") from None
        for name in sorted({*training, *self.training}):
            if training.get(name) != self.training.get(name):
                raise UserError(
                    "another training was begun here",
                    file=self._folder,
                    field=name,
                    found=training.get(name),
                    expected=f"{self.training.get(name)}, or another --out",
                )
        self.entries = msgspec.convert(entries, list[Entry])
        return dict(state)

    def write(self, state: Mapping[str, Any]) -> None:
        """Write the state, then the log."""
        entries = msgspec.to_builtins(self.entries)
        with WholeFile(self._folder / STATE) as file:
            content = {"training": self.training, "state": dict(state), "entries": entries}
            torch.save(content, cast(IO[bytes], file))
        self._write_log()

    def begin(self) -> None:
        """Make the folder, and note that nothing is done yet: step 0 is the model without the adapter.

        Raises UserError where the folder cannot be made.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot be made ({error.strerror})", file=self._folder, expected="another --out"
            ) from None
        self.entries = [Entry(0)]

    def done(self, step: Step) -> None:
        """Note a step that was done."""
        self.entries.append(Entry(step.number, step.loss, step.apart))

    def validated(self, validation: Validation | None) -> None:
        """Note what the last step came to."""
        if validation is not None:
            self.entries[-1] = replace(self.entries[-1], validation=validation)

    def lacks_validation(self, every: int) -> bool:
        """Whether the validation failed that belongs to the last step."""
        last = self.entries[-1]
        return last.step > 0 and last.step % every == 0 and last.validation is None

    def end(self) -> None:
        """The training is over: what is left is its log, with the last validation."""
        self._write_log()
        (self._folder / STATE).unlink(missing_ok=True)

    def validations(self) -> Sequence[Validation]:
        """All validations so far, the model without the adapter first."""
        return [entry.validation for entry in self.entries if entry.validation is not None]

    def _write_log(self) -> None:
        encode = msgspec.json.Encoder().encode
        write_atomically(self._folder / LOG, [encode(entry) + b"\n" for entry in self.entries])
