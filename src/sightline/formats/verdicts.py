"""verdicts.jsonl: the verdicts of judges and humans, one a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from sightline.formats.files import AtomicLineFile, read_lines
from sightline.types import Verdict

_HUMAN = {"scorer": "human", "kind": "human"}
"""The fields that a human's line may leave out."""

_encoder = msgspec.json.Encoder()


def write_verdicts(verdicts: Iterable[Verdict], path: Path) -> None:
    """Write verdicts.jsonl."""
    with AtomicLineFile(path) as file:
        for verdict in verdicts:
            file.write(verdict_line(verdict))


def verdict_line(verdict: Verdict) -> bytes:
    """Encode a verdict as a line of verdicts.jsonl."""
    return _encoder.encode(verdict)


def read_verdicts(path: Path) -> list[Verdict]:
    """Read a verdicts.jsonl, or a file of human verdicts."""
    return list(read_lines(path, Verdict, _completed))


def read_recorded_verdicts(path: Path) -> list[Verdict]:
    """Read the verdicts.jsonl of a results folder, which is empty if there was nothing to judge."""
    return [] if path.is_file() and not path.stat().st_size else read_verdicts(path)


def decode_verdict(line: bytes) -> Verdict:
    """Decode one verdict that `verdict_line` encoded, in this version or an earlier one."""
    return msgspec.convert(_completed(msgspec.json.decode(line)), Verdict)


def _completed(record: Any) -> Any:
    """A record with the fields that a human's line leaves out."""
    return {**_HUMAN, **record} if isinstance(record, dict) else record


# -- Flags of human verdicts, kept in `Verdict.scores`: partly right, and contradicted by a second mark

PARTLY = "partly"
"""Marks a verdict on a response that is partly right; the verdict itself is `wrong`."""

CONTRADICTED = "contradicted"
"""Marks a verdict that another mark of the same source contradicts."""

Partly = Literal["wrong", "left-out"]
"""How partly right responses count."""


def apply_partly(verdicts: Iterable[Verdict], partly: Partly) -> list[Verdict]:
    """Count partly right responses as wrong, or leave them out."""
    return [verdict for verdict in verdicts if partly == "wrong" or PARTLY not in verdict.scores]


def contradictions(verdicts: Iterable[Verdict]) -> list[str]:
    """Quote the verdicts that a second mark contradicts."""
    return [verdict.raw for verdict in verdicts if CONTRADICTED in verdict.scores]
