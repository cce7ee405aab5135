"""The undecided verdicts of a result in words."""

from __future__ import annotations

from sightline.metric_types import Result


def undecided_share(result: Result) -> str:
    """The number and the share of undecided verdicts among the probes that were sent."""
    sent = result.probes - result.not_sent
    return f"{result.undecided:,} of {sent:,}, {100 * result.undecided / max(sent, 1):.1f} %"
