"""Measures everything, and writes docs/performance.md.

    python perf [--short] [--only PART ...] [--again] [--write-only] [--list]

Each part is a script of this folder and runs as a process of its own. Its results are kept in perf/results/,
so that an interrupted measurement goes on where it stopped: a part that was measured at this commit, without
changes in the checkout, is not measured again without --again. A part that cannot be measured here is named
on the page, with the reason. Run it on a machine without other work.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from measurement import Measurement, commit, describe_machine, is_commit, seconds_of_additions, today
from page import write_page
from parts import PARTS, Part
from peer_options import read_peers
from report import Report

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def main() -> int:
    """Measure the parts that are asked for, and write the page.

    Returns:
        0; 1 if a part failed.
    """
    parser = argparse.ArgumentParser(
        prog="python perf", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="try the scripts; the page is not written")
    parser.add_argument("--only", nargs="+", metavar="PART", help="these parts only")
    parser.add_argument("--again", action="store_true", help="measure parts that have results, too")
    parser.add_argument("--write-only", action="store_true", help="write the page from the results")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="TOOL=PYTHON", help="see perf/README.md"
    )
    parser.add_argument("--against", metavar="CHECKOUT", help="see perf/path.py")
    parser.add_argument("--list", action="store_true", help="list the parts")
    options = parser.parse_args()
    if options.list:
        for part in PARTS:
            print(f"{part.name:<14}{part.minutes:>4} min  {part.title}")
        return 0
    # The part that needs them comes late.
    read_peers(options.peer)
    failed = []
    if not options.write_only:
        peers = [word for peer in options.peer for word in ("--peer", peer)]
        given = {
            "peers.py": peers,
            "scoring.py": peers,
            "path.py": [f"--against={options.against}"] if options.against else [],
        }
        parts = [_with_given(part, given.get(part.script, ())) for part in _chosen(options.only)]
        failed = _measure_all(parts, short=options.short, again=options.again)
    if not options.short:
        print(f"written: {write_page(RESULTS)}")
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    return 1 if failed else 0


def _chosen(names: Sequence[str] | None) -> list[Part]:
    known = [part.name for part in PARTS]
    for name in names or ():
        if name not in known:
            raise SystemExit(f"there is no part {name}; expected {', '.join(known)}")
    return [part for part in PARTS if not names or part.name in names]


def _with_given(part: Part, words: Sequence[str]) -> Part:
    """A part that measures what the user names, such as the environments of other tools, with these names."""
    return msgspec.structs.replace(part, arguments=(*part.arguments, *words), short=(*part.short, *words))


def _measure_all(parts: Sequence[Part], *, short: bool, again: bool) -> list[str]:
    """Measure parts one after the other; returns the names of those that failed."""
    here, failed = commit(), []
    minutes = sum(part.minutes for part in parts)
    print(f"{len(parts)} parts, about {'a few' if short else minutes} minutes on two cores", flush=True)
    for number, part in enumerate(parts, 1):
        file = RESULTS / f"{part.name}.json"
        if not short and not again and is_commit(here) and _measured_at(file) == here:
            print(f"[{number}/{len(parts)}] {part.name}: measured at this commit (--again measures again)")
            continue
        print(f"[{number}/{len(parts)}] {part.name}", flush=True)
        measured = _measure(part, short=short, here=here)
        if measured is None:
            failed.append(part.name)
        elif measured.missing is not None and _measured_at(file) is not None:
            print(f"the results of another machine stay: {file.relative_to(HERE.parent)}")
        elif not short:
            RESULTS.mkdir(exist_ok=True)
            file.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    return failed


def _measured_at(file: Path) -> str | None:
    """The commit at which a part was measured; None if it was not, or could not be."""
    if not file.exists():
        return None
    measured = msgspec.json.decode(file.read_bytes(), type=Measurement)
    return measured.commit if measured.missing is None else None


def _measure(part: Part, *, short: bool, here: str) -> Measurement | None:
    """Run the script of a part; None if it fails."""
    before, began = seconds_of_additions(), time.monotonic()
    missing = part.missing()
    report = Report()
    if missing is None:
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, "report.json")
            words = part.short if short else part.arguments
            command = [sys.executable, str(HERE / part.script), *words, "--json", str(saved)]
            if subprocess.run(command, check=False).returncode:
                return None
            report = msgspec.json.decode(saved.read_bytes(), type=Report)
    else:
        print(f"not measured: {missing}")
    return Measurement(
        date=today(),
        commit=here,
        machine=describe_machine(),
        minutes=(time.monotonic() - began) / 60,
        additions=(before, seconds_of_additions()),
        command=" ".join(["python", f"perf/{part.script}", *_shown(part.arguments)]),
        report=report,
        missing=missing,
    )


def _shown(arguments: Sequence[str]) -> list[str]:
    """The arguments for the page, without paths of this machine."""
    return [f"{word.partition('=')[0]}=PATH" if "=" in word else word for word in arguments]


if __name__ == "__main__":
    sys.exit(main())
