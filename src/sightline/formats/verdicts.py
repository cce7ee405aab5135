"""verdicts.jsonl: what judges and people decided, one judgement a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from sightline.formats.files import read_lines
from sightline.formats.stream import LineFile
from sightline.types import Verdict, VerdictName

_encoder = msgspec.json.Encoder()


class WrittenLine(Struct, frozen=True, omit_defaults=True):
    """A line as we write it: the contract's fields in its order, then `extracted` where it is known."""

    targets: tuple[str, ...]
    question: str
    scorer: str
    judge: str
    kind: Literal["rules", "model", "human"]
    draw: int
    verdict: VerdictName
    value: float | None
    raw: str
    extracted: str | None = None
    variant: str = ""
    version: str = ""
    scores: Mapping[str, float] = {}
    labels: tuple[str, ...] = ()


class ReadLine(Struct, frozen=True):
    """A line as we accept it: a people's file needs only the first four fields."""

    targets: tuple[str, ...]
    question: str
    verdict: VerdictName
    judge: str
    scorer: str = "human"
    kind: Literal["rules", "model", "human"] = "human"
    draw: int = 0
    value: float | None = None
    raw: str = ""
    extracted: str | None = None
    variant: str = ""
    version: str = ""
    scores: Mapping[str, float] = {}
    labels: tuple[str, ...] = ()


def write_verdicts(verdicts: Iterable[Verdict], path: Path) -> None:
    """Write verdicts.jsonl, one line a judgement, in the order given."""
    with LineFile(path) as file:
        for verdict in verdicts:
            file.write(verdict_line(verdict))


def verdict_line(verdict: Verdict) -> bytes:
    """A verdict as its line of verdicts.jsonl, without the line break."""
    return _encoder.encode(WrittenLine(**asdict(verdict)))


def read_verdicts(path: Path) -> list[Verdict]:
    """The judgements of a verdicts.jsonl or of a people's file.

    A people's line needs `targets`, `question`, `verdict` and `judge`; its scorer is then 'people' and its
    kind 'person'. UserError that names the line and the field where one is wrong.
    """
    return [Verdict(**asdict(line)) for line in read_lines(path, ReadLine)]
