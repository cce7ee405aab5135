"""`sightline compare`: paired differences between runs, with confidence intervals and tests."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sightline.cli.options import (
    add_dry_run,
    add_options,
    add_plot,
    add_policy,
    add_printing,
    add_quiet,
    add_request_limits,
    add_store,
    chart_request,
    check_policy_out,
    client_options,
    note_shadowed_runs,
    pairs,
)
from sightline.errors import UserError
from sightline.metrics.flips import LISTS
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.reporting.comparison import ComparedRuns
    from sightline.reporting.table import ReportTable

EXAMPLE = """examples:
  sightline compare 3 4                        run 4 minus run 3, of ./sightline.db
  sightline compare 3 4 --by style --metric con --metric acc
  sightline compare base adapter               the same with the names of runs (--name)
  sightline compare 3 4 5                      runs 4 and 5, each minus run 3: a row for each
  sightline compare 3 4,5,6                    runs 4, 5 and 6 (three seeds), each minus run 3, pooled
  sightline compare 4,5,6 7,8,9                run 7 minus 4, 8 minus 5 and 9 minus 6, pooled
  sightline compare 3 results/a                results folders, numbers and names of runs in any mixture
  sightline compare 3 4 --list lost            the answers that run 3 has right and run 4 has not
  sightline compare 3 4 --against GPT-4V       with the figures of a row of the paper
  sightline compare 3 4 --tests                all significance tests, and the smallest detectable difference
  sightline compare 3 4 --margin 2             is run 4 non-inferior, or equivalent, within 2 points?
  sightline compare 3 4 --fail-if worse        exit status 5 if run 4 is significantly worse
  sightline compare 3 4 --why                  prompts, responses, reading ...: where do they differ?
  sightline compare 3 4 --judge openai/gpt-4o  which answers does a judge prefer, in both orders?
  sightline compare 3 4 --policy policy.toml   the rules of a file; exit status 5 if one is not met
  sightline compare 3 4 --policy policy.toml --policy-out policy.xml --policy-out summary.md
                                               the same as JUnit XML and Markdown, for CI
  sightline compare 3 4 --by category --plot differences.pdf
                                               the differences as a forest plot
  sightline runs list                          list the numbers and names of runs
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("base", type=_words, metavar="RUN[,RUN...]", help="number, name or results folder of the base run")
    add(
        "other",
        type=_words,
        nargs="+",
        metavar="RUN[,RUN...]",
        help="number, name or results folder of the run that is compared with the base; several with blanks"
        " between them are rows, several with commas are pooled",
    )
    add(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="metric to compare; may repeat (default: the leading ones)",
    )
    add(
        "--tests",
        action="store_true",
        help="print all significance tests with their corrections and power too",
    )
    add(
        "--list",
        choices=LISTS,
        metavar="CHANGE",
        help=f"list the answers of this change: {', '.join(LISTS)} (--json without --list: all)",
    )
    add(
        "--why",
        action="store_true",
        help="print where two runs of the same items differ: prompts, images, responses, reading, references"
        " and items left out, with examples; the runs may be of different tools",
    )
    add(
        "--margin",
        type=_margin,
        metavar="X",
        help="test whether the second run is non-inferior and equivalent within X percentage points",
    )
    loss = (
        "exit with status 5 if this difference is significant (Holm correction over the rows of the table) or"
        " has no value: worse (any metric of the table), 'acc_p: worse', 'miss: higher'; with --margin also"
        " not-non-inferior and not-equivalent; may repeat"
    )
    add("--fail-if", action="append", default=[], metavar="CONDITION", help=loss)
    add_policy(parser)
    add_options(parser, ["against"])
    add_printing(parser, brief=True)
    add_store(parser)
    judging = parser.add_argument_group("judgement of pairs")
    judging.add_argument(
        "--judge",
        metavar="SPEC",
        help="chat model that says which of the two answers to each question is better, in both orders",
    )
    judging.add_argument(
        "--judge-gen", action="append", default=[], metavar="KEY=VALUE", help="sampling option of the judge"
    )
    judging.add_argument(
        "--data", metavar="DIR", help="data folder of the runs: the judge sees its images too"
    )
    add_request_limits(judging)
    add_dry_run(judging)
    add_quiet(judging)
    add_plot(parser, drawn="the differences")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the table; returns the exit status, 5 if a condition of --fail-if holds or a rule is not met."""
    from sightline.cli.printing import print_conditions_met, print_tables
    from sightline.evaluation.folder import is_stored
    from sightline.evaluation.options import not_applicable, parse_difference_conditions
    from sightline.evaluation.policy import (
        check_differences,
        policy_status,
        policy_table,
        read_policy,
        write_policy,
    )
    from sightline.evaluation.reports import compare_words

    if options.why:
        return _why(options)
    if len(options.other) > 1:
        _refuse_of_two(options)
    for name in ("judge_gen", "data", "dry_run", "on") if options.judge is None else ():
        if getattr(options, name):
            raise UserError(f"--{name.replace('_', '-')} needs a judge", expected="--judge MODEL too")
    check_policy_out(options)
    policy = None if options.policy is None else read_policy(options.policy)
    chart = chart_request(options)
    words = dict.fromkeys([*options.base, *(word for other in options.other for word in other)])
    note_shadowed_runs([word for word in words if not is_stored(word, options.store)], options.store)
    compared = compare_words(
        options.base,
        options.other,
        options.store,
        metrics=options.metric,
        by=options.by,
        against=options.against,
        margin=options.margin,
        all_tests=options.tests,
    )
    conditions = [
        parse_difference_conditions(options.fail_if, one.rows, one.comparison.definitions, one.verdicts)
        for one in compared
    ]
    is_brief = options.format == "table" and not options.all
    tables, statuses = _tables(compared, options), [0]
    if options.judge is not None:
        judged, status = _judge(compared[0], options)
        if options.dry_run:
            return status
        tables = [*judged, *tables]
        statuses.append(status)
    if policy is not None:
        checked = check_differences(policy, [one.comparison for one in compared])
        write_policy(options.policy_out, policy, checked)
        tables = [policy_table(policy, checked), *tables]
        statuses.append(policy_status(checked))
    print_tables(tables, options.format, is_brief=is_brief)
    if chart is not None:
        from sightline.reporting.charts import draw_comparison

        draw_comparison(compared[0].comparison, compared[0].rows, options.margin, chart)
        print_note(f"plot: {chart.path}")
    met = [
        f"{', '.join(one.comparison.sides[1].runs)}: {line}" if len(compared) > 1 else line
        for one, of_comparison in zip(compared, conditions, strict=True)
        for condition in of_comparison
        for line in condition.met(
            one.rows,
            one.tests,
            one.comparison.undecided_bounds,
            not_applicable=not_applicable(one.comparison),
        )
    ]
    print_conditions_met(met)
    statuses.append(5 if met else 0)
    return max(statuses)  # no number depends on the judge's budget: 5 is before 4


def _why(options: argparse.Namespace) -> int:
    """Print where two runs differ, in place of the differences of their metrics."""
    from sightline.cli.printing import print_tables
    from sightline.evaluation.reports import why_tables

    others = ("tests", "list", "margin", "plot", "judge", "fail_if", "policy", "by", "metric", "against")
    for name in others:
        if getattr(options, name) not in (None, False, []):
            word = name.replace("_", "-")
            raise UserError(f"--{word} is about metrics, and --why is not", expected=f"--why, or --{word}")
    words = [*options.base, *(word for other in options.other for word in other)]
    if len(words) != 2:
        raise UserError(
            f"--why compares two runs, found {len(words)}", expected="sightline compare A B --why"
        )
    tables = why_tables(words[0], words[1], options.store, full=options.format in ("csv", "json"))
    print_tables(tables, options.format, is_brief=options.format == "table" and not options.all)
    return 0


def _judge(compared: ComparedRuns, options: argparse.Namespace) -> tuple[list[ReportTable], int]:
    """Ask the judge about the pairs of answers; returns the tables and the exit status."""
    import asyncio

    from sightline.cli.build_options import print_requests
    from sightline.cli.printing import judge_estimate, print_budget_stop
    from sightline.config import load_config
    from sightline.engine.client import ModelClient
    from sightline.evaluation.pairwise import estimate_judging, judge_answers, pairwise_tables
    from sightline.scoring.scorer import JUDGE_SAMPLING

    comparison, judge = compared.comparison, options.judge
    gen = pairs(options.judge_gen, "--judge-gen")
    client = ModelClient(client_options(options, judge, gen=gen, keyless=options.dry_run), JUDGE_SAMPLING)
    with client.store(only_read=options.dry_run) as store:
        price = load_config(options.config).price(judge)
        estimate = judge_estimate(estimate_judging(comparison, judge, client, store, price, options.data))
        if options.dry_run:
            print_line(estimate)
            return [], 0
        print_note(estimate)
        judging = judge_answers(
            comparison, judge, client, store, options.data, show_progress=not options.quiet
        )
        judgements = asyncio.run(judging)
    print_requests(client)
    if is_stopped := client.counts.stopped == "budget":
        print_budget_stop("judging")
    full = options.format == "json"
    tables = pairwise_tables(comparison, judgements, options.by, full=full)
    return tables, 4 if is_stopped else 1 if judgements.without_verdict else 0


def _refuse_of_two(options: argparse.Namespace) -> None:
    """Refuse the options that show more of one pair than a row."""
    for name in ("tests", "list", "margin", "plot", "judge"):
        if getattr(options, name) not in (None, False):
            raise UserError(f"--{name} shows one comparison", expected="two runs, or no --" + name)


def _tables(compared: Sequence[ComparedRuns], options: argparse.Namespace) -> list[ReportTable]:
    """The tables, then those of changed answers; CSV holds the differences, or with --list the answers.

    What a reader sees first has a sentence on changed answers instead of their table.
    """
    from sightline.reporting.comparison import (
        answers_table,
        comparison_table,
        counts_table,
        listed_answers,
        sides_table,
        with_changes,
    )

    full = options.format in ("csv", "json")
    if len(compared) > 1:
        return [comparison_table(compared, full=full)]
    comparison = compared[0].comparison
    tables = compared[0].tables(all_tests=options.tests, full=full)
    listed = []
    if options.list or options.format == "json":
        listed = [answers_table(comparison, listed_answers(comparison, options.list), full=full)]
    if options.format == "csv":
        return listed or tables
    if options.format == "table" and not options.all and not listed:
        return [with_changes(tables[0], comparison), *tables[1:]]
    sides = [sides_table(comparison)] if options.format == "json" else []
    return [*tables, counts_table(comparison), *sides, *listed]


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _margin(word: str) -> float:
    try:
        margin = float(word)
    except ValueError:
        margin = math.nan
    if not 0 < margin < math.inf:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of percentage points above 0")
    return margin
