"""`sightline build rate`: humans rate answers without knowing which model gave them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_review_options import add_review_lists, checked_lists
from sightline.cli.options import add_plugins
from sightline.errors import UserError
from sightline.output import print_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sightline.builders.rate import ProbeName
    from sightline.formats.run_metadata import RunMetadata
    from sightline.types import Outcome

SUMMARY = "let humans rate answers of several runs blind (ConTextual, II-Bench)"

EXAMPLE = """examples:
  sightline build rate results/gpt-4v results/llava results/humans --data data/contextual --write list.csv
  sightline build rate results/gpt-4v results/llava results/humans \\
      --human anna.csv --human ben.csv --human cleo.csv --out human.jsonl
  sightline judge-report results/gpt-4v results/llava results/humans --human human.jsonl
  sightline build rate results/gpt-4v --wrong --by domain --count 100 --data data/iibench --write errors.csv

--write samples instances that all RUNs have answered and that have a reference (ConTextual: 280 at random).
It lists the answers of all RUNs in random order, without the model's name. Give a copy to each rater, who
writes 'right' (acceptable) or 'wrong' into mark and a name into by, and may name errors, separated by commas.
With the same RUNs, --human reads the copies and writes lines of verdicts.jsonl with the rater as judge. Names
that differ only by case or blanks are equal. Repeated equal marks count once; contradictory marks are an
error.
"""

SHARED = 280
"""Instances that ConTextual draws (section 3.2.1)."""

WRONG = 100
"""Wrong answers that II-Bench draws (section 4.3)."""

SPLIT = "split"
"""The option of a run that names the split of its data."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build rate`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("runs", metavar="RUN", nargs="+", help="results folders, or answers.jsonl files, one a responder")
    add_review_lists(
        parser, write="sample answers and write a list of them for raters", human="list of --write with marks"
    )
    drawn = f"maximum number to sample (default: {SHARED} instances, or {WRONG} wrong answers)"
    add("--count", type=int, metavar="N", help=drawn)
    add("--seed", type=int, default=0, metavar="N", help="seed of the sample and of the order (default: 0)")
    add(
        "--by",
        metavar="LABEL",
        help="sample in proportion to this label, such as category (default: at random)",
    )
    add(
        "--wrong",
        action="store_true",
        help="sample N wrong answers of each RUN, so that raters can name the errors",
    )
    add("--data", metavar="DIR", help="data folder, for the paths of images (default: SIGHTLINE_DATA)")
    add("--out", metavar="FILE", help="file for the verdicts, for --judge human:FILE and judge-report")
    add("--force", action="store_true", help="replace LIST.csv or FILE")
    add_plugins(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Draw and write a list, or read marks and write verdicts; the exit status."""
    from sightline.builders.rate import answers_file, read_run

    if bool(options.write) == bool(options.human):
        raise UserError(
            "either --write or --human is needed", expected="--write LIST.csv, or --human LIST.csv"
        )
    if bool(options.out) != bool(options.human):
        raise UserError("--human and --out need each other", expected="--human LIST.csv with --out FILE")
    files = list(dict.fromkeys(answers_file(Path(path)) for path in options.runs))
    runs = [read_run(file) for file in files]
    metadata = _run_metadata(files)
    errors = _errors(metadata)
    lists = checked_lists(options, files, out_is_file=True)
    if options.write:
        _write_list(options, runs, metadata)
        print_note("mark: 'right' or 'wrong', by: a name")
        if errors:
            print_note(f"errors that may be named: {', '.join(errors)}")
    else:
        _write_verdicts(lists, runs, errors, Path(options.out))
    return 0


def _write_list(
    options: argparse.Namespace, runs: Sequence[Sequence[Outcome]], metadata: Mapping[Path, RunMetadata]
) -> None:
    from sightline.builders.rate import draw_units, review_columns, shared_instances, wrong_answers
    from sightline.builders.review_lists import write_list

    path = Path(options.write)
    count = options.count if options.count is not None else WRONG if options.wrong else SHARED
    parts = [wrong_answers(run) for run in runs] if options.wrong else [shared_instances(runs)]
    drawn = [unit for part in parts for unit in draw_units(part, count, options.seed, options.by)]
    items = review_columns(drawn, _images(options.data, runs, metadata), options.seed)
    write_list(path, items)
    kind = "that are wrong" if options.wrong else f"to {len(drawn):,} instances"
    print_note(f"{path}: {len(items):,} answers {kind}, for raters")


def _write_verdicts(
    lists: Sequence[Path], runs: Sequence[Sequence[Outcome]], errors: Sequence[str], out: Path
) -> None:
    from sightline.builders.rate import RIGHT, verdicts_of
    from sightline.builders.review_lists import read_marks
    from sightline.formats.verdicts import write_verdicts

    verdicts = verdicts_of(runs, read_marks(lists, RIGHT, errors))
    if not verdicts:
        raise UserError("no answer is marked", file=lists[0], expected="'right' or 'wrong'")
    write_verdicts(verdicts, out)
    humans = dict.fromkeys(verdict.judge for verdict in verdicts)
    answers = {(verdict.targets, verdict.variant) for verdict in verdicts}
    print_note(f"{out}: {len(verdicts):,} verdicts on {len(answers):,} answers, by {', '.join(humans)}")


def _run_metadata(files: Sequence[Path]) -> dict[Path, RunMetadata]:
    """The metadata of the runs whose folder has it; UserError if they are of several benchmarks or splits."""
    from sightline.formats.run_metadata import read_run_metadata

    runs = {file: run for file in files if (run := read_run_metadata(file.parent)) is not None}
    for what, names in (
        ("benchmarks", [run.benchmark for run in runs.values()]),
        ("splits", [str(run.options[SPLIT]) for run in runs.values() if SPLIT in run.options]),
    ):
        if len(set(names)) > 1:
            raise UserError(
                f"the runs are of several {what}", found=", ".join(dict.fromkeys(names)), expected="one"
            )
    return runs


def _errors(metadata: Mapping[Path, RunMetadata]) -> Sequence[str]:
    """The errors that the benchmark's paper distinguishes; none for an unknown benchmark."""
    from sightline.registry import benchmark

    return next((benchmark(one.benchmark).error_types for one in metadata.values()), ())


def _images(
    data: str | None, runs: Sequence[Sequence[Outcome]], metadata: Mapping[Path, RunMetadata]
) -> dict[ProbeName, Sequence[str]]:
    """The paths of the images of each probe; without a data folder, as the answers name them."""
    from sightline.builders.rate import sent_images

    sent = sent_images(runs)
    folder = data or os.environ.get("SIGHTLINE_DATA")
    if not folder:
        return dict(sent)
    try:
        return _images_in(Path(folder), sent, metadata)
    except UserError as error:
        if data:
            raise
        print_note(f"no paths of images by SIGHTLINE_DATA: {error}")
        return dict(sent)


def _images_in(
    folder: Path, sent: Mapping[ProbeName, Sequence[str]], metadata: Mapping[Path, RunMetadata]
) -> dict[ProbeName, Sequence[str]]:
    """The images of each probe in a data folder: those sent, otherwise those that the probe or sample has."""
    from sightline.benchmarks.base import defaults
    from sightline.builders.rate import probe_images
    from sightline.formats.run_metadata import METRICS
    from sightline.plan.effective import setting_of
    from sightline.registry import benchmark

    if not metadata:
        raise UserError("no run names its data", expected="a RUN with its metrics.json")
    image_of: dict[ProbeName, Sequence[str]] = {}
    for file, one in metadata.items():
        if SPLIT not in one.options:
            raise UserError(
                "does not name the split of its answers",
                file=file.parent / METRICS,
                field=f"options.{SPLIT}",
                expected="metrics.json as `sightline run` wrote it, or no --data",
            )
        source = benchmark(one.benchmark)
        effective = {**defaults(source, setting_of(source, f"{one.benchmark}:{one.setting}")), **one.options}
        for sample in source.samples(folder, effective[SPLIT], effective):
            for probe in source.probes(sample, effective):
                name = probe.sample, probe.variant
                paths = probe_images(probe, sample, sent.get(name, ()))
                image_of[name] = [path for path in paths if Path(path).is_file()]
    return {name: paths for name, paths in image_of.items() if paths}
