"""`sightline judge-report`: agreement of judges and metrics with humans, and significant differences."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sightline.cli.options import add_plot, add_printing, add_quiet, add_store, chart_request, pairs
from sightline.text import print_note

if TYPE_CHECKING:
    from sightline.evaluation.judge_data import JudgeData

EXAMPLE = """examples:
  sightline judge-report 3 4 --human blind
  sightline judge-report results/a results/b --human human.jsonl
  sightline judge-report results/a --by scene --format markdown > judges.md
  sightline judge-report appendix_cases.jsonl --task contextual --data data/contextual --split val \\
      --set text_metrics=rouge_l,bertscore

A run of the store, a results folder or its verdicts.jsonl provides the answers, their text metrics and the
verdicts of all judges, humans included (--judge human:FILE or human:PROJECT). With answers there are tables
by responder and by category too.
docs/judges.md explains each number.
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add(
        "verdicts",
        nargs="+",
        metavar="VERDICTS",
        help="runs (number or name), results folders, verdicts.jsonl files, or (with --task) answers with"
        " verdicts",
    )
    human = (
        "verdicts of humans: annotation projects (name or number), or files of JSON lines with targets,"
        " question, verdict, judge"
    )
    add("--human", nargs="+", action="extend", default=[], metavar="SOURCE", help=human)
    add(
        "--task",
        default="",
        metavar="TASK",
        help="task of the answers in other files, whose rules judge them",
    )
    add(
        "--data",
        metavar="DIR",
        help="with --task: data folder (default: SIGHTLINE_DATA), for references and labels",
    )
    add("--split", metavar="S", help="with --task: split of the data")
    partly = "answers that humans mark partly right count as wrong (default) or are left out"
    add("--partly", choices=("wrong", "left-out"), default="wrong", help=partly)
    measure = (
        "compute text metrics of answers with references: text_metrics, bertscore_model, ...; may repeat"
    )
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=measure)
    add("--by", metavar="LABEL", help="print a table by this label instead of category")
    add_quiet(parser)
    add_printing(parser, by=False, brief=True)
    add_store(parser)
    add_plot(parser, ("forest", "matrix"), drawn="the judges (forest), or every two humans (matrix)")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    from sightline.cli.printing import print_tables
    from sightline.evaluation.judge_report import judge_report, report_labels
    from sightline.reporting.judges import judge_tables

    chart = chart_request(options)
    judge_data = _judge_data(options)
    report = judge_report(judge_data, report_labels(options.by, judge_data))
    if chart is not None:
        from sightline.reporting.charts import draw_judges

        draw_judges(report, chart)
    tables = judge_tables(report)
    is_brief = options.format == "table" and not options.all
    first = 1 + bool(report.contrasts)  # The judges beside humans, and the differences of judges.
    few = 1 if options.format == "csv" else first if is_brief and not options.by else None
    print_tables(tables[:few], options.format, is_brief=is_brief)
    if chart is not None:
        print_note(f"plot: {chart.path}")
    return 0


def _judge_data(options: argparse.Namespace) -> JudgeData:
    """Read the verdicts and answers; compute the text metrics that --set names."""
    from sightline.evaluation.judge_data import read_judge_data
    from sightline.evaluation.measures import TextMeasures, identities_of, metrics_of
    from sightline.evaluation.spec import Spec
    from sightline.store.store import Store

    spec = Spec(task=options.task, data=options.data, split=options.split, store=options.store)
    metrics = metrics_of(_text_metric_options(options))
    if not metrics:
        return read_judge_data(options.verdicts, options.human, spec, partly=options.partly)
    store = Store.open(options.store)
    try:
        texts = TextMeasures(
            identities_of(metrics), metrics.__getitem__, store, show_progress=not options.quiet
        )
        return read_judge_data(options.verdicts, options.human, spec, partly=options.partly, texts=texts)
    finally:
        store.close()


def _text_metric_options(options: argparse.Namespace) -> dict[str, Any]:
    """The effective options of the text metrics: defaults, then --set."""
    from sightline.benchmarks.base import TEXT_METRICS
    from sightline.evaluation.options import check_option

    given = pairs(options.set, "--set")
    for name, value in given.items():
        check_option(TEXT_METRICS, name, value, "judge-report")
    return {**{name: option.default for name, option in TEXT_METRICS.items()}, **given}
