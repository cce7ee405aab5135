"""The design of the adapter study: arms, learning rates, sizes, and the units of its work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from sightline.adapter.architectures import AdapterConfig, BiLstm, Lora, Prefix

Loss = Literal["ce", "ce+consistency"]
Training = Literal["parted", "whole", "sentences"]
"""What an arm learns: without the labels of `WITHOUT`, with them, or without them and in sentences."""

TASKS = ("rephrasing", "restyling", "context")
WITHOUT: Mapping[str, Sequence[str]] = {"wording": ["unseen"], "style": ["mosaic"], "colour": ["yellow"]}
"""Labels that are left out of the training and occur in the test."""

LEFT_OUT = {
    "rephrasing": ("wording", "unseen"),
    "restyling": ("style", "mosaic"),
    "context": ("colour", "yellow"),
}
"""The label of each task in `WITHOUT`."""

KINDS: Mapping[str, AdapterConfig] = {
    "bilstm": BiLstm(),
    "bilstm-47": BiLstm(hidden=47),
    "prefix": Prefix(),
    "lora": Lora(),
}
"""The paper's adapter, one with as many parameters as LoRA (within 2 %), and the kinds to compare with it."""

RATES: Mapping[str, Sequence[float]] = {
    "bilstm": (3e-4, 1e-3, 3e-3),
    "bilstm-47": (3e-4, 1e-3, 3e-3),
    "prefix": (1e-2, 3e-2, 1e-1),
    "lora": (1e-3, 3e-3, 1e-2),
}
SEARCH_SEEDS = (100, 101)
"""The seeds of the adapters that choose the learning rate; they are not tested."""

LOSSES: tuple[Loss, ...] = ("ce", "ce+consistency")
PAPER_RATE, PAPER_STEPS, PAPER_CURVE = 1e-5, 3_000, 250
"""The paper's learning rate, the most steps with it, and the steps between validations."""

ONE_WORD = "What place is in the image? Please answer in one word."
"""The instruction that asks for the place of restyled images in another form."""

MARGIN = 2.0
"""The margin of non-inferiority of acc in percentage points: below the smallest gain of acc in the paper's
Table 6 (2.5 points, BLIP-2 in rephrasing), so that an adapter within it does not undo such a gain."""


class Arm(Struct, frozen=True):
    """A kind of adapter with the loss and the data of its training."""

    kind: str
    loss: Loss
    data: Training = "parted"

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.kind}-{self.loss.replace('+', '-')}-{self.data}"

    @property
    def title(self) -> str:
        """The name in tables."""
        more = {"parted": "", "whole": ", nothing left out", "sentences": ", sentences"}[self.data]
        return f"`{self.kind}`, `{self.loss}`{more}"


MAIN = tuple(Arm(kind, loss) for loss in LOSSES for kind in KINDS)
WHOLE = (Arm("bilstm", "ce", "whole"), Arm("lora", "ce", "whole"))
SENTENCES = (Arm("bilstm", "ce", "sentences"), Arm("lora", "ce", "sentences"))
ARMS = (*MAIN, *WHOLE, *SENTENCES)
PAPER_ARM = Arm("bilstm", "ce")


class Sizes(Struct, frozen=True, kw_only=True):
    """The sizes of the study: groups per task, steps, groups per step, seeds, and the paper's steps."""

    model: str = "mini"
    groups: int = 500
    test: int = 300
    steps: int = 300
    batch: int = 4
    seeds: int = 5
    paper_steps: int = PAPER_STEPS


class Unit(Struct, frozen=True, tag_field="unit", omit_defaults=True):
    """A part of the work that one process does: its result is one file of `name`."""

    @property
    def name(self) -> str:
        """The name of its file."""
        raise NotImplementedError


class BaseUnit(Unit, frozen=True, tag="base"):
    """The test of the model without an adapter."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return "base"


class RateUnit(Unit, frozen=True, tag="rate"):
    """The training with a learning rate that may be chosen, measured on held-out groups."""

    kind: str
    loss: Loss
    rate: float
    seed: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"rate-{Arm(self.kind, self.loss).name}-{self.rate:g}-{self.seed}"


class ArmUnit(Unit, frozen=True, tag="arm"):
    """The training and the test of an arm from one seed, with the learning rate that was chosen."""

    arm: Arm
    seed: int
    rate: float

    @property
    def name(self) -> str:
        """The name of its file."""
        return arm_file(self.arm, self.seed)


class PaperUnit(Unit, frozen=True, tag="paper"):
    """The training of the paper's adapter with the paper's rate, its validation curve, and its test."""

    seed: int = 0

    @property
    def name(self) -> str:
        """The name of its file."""
        return "paper-rate"


def arm_file(arm: Arm, seed: int) -> str:
    """The name of the file of an arm and a seed."""
    return f"{arm.name}-{seed}"


def first_units() -> Iterator[Unit]:
    """The units that need no learning rate; the longest first."""
    yield PaperUnit()
    yield BaseUnit()
    yield from rate_units()


def rate_units() -> Iterator[RateUnit]:
    """All trainings of the search."""
    for kind, rates in RATES.items():
        for loss in LOSSES:
            yield from (RateUnit(kind, loss, rate, seed) for rate in rates for seed in SEARCH_SEEDS)


def arm_units(sizes: Sizes, rates: Mapping[tuple[str, Loss], float]) -> Iterator[ArmUnit]:
    """All arms with all seeds: every arm once, then every arm with the next seed.

    Args:
        sizes: The sizes of the study.
        rates: The chosen rate of each kind and loss.
    """
    for seed in range(sizes.seeds):
        yield from (ArmUnit(arm, seed, rates[arm.kind, arm.loss]) for arm in ARMS)


SECONDS_PER_STEP = {"bilstm": 0.105, "bilstm-47": 0.08, "prefix": 0.035, "lora": 0.05}
"""Processor time of a step for each of its groups, measured on one thread; it weighs the units for the
estimate of what is left, which then follows from the time that finished units took."""
TEST_SECONDS, VALIDATION_SECONDS = 0.1, 0.015
"""Processor time of a test for each group of a task, and of a validation for each group of the training."""


def cost(unit: Unit, sizes: Sizes) -> float:
    """The expected processor time of a unit in seconds."""
    test, step = TEST_SECONDS * sizes.test, sizes.batch
    match unit:
        case ArmUnit(arm=arm):
            return sizes.steps * step * SECONDS_PER_STEP[arm.kind] + test
        case RateUnit(kind=kind):
            return sizes.steps * step * SECONDS_PER_STEP[kind] + VALIDATION_SECONDS * sizes.groups
        case PaperUnit():
            validations = sizes.paper_steps / PAPER_CURVE * VALIDATION_SECONDS * sizes.groups
            return sizes.paper_steps * step * SECONDS_PER_STEP["bilstm"] + validations + test
        case _:
            return 2 * test


def total_units(sizes: Sizes) -> int:
    """The number of all units."""
    return 2 + sum(1 for _ in rate_units()) + len(ARMS) * sizes.seeds
