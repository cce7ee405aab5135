"""The committed results of the adapter study: one small file for each unit, with the values of each group.

A string of base-36 digits holds a count for each group of the test, in the order of the data: right answers,
consistent pairs, equal pairs, and both for the answers with the label that is left out of the training. The
mean similarity of a group's pairs takes two digits: thousandths, plus 200.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.formats.files import write_atomically
from training.adapter.design import Loss, Sizes, Training

RESULTS = Path(__file__).with_name("results")
DESIGN, RATES_FILE = "design.json", "rates.json"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SIMILARITY_OFFSET = 200
METRICS = ("acc", "con", "s_c", "agree")

Floats = NDArray[np.float64]
_Result = TypeVar("_Result", bound=Struct)


class TaskValues(Struct, frozen=True):
    """The counts of every group of one task, as strings of digits (see the module)."""

    acc: str
    con: str
    agree: str
    s_c: str
    label_acc: str
    label_con: str

    def values(self, metric: str, size: int) -> Floats:
        """A metric of every group, 0-1.

        Args:
            metric: One of `METRICS`.
            size: The number of answers of a group.

        Returns:
            The values, shape (groups,).
        """
        if metric == "s_c":
            return (decode(self.s_c, 2) - SIMILARITY_OFFSET) / 1000
        most = size if metric == "acc" else size * (size - 1) // 2
        return decode(getattr(self, metric)) / most


class TaskShape(Struct, frozen=True):
    """What all units share of a task: the answers of a group, and how many have the left-out label."""

    size: int
    labelled: str


class Design(Struct, frozen=True):
    """The design of the study to which results belong: the sizes, and the shape of each task."""

    sizes: Sizes
    shapes: Mapping[str, TaskShape]


class UnitResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a test.

    Attributes:
        tasks: The values of each task, and of `restyling, one word`.
        kind, loss, data, seed, rate: The training; '' and 0 without an adapter.
        steps: The number of steps of the training, fewer if it diverged.
        parameters: The number of the adapter's parameters.
        training_seconds: Processor time of the training.
        test_seconds: Processor time of the test.
        tokens: The mean number of tokens of an answer for each entry of `tasks`.
    """

    tasks: Mapping[str, TaskValues]
    kind: str = ""
    loss: Loss = "ce"
    data: Training = "parted"
    seed: int = 0
    rate: float = 0
    steps: int = 0
    parameters: int = 0
    training_seconds: float = 0
    test_seconds: float = 0
    tokens: Mapping[str, float] = msgspec.field(default_factory=dict)


class Held(Struct, frozen=True):
    """The result of a validation on held-out groups; the shares run from 0 to 1."""

    loss: float
    acc: float
    agree: float

    @property
    def score(self) -> float:
        """The criterion for the learning rate: equal and right answers. con accepts red for blue."""
        return self.acc + self.agree


class RateResult(Struct, frozen=True):
    """The validation after a training of the search; None if it diverged."""

    kind: str
    loss: Loss
    rate: float
    seed: int
    held: Held | None
    seconds: float = 0


class CurvePoint(Struct, frozen=True):
    """The validation after a number of steps; step 0 is the model without the adapter."""

    step: int
    held: Held


class PaperResult(Struct, frozen=True):
    """The training with the paper's rate: its validation curve and its test."""

    curve: Sequence[CurvePoint]
    test: UnitResult


def encode(counts: Sequence[int], width: int = 1) -> str:
    """Write counts as base-36 digits.

    >>> encode([3, 11]), encode([1200], 2)
    ('3b', 'xc')

    Args:
        counts: The counts.
        width: The digits of each.

    Returns:
        The digits.
    """
    texts = []
    for count in counts:
        if not 0 <= count < 36**width:
            raise ValueError(f"{count} does not fit in {width} digits")
        texts.append("".join(DIGITS[count // 36**place % 36] for place in reversed(range(width))))
    return "".join(texts)


def decode(digits: str, width: int = 1) -> Floats:
    """Read what `encode` wrote.

    Args:
        digits: The digits.
        width: The digits of each count.

    Returns:
        The counts.
    """
    return np.array(
        [int(digits[at : at + width], 36) for at in range(0, len(digits), width)], dtype=np.float64
    )


class ResultFiles:
    """The folder of the results of one study."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; read nothing.

        Args:
            folder: The folder.
        """
        self.folder = folder

    def has(self, name: str) -> bool:
        """Whether a unit is done."""
        return (self.folder / f"{name}.json").is_file()

    def names(self) -> list[str]:
        """The names of the units that are done."""
        names = sorted(path.stem for path in self.folder.glob("*.json"))
        return [name for name in names if f"{name}.json" != DESIGN]

    def write(self, name: str, result: Struct) -> None:
        """Write a file atomically, so that a file that exists is complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.folder / f"{name}.json", [msgspec.json.encode(result), b"\n"])

    def design(self) -> Design | None:
        """The design; None without results."""
        file = self.folder / DESIGN
        return msgspec.json.decode(file.read_bytes(), type=Design) if file.exists() else None

    def keep_design(self, design: Design) -> None:
        """Write the design, or check that it is that of the results.

        Raises:
            UserError: The results belong to another design.
        """
        earlier = self.design()
        if earlier is None:
            self.write(Path(DESIGN).stem, design)
        elif earlier != design:
            raise UserError(
                "holds the results of a study with other sizes or data",
                file=self.folder,
                found=str(design.sizes),
                expected=f"{earlier.sizes}, or another --results",
            )

    def unit(self, name: str) -> UnitResult:
        """The result of the base or of an arm."""
        return self._read(name, UnitResult)

    def rate(self, name: str) -> RateResult:
        """The result of a training of the search."""
        return self._read(name, RateResult)

    def paper(self) -> PaperResult:
        """The result with the paper's rate."""
        return self._read("paper-rate", PaperResult)

    def _read(self, name: str, type_: type[_Result]) -> _Result:
        return msgspec.json.decode((self.folder / f"{name}.json").read_bytes(), type=type_)
