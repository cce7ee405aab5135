"""`sightline build rate`: answers that people rate without knowing whose they are."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sightline.formats.run_metadata import RunMetadata
    from sightline.types import Outcome

SUMMARY = "answers of several runs for people to rate blind, drawn and mixed (ConTextual, II-Bench)"

EXAMPLE = """examples:
  sightline build rate results/gpt-4v results/llava results/people --data data/contextual --write list.csv
  sightline build rate results/gpt-4v results/llava results/people \\
      --human anna.csv --human ben.csv --human cleo.csv --out human.jsonl
  sightline judge-report results/gpt-4v results/llava results/people --human human.jsonl
  sightline build rate results/gpt-4v --wrong --by domain --count 100 --data data/iibench --write errors.csv

--write draws instances that all RUNs have answered and that have a reference (ConTextual: 280 at random), and
lists the answers of all RUNs to them in a mixed order, without a model's name. Each person gets a copy, puts
'right' (acceptable) or 'wrong' into mark and a name into by, and may name errors, commas between them. With
the same RUNs, --human reads the copies back and writes lines of verdicts.jsonl, the person as judge. Names
that differ by case or blanks alone are one person's. Who marks an answer twice alike is counted once; who
says both of it is refused.
"""

SHARED = 280
"""Instances that ConTextual draws (section 3.2.1)."""

WRONG = 100
"""Wrong answers that II-Bench draws (section 4.3)."""

SPLIT = "split"
"""The option of a run that says of which part of the data its answers are."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build rate`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("runs", metavar="RUN", nargs="+", help="results folders, or answers.jsonl files, one a responder")
    add("--write", metavar="LIST.csv", help="draw answers, and list them there for people")
    drawn = (
        f"how many to draw (default {SHARED} instances, or {WRONG} wrong answers); all where there are fewer"
    )
    add("--count", type=int, metavar="N", help=drawn)
    add("--seed", type=int, default=0, metavar="N", help="seed of the draw and of the order (default 0)")
    add("--by", metavar="LABEL", help="draw in proportion to this label, as category (default: at random)")
    add("--wrong", action="store_true", help="draw N answers of each RUN that are not right, to name errors")
    add("--data", metavar="DIR", help="data folder (else SIGHTLINE_DATA), to list where the images lie")
    add(
        "--human",
        action="append",
        default=[],
        metavar="LIST.csv",
        help="what people marked, by lists of --write; may repeat",
    )
    add("--out", metavar="FILE", help="write their verdicts there, for --judge human:FILE and judge-report")
    add("--force", action="store_true", help="replace LIST.csv, or FILE")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Draw and list, or read marks and write verdicts; the exit status."""
    from sightline.builders.rate import answers_of, read_run
    from sightline.formats.files import refuse_overwriting

    if bool(options.write) == bool(options.human):
        raise UserError("one thing is to be done", expected="--write LIST.csv, or --human LIST.csv")
    if bool(options.out) != bool(options.human):
        raise UserError("people's verdicts need a place", expected="--human LIST.csv with --out FILE")
    files = list(dict.fromkeys(answers_of(Path(path)) for path in options.runs))
    runs = [read_run(file) for file in files]
    ran = _ran(files)
    errors = _errors(ran)
    if options.write:
        refuse_overwriting(Path(options.write), options.force, "--write", read=files)
        _write_list(options, runs, ran)
        print("mark: 'right' or 'wrong', by: a name", file=sys.stderr)
        if errors:
            print(f"errors, where any are to be named: {', '.join(errors)}", file=sys.stderr)
    else:
        lists = [Path(file) for file in options.human]
        refuse_overwriting(Path(options.out), options.force, read=[*files, *lists])
        _write_verdicts(lists, runs, errors, Path(options.out))
    return 0


def _write_list(
    options: argparse.Namespace, runs: Sequence[Sequence[Outcome]], ran: Mapping[Path, RunMetadata]
) -> None:
    from sightline.builders.rate import draw, listed, shared, wrong
    from sightline.builders.review_lists import write_list

    path = Path(options.write)
    count = options.count if options.count is not None else WRONG if options.wrong else SHARED
    parts = [wrong(run) for run in runs] if options.wrong else [shared(runs)]
    drawn = [unit for part in parts for unit in draw(part, count, options.seed, options.by)]
    things = listed(drawn, _images(options.data, ran), options.seed)
    write_list(path, things)
    of = "that are not right" if options.wrong else f"to {len(drawn):,} instances"
    print(f"{path}: {len(things):,} answers {of}, for people", file=sys.stderr)


def _write_verdicts(
    lists: Sequence[Path], runs: Sequence[Sequence[Outcome]], errors: Sequence[str], out: Path
) -> None:
    from sightline.builders.rate import RIGHT, verdicts
    from sightline.builders.review_lists import read_marks
    from sightline.formats.verdicts import write_verdicts

    found = verdicts(runs, read_marks(lists, RIGHT, errors))
    if not found:
        raise UserError("nobody has marked anything", file=lists[0], expected="'right' or 'wrong'")
    write_verdicts(found, out)
    humans = dict.fromkeys(verdict.judge for verdict in found)
    answers = {(verdict.targets, verdict.variant) for verdict in found}
    print(
        f"{out}: {len(found):,} verdicts on {len(answers):,} answers, by {', '.join(humans)}", file=sys.stderr
    )


def _ran(files: Sequence[Path]) -> dict[Path, RunMetadata]:
    """What was run, by the answers whose folder says it. UserError where that is of several benchmarks or
    splits."""
    from sightline.formats.run_metadata import read_run_metadata

    told = {file: ran for file in files if (ran := read_run_metadata(file.parent)) is not None}
    for of, named in (
        ("benchmarks", [ran.benchmark for ran in told.values()]),
        ("splits", [str(ran.options[SPLIT]) for ran in told.values() if SPLIT in ran.options]),
    ):
        if len(set(named)) > 1:
            raise UserError(
                f"the runs are of several {of}", found=", ".join(dict.fromkeys(named)), expected="one"
            )
    return told


def _errors(ran: Mapping[Path, RunMetadata]) -> Sequence[str]:
    """The errors that the benchmark's paper tells apart; none where it tells none, or is not known."""
    from sightline.registry import benchmark

    return next((benchmark(one.benchmark).error_types for one in ran.values()), ())


def _images(data: str | None, ran: Mapping[Path, RunMetadata]) -> dict[str, str]:
    """The path of each sample's first image; none where no data folder is named, or where that of the
    environment is not the one of the runs."""
    folder = data or os.environ.get("SIGHTLINE_DATA")
    if not folder:
        return {}
    try:
        return _images_in(Path(folder), ran)
    except UserError as error:
        if data:
            raise
        print(f"no paths of images, by SIGHTLINE_DATA: {error}", file=sys.stderr)
        return {}


def _images_in(folder: Path, ran: Mapping[Path, RunMetadata]) -> dict[str, str]:
    from sightline.benchmarks.base import defaults
    from sightline.formats.run_metadata import METRICS
    from sightline.plan.effective import setting_of
    from sightline.registry import benchmark

    if not ran:
        raise UserError("none of the runs says of which data it is", expected="a RUN with its metrics.json")
    found = {}
    for file, one in ran.items():
        if SPLIT not in one.options:
            raise UserError(
                "does not say of which split its answers are",
                file=file.parent / METRICS,
                field=f"options.{SPLIT}",
                expected="metrics.json as `sightline run` wrote it, or no --data",
            )
        of = benchmark(one.benchmark)
        known = {**defaults(of, setting_of(of, f"{one.benchmark}:{one.setting}")), **one.options}
        samples = of.samples(folder, known[SPLIT], known)
        paths = {sample.id: sample.images[0].path for sample in samples if sample.images}
        found.update({name: path for name, path in paths.items() if Path(path).is_file()})
    return found
