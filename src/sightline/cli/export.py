"""`sightline export`: write answers or runs in the formats that other tools read, or as tables."""

from __future__ import annotations

import argparse

from sightline.benchmarks.registry import export_formats
from sightline.cli.options import add_store
from sightline.evaluation.run_tables import FORMS
from sightline.interop.results import FORMATS
from sightline.text import print_line, print_note

EXAMPLE = """examples:
  sightline export results/llava --as codis --out outputs.json
  sightline export results/gpt-4o --as submission --data data/iibench --out submission.jsonl
  sightline export results/gpt-4o-test --as contextual --model gpt-4o --out predictions.json
  sightline export answers.jsonl --as jsonl --out answers-plain.jsonl
  sightline export base --as csv --out tables            answers.csv, groups.csv and metrics.csv of a run
  sightline export base --as inspect --out base.eval     a log for `inspect view`
  sightline export base --as eee --model llava-hf/llava-1.5-7b-hf --out .
  sightline export base --as hf-eval-results --dataset ORG/NAME:TASK --out .eval_results/NAME.yaml
"""


def summaries() -> dict[str, str]:
    """The formats by name, with what each one holds."""
    found = {name: layout.summary for name, layout in export_formats().items()}
    found |= {name: layout.summary for name, layout in FORMATS.items()}
    return found | dict.fromkeys(FORMS, "a folder with answers, groups and metrics, a table each")


def register(parser: argparse.ArgumentParser) -> None:
    formats = summaries()
    listed = "\n".join(f"  {name}: {summary}" for name, summary in formats.items())
    of_runs = ", ".join([*FORMATS, *FORMS])
    parser.epilog = f"{EXAMPLE}\nformats:\n{listed}"
    parser.add_argument(
        "answers",
        metavar="ANSWERS",
        help=f"an answers.jsonl, or its results folder; for {of_runs} also a run of the store",
    )
    parser.add_argument(
        "--as",
        dest="layout",
        required=True,
        metavar="FORMAT",
        help=", ".join(formats),
    )
    parser.add_argument(
        "--out", required=True, metavar="PATH", help="the file to write; for tables and eee a folder"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="data folder, for formats that repeat its records (default: SIGHTLINE_DATA); for"
        f" {', '.join(FORMATS)} that of the images, for a results folder or images that moved",
    )
    parser.add_argument(
        "--model",
        default="",
        metavar="NAME",
        help="the model's name, for formats that hold it (default: that in metrics.json next to the answers)",
    )
    parser.add_argument(
        "--dataset",
        default="",
        metavar="ORG/NAME:TASK",
        help="the benchmark on the Hugging Face Hub, and its task, for hf-eval-results and eee",
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write the file; standard error lists what its layout cannot hold."""
    from sightline.interop.results import export_answers

    omissions = export_answers(
        options.answers,
        options.layout,
        options.out,
        url=options.store,
        data=options.data,
        model=options.model,
        dataset=options.dataset,
        force=options.force,
    )
    for omission in omissions:
        print_note(omission)
    print_line(f"written: {options.out}")
    return 0
