"""What a user may choose of a benchmark: its options (`--set`) and its named settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

FILE = "FILE"
"""The name of a setting that stands for any file: `groups:mine.jsonl` sets the option `file`."""


class BenchmarkOption(Struct, frozen=True):
    """One `--set` key of a benchmark.

    A value is one of `choices`; without choices, a whole number from `least`; without both, a text. The
    default is always allowed. `labels` are heads for values in tables of several runs (value -> head), in the
    order of the columns. An `internal` option is set by settings or by code: `sightline list` leaves it out.
    """

    default: Any
    summary: str
    choices: tuple[Any, ...] | None = None
    least: int | None = None
    labels: Mapping[Any, str] = field(default_factory=dict)
    internal: bool = False

    def allows(self, value: Any) -> bool:
        """Check a value.

        Args:
            value: The value that the user gave.

        Returns:
            Whether the option takes it.
        """
        if self.choices is not None:
            return any(value == choice and type(value) is type(choice) for choice in self.choices)
        if self.least is not None:
            counts = isinstance(value, int) and not isinstance(value, bool) and value >= self.least
            return counts or value is self.default
        return isinstance(value, str) or value == self.default

    @property
    def allowed(self) -> str:
        """A description of the allowed values, for help texts and error messages."""
        if self.choices is not None:
            return "one of " + ", ".join(map(_as_typed, self.choices))
        return f"a whole number from {self.least}" if self.least is not None else "a text"

    def label(self, value: Any) -> str | None:
        """Look up the label of a value.

        Args:
            value: A value of the option.

        Returns:
            The label; None if the value has none.
        """
        return next((label for choice, label in self.labels.items() if choice == value), None)


def _as_typed(choice: Any) -> str:
    """A choice as the user types it after --set KEY=; True and False are switches, 0 and 1 are not."""
    return ("off", "on")[choice] if isinstance(choice, bool) else str(choice)


ANSWER_BY = BenchmarkOption(
    "text", "read the response (text), or choose the most likely option (likelihood)", ("text", "likelihood")
)
"""The option `answer_by` of benchmarks whose questions offer options."""


class Setting(Struct, frozen=True):
    """A named way to run a benchmark.

    `options` are those that it fixes. `reproduces` names the tables of the paper. `sampling` holds the
    sampling defaults, `sampling_source` where they come from ('unpublished' if the paper does not say).
    """

    name: str
    summary: str
    reproduces: str = "nothing published"
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    sampling_source: str = "unpublished"


def by_name(*settings: Setting) -> dict[str, Setting]:
    """Index settings by their names.

    Args:
        *settings: The settings, the default one first.

    Returns:
        Name -> setting, in the same order.
    """
    return {setting.name: setting for setting in settings}
