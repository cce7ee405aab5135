"""What pages call a run: its name, otherwise its model without the server."""

from __future__ import annotations

from sightline.reporting.html.short_texts import without_servers
from sightline.results.run_list import RunLine


def run_name(run: RunLine) -> str:
    """What pages call a run."""
    return run.name or without_servers(run.model) or f"run {run.number}"


def names_of_two(base: RunLine, other: RunLine) -> tuple[str, str]:
    """What the page of a comparison calls its two runs."""
    names = run_name(base), run_name(other)
    if names[0] != names[1]:
        return names
    return f"{names[0]} (run {base.number})", f"{names[1]} (run {other.number})"
