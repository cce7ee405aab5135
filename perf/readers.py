"""The options that Sightline and other tools read in replies with labels: right, wrong and missed.

    python perf/readers.py [--peer TOOL=PYTHON ...] [--readings FILE] [--json FILE] [FILE ...]

TOOL is inspect_ai, lmms_eval or lighteval, PYTHON the interpreter of an environment that has it
(docs/reading-answers.md has the recipes). Without FILEs, the multiple-choice lines of
seven sets of tests/labelled are read. A reading is wrong if it is not the label, or if the reply chooses
nothing; missed is a reply that chooses an option, of which no option is read. --readings keeps what the tools
read as JSON lines: a later call takes from there what no --peer reads again.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from peer_options import read_peers
from report import Report, new_parser
from sightline.metrics.statistics import wilson
from sightline.scoring.chosen import read_choice
from sightline.scoring.reasoning import cut_reasoning

HERE = Path(__file__).resolve().parent
LABELLED = HERE.parent / "tests/labelled"
FILES = [
    LABELLED / f"choices_{name}.jsonl"
    for name in ("first", "second", "third", "fourth", "seventh", "eighth", "ninth")
]
TOOLS = ("inspect_ai", "lmms_eval", "lighteval")

Line = Mapping[str, Any]


class Reading(Struct, frozen=True):
    """What one reader reads in one file.

    Attributes:
        tool: Its tool, with the version.
        reader: Its name within the tool; '' for Sightline.
        file: The name of the file.
        positions: The option that it reads in each line, from 0; None for none.
    """

    tool: str
    reader: str
    file: str
    positions: list[int | None]


def main() -> None:
    """Read, and print a table for each file."""
    parser = new_parser(__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="replies with labels")
    parser.add_argument("--peer", action="append", default=[], metavar="TOOL=PYTHON")
    parser.add_argument(
        "--readings", type=Path, metavar="FILE", help="keep the readings of the tools in FILE"
    )
    options = parser.parse_args()
    pythons = read_peers(options.peer, TOOLS)
    sets = {file.name: _choices(file) for file in options.files or FILES}
    readings = [
        reading
        for reading in _kept(options.readings)
        if reading.tool.split()[0] not in pythons
        and len(reading.positions) == len(sets.get(reading.file, ()))
    ]
    for tool, python in pythons.items():
        for name, lines in sets.items():
            readings += _read_by(tool, python, name, lines)
    if options.readings:
        options.readings.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in readings))
    report = Report()
    for name, lines in sets.items():
        own = Reading("sightline", "", name, [_own(line) for line in lines])
        _add_table(report, name, lines, [own, *(one for one in readings if one.file == name)])
    for tool in TOOLS:
        if not any(reading.tool.split()[0] == tool for reading in readings):
            report.note(f"{tool} is not measured: its environment was not given (--peer {tool}=PYTHON).")
    report.save(options.json)


def _choices(file: Path) -> list[Line]:
    """The replies to multiple choice, without their reasoning, which no tool is given."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        {**line, "response": cut_reasoning(line["response"]).answer}
        for line in lines
        if line["kind"] == "choice"
    ]


def _own(line: Line) -> int | None:
    return read_choice(line["response"], line["options"], line["question"]).position


def _kept(file: Path | None) -> list[Reading]:
    if file is None or not file.exists():
        return []
    return [msgspec.json.decode(line, type=Reading) for line in file.read_bytes().splitlines()]


def _read_by(tool: str, python: str, name: str, lines: Sequence[Line]) -> list[Reading]:
    """Read with another tool, in its environment."""
    given = "".join(json.dumps(line) + "\n" for line in lines)
    command = [python, str(HERE / "peer_drivers/read_options.py"), tool]
    ran = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"--peer {tool}={python}: {ran.stderr.strip().splitlines()[-1]}")
    written = json.loads(ran.stdout.splitlines()[-1])
    title = f"{tool} {written['version']}"
    return [Reading(title, reader, name, positions) for reader, positions in written["readings"].items()]


def _add_table(report: Report, name: str, lines: Sequence[Line], readings: Sequence[Reading]) -> None:
    labels = [line["label"] for line in lines]
    chosen = sum(label is not None for label in labels)
    title = f"{name}: {len(lines)} replies, of which {chosen} choose an option"
    report.table(title, "reader", "right", "wrong", "wrong, % (95 % CI)", "missed", "missed, % (95 % CI)")
    for reading in readings:
        pairs = list(zip(labels, reading.positions, strict=True))
        right = sum(label == position for label, position in pairs)
        wrong = sum(position is not None and position != label for label, position in pairs)
        missed = len(lines) - right - wrong
        report.row(
            ", ".join(filter(None, (reading.tool, reading.reader))),
            str(right),
            str(wrong),
            _share(wrong, len(lines)),
            str(missed),
            _share(missed, chosen),
        )


def _share(count: int, of: int) -> str:
    low, high = wilson(np.array(count / of), np.array(of), np.array(1.96))
    return f"{100 * count / of:.1f} ({100 * float(low):.1f} to {100 * float(high):.1f})"


if __name__ == "__main__":
    main()
