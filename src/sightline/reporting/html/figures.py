"""Numbers as a reader sees them in HTML: rounded, with a minus sign, a missing one as a dash."""

from __future__ import annotations

from sightline.metric_types import IntervalMethod, Unit, is_approximate
from sightline.reporting.table_text import DECIMALS

NO_VALUE = "–"


def number(value: float | None, unit: Unit = "percent") -> str:
    """A rounded number.

    Args:
        value: The number; None if there is none.

    >>> number(38.24), number(-0.5, "number"), number(None)
    ('38.2', '−0.500', '–')
    """
    return NO_VALUE if value is None else _minus(f"{value:.{DECIMALS[unit]}f}")


def signed(value: float | None, unit: Unit = "percent") -> str:
    """A rounded difference.

    Args:
        value: The difference; None if there is none.

    >>> signed(3.72), signed(-1.81)
    ('+3.7', '−1.8')
    """
    return NO_VALUE if value is None else _minus(f"{value:+.{DECIMALS[unit]}f}")


def interval(
    low: float | None,
    high: float | None,
    unit: Unit = "percent",
    method: IntervalMethod | None = None,
    *,
    sign: bool = False,
) -> str:
    """A confidence interval.

    Args:
        low: The lower bound; None without an interval.

    >>> interval(33.0, 43.66), interval(-1.8, 9.1, sign=True)
    ('[33.0, 43.7]', '[−1.8, +9.1]')
    """
    if low is None or high is None:
        return ""
    form = signed if sign else number
    return f"{'~' if is_approximate(method) else ''}[{form(low, unit)}, {form(high, unit)}]"


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")
