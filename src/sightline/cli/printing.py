"""Printing by commands: numbers on standard output, information about the run on standard error."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from sightline.errors import EnvironmentFailedError, UserError
from sightline.text import counted, discard, for_json, print_document, print_line, print_note
from sightline.types import Result

if TYPE_CHECKING:
    from sightline.engine.limits import Counts
    from sightline.evaluation.estimate import RequestsEstimate, RunEstimate
    from sightline.evaluation.result import Evaluation
    from sightline.reporting.table import ReportTable
    from sightline.scoring.scorer import Explanation


def print_json(body: object) -> None:
    with output_errors():
        document = msgspec.json.format(msgspec.json.encode(body), indent=1).decode()
        print_document(for_json(document) + "\n")


def by_reason(named: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group names by their reason, in the order of first occurrence.

    >>> by_reason([("a", "broken"), ("b", "empty"), ("c", "broken")])
    {'broken': ['a', 'c'], 'empty': ['b']}
    """
    found: dict[str, list[str]] = {}
    for name, why in named:
        found.setdefault(why, []).append(name)
    return found


def print_tables(tables: Sequence[ReportTable], form: str, *, is_brief: bool = False) -> None:
    """Print tables; with `is_brief`, the worst notes only, if a reader and no program reads them."""
    with output_errors():
        if form == "table":
            from sightline.reporting.table import show

            if left_out := show(tables, is_brief=is_brief):
                print_line(f"all metrics, all tables and {counted(left_out, 'more note')}: --all")
        else:
            from sightline.reporting.tables import tables_text

            print_document(tables_text(tables, form))


def plain_table(
    title: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]], notes: Iterable[str] = ()
) -> ReportTable:
    """A table of texts and counts; the name of a column of counts begins with `#`."""
    from sightline.reporting.table import Column, ReportTable

    described = (
        Column("count" if name.startswith("#") else "text", name.lstrip("#"), name.lstrip("#"))
        for name in columns
    )
    return ReportTable(title, tuple(described), tuple(rows), tuple(notes))


def print_evaluation(
    evaluation: Evaluation, form: str, by: str | None, name: str | None = None, *, whole: bool = True
) -> int:
    """Print the results of an evaluation, and the summary of its run, by its name if it has one."""
    if evaluation.explanations and form in ("json", "csv"):
        _print_explained(evaluation, form)
    else:
        _print_result(evaluation.result, form, by, name, whole=whole)
        if evaluation.explanations:
            print_tables([explanation_table(evaluation.explanations)], form)
    print_run_summary(evaluation)
    return evaluation.exit_status


def _print_result(result: Result, form: str, by: str | None, name: str | None, *, whole: bool) -> None:
    if form == "json":
        print_json(result)
        return
    from sightline.reporting.tables import first_view, summary

    is_brief = form == "table" and not whole
    tables = (first_view if is_brief else summary)([result], by, [name] if name else ())
    print_tables(tables[:1] if form == "csv" else tables, form, is_brief=is_brief)


def _print_explained(evaluation: Evaluation, form: str) -> None:
    """Print the explanations with the fields of metrics.json (JSON), or alone: a CSV file is one table."""
    if form == "json":
        print_json({**msgspec.to_builtins(evaluation.result), "explanations": evaluation.explanations})
    else:
        print_tables([explanation_table(evaluation.explanations)], form)


def explanation_table(explanations: Sequence[Explanation]) -> ReportTable:
    """A row for each response; the column of draws only where there are several."""
    drawn = any(one.draw for one in explanations)
    names = ("sample", "variant", *(["draw"] if drawn else []), "verdict", "option", "rule", "words")
    rows = (tuple(str(getattr(one, name)) for name in names) for one in explanations)
    return plain_table("Verdicts explained, the worst first", names, rows)


def print_run_summary(evaluation: Evaluation) -> None:
    """Print the summary of a run: its results folder, its requests, the probes without an answer."""
    result, counts = evaluation.result, evaluation.counts
    if evaluation.out:
        print_note(f"results: {evaluation.out}")
    _print_run(evaluation)
    captioned, judged = evaluation.caption_counts, evaluation.judge_counts
    for what, asked in (("captions", captioned), ("judges", judged)):
        if asked.sent or asked.cached:
            _print_requests(what, asked)
    for reason in dict.fromkeys(captioned.unavailable + counts.unavailable + judged.unavailable):
        print_note(f"not used: {reason}")
    stops = (
        (captioned.stopped, "captioning"),
        (counts.stopped, "requests to the model"),
        (judged.stopped, "judging"),
    )
    for stopped, what in stops:
        if stopped == "budget":
            print_budget_stop(what)
        elif stopped == "host":
            reason = captioned.last_error or counts.last_error or judged.last_error
            print_note(f"{what} stopped: too many failed in a row ({reason})")
    _print_in_batches(evaluation)
    if result.errors:
        _print_failed(evaluation)
    if result.not_sent:
        print_note(f"{result.not_sent:,} of {result.probes:,} probes were not sent")
    print_conditions_met(evaluation.conditions_met)


def _print_run(evaluation: Evaluation) -> None:
    """Print the number of the run with its requests, of which a run of `score` has none."""
    if evaluation.counts.total or evaluation.counts.cached:
        _print_requests(f"run {evaluation.run}", evaluation.counts)
    elif evaluation.run is not None:
        print_note(f"run {evaluation.run} of {evaluation.store}")
    if evaluation.name_moved:
        print_note(evaluation.name_moved)


def _print_requests(what: str, counts: Counts) -> None:
    print_note(f"{what}: {requests_summary(counts)}")
    print_saved(what, counts)


def print_saved(what: str, counts: Counts) -> None:
    """Print what equal requests saved."""
    if equal := saved_by_equal_requests(counts):
        print_note(f"{what}: {equal}")


def saved_by_equal_requests(counts: Counts) -> str:
    equal = counts.equal
    if not equal.requests:
        return ""
    tokens = f", {equal.tokens:,} tokens" if equal.tokens else ""
    saved = f", cost {equal.cost:.2f} saved" if equal.cost > 0 else ""
    return f"{counted(equal.requests, 'request')} not sent, because equal ones were{tokens}{saved}"


def _print_in_batches(evaluation: Evaluation) -> None:
    """Print how many requests were left to batches, and how to get their answers."""
    if number := sum(counts.held_back for counts in evaluation.all_counts):
        print_note(
            f"{counted(number, 'request')} not sent, because a batch at the provider holds them; add --batch"
            " to fetch the answers, or --fresh TAG to ask everything again"
        )


def print_budget_stop(what: str) -> None:
    """Print that a budget is reached, and how to continue."""
    print_note(f"{what} stopped at the budget; run the same command with a larger budget to continue")


def print_conditions_met(conditions: Iterable[str]) -> None:
    for condition in conditions:
        print_note(f"--fail-if {condition}")


def _print_failed(evaluation: Evaluation) -> None:
    """Print the probes whose requests failed by reason, and how to retry them."""
    from sightline.reporting.notes import without_answer

    result = evaluation.result
    print_note(f"{without_answer(result)}:")
    named = ((f"{sample} {variant}", why) for sample, variant, why in evaluation.unanswered)
    for why, probes in by_reason(named).items():
        print_note(f"  {why}: {', '.join(probes)}")
    if result.errors > len(evaluation.unanswered):
        print_note(f"  and {result.errors - len(evaluation.unanswered)} more")
    if evaluation.counts.total:
        print_note(
            "run the same command to retry temporary failures and unreadable images; add --retry-errors to"
            " retry the others too"
        )


def requests_summary(counts: Counts) -> str:
    """Describe requests in one line: how many were sent and cached, and their cost."""
    checks = f" ({counts.checks:,} to check the endpoint)" if counts.checks else ""
    parts = [f"sent {counts.sent:,}{checks}", f"cached {counts.cached:,}", f"retries {counts.retried:,}"]
    if tokens := counts.tokens:
        parts.append(f"{tokens:,} tokens")
    if counts.cost:
        parts.append(f"cost {counts.cost:.2f}")
    return ", ".join(parts)


def print_estimate(estimate: RunEstimate, form: str) -> None:
    if form == "json":
        print_json(estimate)
        return
    for name in estimate.__struct_fields__:
        value = getattr(estimate, name)
        if isinstance(value, int) and not isinstance(value, bool):
            print_line(f"{name.replace('_', ' '):<28}{value:,}")
    for judge in estimate.judges:
        print_line(judge_estimate(judge))
    costs = {"expected cost": estimate.expected_cost, "cost at full length": estimate.full_length_cost}
    if estimate.judges:
        costs["expected cost with judges"] = estimate.total_expected_cost
        costs["at full length with judges"] = estimate.total_full_length_cost
    for what, cost in costs.items():
        print_line(f"{what:<28}{_cost(cost)}")
    for note in estimate.notes:
        print_note(note)
    for script in estimate.scripts:
        print_line()
        for line in script.splitlines():
            print_line(line)


def judge_estimate(judge: RequestsEstimate) -> str:
    return (
        f"judge {judge.model}: {judge.requests:,} requests, {judge.cached:,} cached,"
        f" {judge.to_ask:,} to ask (at most {judge.to_ask_at_most:,}{_files(judge)}),"
        f" expected cost {_cost(judge.expected_cost)},"
        f" cost at full length {_cost(judge.full_length_cost)}"
    )


def _files(judge: RequestsEstimate) -> str:
    if judge.batch_files is None or judge.batch_bytes is None:
        return ""
    return f"; in batches: {counted(judge.batch_files, 'file')}, {judge.batch_bytes:,} bytes"


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.2f}"


def is_confirmed(command: str, lines: Iterable[str]) -> bool:
    """Print what a command deletes and what stays, and ask; without a terminal, it needs --yes."""
    if not sys.stdin.isatty():
        raise UserError(f"{command} asks before it deletes, and there is no terminal", expected="--yes")
    for line in lines:
        print_line(line)
    return input("delete? [y/N] ").strip().casefold() in ("y", "yes")


# -- Standard streams that are closed, closed early as by `head`, cannot be written, or lack characters


def open_streams() -> None:
    """Open what is closed of the standard streams, and escape characters that their encodings lack.

    A file that is opened while one is closed would get its number, and then what is written to the stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    codecs.register_error("sightline.json", _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="sightline.json")


def _escape(error: UnicodeError) -> tuple[str, int]:
    r"""Write characters as JSON escapes them: `\u00eb`, and two for one beyond U+FFFF."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


@contextmanager
def output_errors() -> Iterator[None]:
    """Handle errors of standard output: a closed pipe ends the block without an error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        if error.filename is not None:
            raise
        discard(sys.stdout)
        raise _unwritten(error) from None


def flush_output() -> None:
    """Write what is buffered; what cannot be written is discarded, or Python would change the exit status.

    Raises:
        EnvironmentFailedError: Standard output is lost, and not because its reader left.
    """
    try:
        with output_errors():
            pass
    finally:
        try:
            sys.stderr.flush()
        except OSError:
            discard(sys.stderr)


def _unwritten(error: OSError) -> EnvironmentFailedError:
    return EnvironmentFailedError(f"standard output: cannot be written: {error.strerror}")
