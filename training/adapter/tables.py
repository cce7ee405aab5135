"""Writes the tables of docs/adapters.md from the committed results, without the model and without torch.

python -m training.adapter.tables prints them; --write puts them between the markers of the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sightline.benchmarks.released import published
from sightline.metrics.significance import holm
from sightline.metrics.statistics import LEVEL
from training.adapter.design import (
    KINDS,
    LOSSES,
    MAIN,
    MARGIN,
    PAPER_RATE,
    RATES,
    SEARCH_SEEDS,
    SENTENCES,
    TASKS,
    WHOLE,
    Arm,
    Loss,
    RateUnit,
)
from training.adapter.intervals import Estimate, estimate
from training.adapter.measured import Measured, missing_units
from training.adapter.result_files import METRICS, RESULTS, ResultFiles

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
START = "<!-- python -m training.adapter.tables --write replaces what follows -->"
END = "<!-- end of what it replaces -->"
COMMAND = "python -m training.adapter.study --resume"
ONE_WORD = "restyling, one word"
PAPER_MODELS = {
    "BLIP-2, Table 6": ("BLIP-2 (Ori.)", "BLIP-2 + adapter"),
    "LLaVA, Table 6": ("LLaVa 1.5M (Ori.)", "LLaVa 1.5M + adapter"),
}
ONE_SIDED = 0.025
"""The level of the one-sided tests of non-inferiority."""

Cells = Sequence[Sequence[Estimate | str]]


def section(results: ResultFiles) -> str:
    """Write the tables.

    Args:
        results: The results.

    Returns:
        Markdown; one sentence while results are missing.
    """
    design = results.design()
    if design is None:
        return f"No results are there yet. `{COMMAND}` computes them.\n"
    if missing_units(results, design):
        return f"The results are not complete yet: `{COMMAND}` continues the computation.\n"
    measured = Measured(results, design)
    return "\n".join(part for table in TABLES for part in (*table(measured), ""))


def effects(measured: Measured) -> Iterator[str]:
    """The effect of each kind, for each loss."""
    for loss in LOSSES:
        arms = [Arm(kind, loss) for kind in KINDS]
        paper = loss == "ce"
        head = ["", "without", *(f"`{arm.kind}`" for arm in arms), *(PAPER_MODELS if paper else ())]
        titles: list[str] = []
        cells: list[list[Estimate | str]] = []
        for task in TASKS:
            for metric in METRICS:
                titles.append(f"{task} {metric}")
                row = [estimate(measured.differences(arm, task, metric)) for arm in arms]
                base = f"{measured.base_mean(task, metric):.1f}"
                cells.append([base, *row, *(_printed(task, metric) if paper else ())])
        counts = [f"{measured.arms[arm][0].parameters:,}" for arm in arms]
        first = ["parameters", "", *counts, *("" for _ in (PAPER_MODELS if paper else ()))]
        if loss != LOSSES[0]:
            yield ""
        yield f"`--loss {loss}`, differences in points:\n"
        yield from _table(head, titles, cells, first)


def non_inferiority(measured: Measured) -> Iterator[str]:
    """Whether acc is not worse by more than the margin."""
    found = [[estimate(measured.differences(arm, task, "acc")) for task in TASKS] for arm in MAIN]
    corrected = iter(holm([one.p_above(-MARGIN) for row in found for one in row]))
    yield f"Is acc worse by less than {MARGIN:g} points (lower 95 % bound; one-sided test, Holm)?\n"
    yield _line(["", *(f"{task} acc" for task in TASKS)])
    yield _rule(len(TASKS) + 1)
    for arm, row in zip(MAIN, found, strict=True):
        verdicts = ["yes" if (next(corrected) or 0) <= ONE_SIDED else "not shown" for _ in row]
        texts = [f"{one.low:+.1f}: {said}" for one, said in zip(row, verdicts, strict=True)]
        yield _line([arm.title, *texts])


def comparisons(measured: Measured) -> Iterator[str]:
    """Arms with each other, seed by seed."""
    pairs = [
        (f"{what}, `{loss}`", Arm(first, loss), Arm(second, loss))
        for what, first, second in (
            ("equal parameters: `lora` less `bilstm-47`", "bilstm-47", "lora"),
            ("`lora` less `bilstm`", "bilstm", "lora"),
            ("`bilstm` less `prefix`", "prefix", "bilstm"),
            ("`bilstm` less `bilstm-47`", "bilstm-47", "bilstm"),
        )
        for loss in LOSSES
    ]
    pairs += [
        (f"`ce+consistency` less `ce`, `{kind}`", Arm(kind, "ce"), Arm(kind, "ce+consistency"))
        for kind in KINDS
    ]
    columns = [(task, metric) for task in TASKS for metric in ("acc", "con")]
    cells = [
        [estimate(measured.between(first, second, *column)) for column in columns]
        for _, first, second in pairs
    ]
    yield "Arms compared with each other:\n"
    yield from _table(["", *map(" ".join, columns)], [title for title, _, _ in pairs], cells)


def form(measured: Measured) -> Iterator[str]:
    """Restyling with the instruction of the training, and with one that asks for one word."""
    metrics = ("acc", "con", "agree")
    columns = [(test, metric) for test in ("restyling", ONE_WORD) for metric in metrics]
    head = [
        "",
        *(f"described: {metric}" for metric in metrics),
        *(f"one word: {metric}" for metric in metrics),
    ]
    tokens = [measured.base.tokens[test] for test in ("restyling", ONE_WORD)]
    base = [f"{measured.base_mean(*column):.1f}" for column in columns]
    arms = (*MAIN, *SENTENCES)
    cells: list[list[Estimate | str]] = [
        [estimate(measured.differences(arm, *column)) for column in columns] for arm in arms
    ]
    yield (
        "The form of the answer in restyling. Without an adapter, an answer has"
        f" {tokens[0]:.1f} tokens when a description is\nasked for, and {tokens[1]:.1f} when one word is:\n"
    )
    yield from _table(head, ["without", *(arm.title for arm in arms)], [base, *cells])


def left_out(measured: Measured) -> Iterator[str]:
    """The labels that the training leaves out."""
    arms = [Arm(kind, loss) for loss in LOSSES for kind in ("bilstm", "lora")] + list(WHOLE)
    titles: list[str] = []
    cells: list[list[Estimate | str]] = []
    for task in TASKS:
        for metric in ("acc", "con"):
            titles.append(f"{measured.label(task)} {metric}")
            row = [estimate(measured.label_differences(arm, task, metric)) for arm in arms]
            cells.append([f"{measured.label_base_mean(task, metric):.1f}", *row])
    yield "A phrasing, a style and a colour that the training leaves out, except in the last two columns:\n"
    yield from _table(["", "without", *(arm.title for arm in arms)], titles, cells)


def seeds(measured: Measured) -> Iterator[str]:
    """The difference of con for each seed."""
    yield "The difference of con of each seed, and the standard deviation between seeds:\n"
    yield _line(["", *(f"{task} con" for task in TASKS)])
    yield _rule(len(TASKS) + 1)
    for arm in MAIN:
        texts = []
        for task in TASKS:
            values = measured.differences(arm, task, "con")
            each = " ".join(f"{mean:+.1f}" for mean in values.mean(axis=1))
            texts.append(f"{each} (SD {estimate(values).seeds:.1f})")
        yield _line([arm.title, *texts])


def rates(measured: Measured) -> Iterator[str]:
    """The search of the learning rates."""
    yield (
        "The learning rates: acc + agree on held-out groups for each of the seeds"
        f" {' and '.join(map(str, SEARCH_SEEDS))}; the chosen rate is bold:\n"
    )
    yield _line(["", *(f"`{loss}`" for loss in LOSSES)])
    yield _rule(len(LOSSES) + 1)
    for kind in RATES:
        yield _line([f"`{kind}`", *(_rates_of(measured, kind, loss) for loss in LOSSES)])


def paper_rate(measured: Measured) -> Iterator[str]:
    """The paper's learning rate."""
    curve, sizes = measured.paper.curve, measured.design.sizes
    yield (
        f"The paper's learning rate, {PAPER_RATE:g}, with `bilstm` and `ce`, one seed,"
        f" {measured.paper.test.steps:,} steps of {sizes.batch} groups. On held-out groups:\n"
    )
    yield _line(["step", *(f"{point.step:,}" for point in curve)])
    yield _rule(len(curve) + 1)
    yield _line(["loss", *(f"{point.held.loss:.3f}" for point in curve)])
    yield _line(["acc", *(f"{100 * point.held.acc:.1f}" for point in curve)])
    yield _line(["agree", *(f"{100 * point.held.agree:.1f}" for point in curve)])
    yield "\nIn the test, differences in points; with one seed, the intervals cover the groups only:\n"
    cells = [[estimate(measured.paper_differences(task, metric)) for metric in METRICS] for task in TASKS]
    yield from _table(["", *METRICS], TASKS, cells)


def costs(measured: Measured) -> Iterator[str]:
    """The processor time of trainings."""
    sizes = measured.design.sizes
    yield f"Processor time of a training of {sizes.steps} steps on one thread, with `ce`:\n"
    yield _line(["", *(f"`{kind}`" for kind in KINDS)])
    yield _rule(len(KINDS) + 1)
    means = []
    for kind in KINDS:
        times = [unit.training_seconds for unit in measured.arms[Arm(kind, "ce")]]
        means.append(f"{sum(times) / len(times):.0f} s")
    yield _line(["training", *means])


TABLES: Sequence[Callable[[Measured], Iterator[str]]] = (
    effects,
    non_inferiority,
    comparisons,
    form,
    left_out,
    seeds,
    rates,
    paper_rate,
    costs,
)


def with_section(page: str, text: str) -> str:
    """Put the tables into the page.

    Args:
        page: The page, with both markers.
        text: What `section` returned.

    Returns:
        The page.
    """
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"the page lacks {START if not start else END}")
    return f"{before}{START}\n\n{text.rstrip()}\n\n{END}{after}"


def _table(
    head: Sequence[str], titles: Sequence[str], cells: Cells, first: Sequence[str] | None = None
) -> Iterator[str]:
    """The lines of a table; differences that are significant after Holm's correction over it are bold."""
    corrected = iter(holm([one.p_value() for row in cells for one in row if isinstance(one, Estimate)]))
    yield _line(head)
    yield _rule(len(head))
    if first is not None:
        yield _line(first)
    for title, row in zip(titles, cells, strict=True):
        texts = [one if isinstance(one, str) else _cell(one, next(corrected)) for one in row]
        yield _line([title, *texts])


def _cell(one: Estimate, p: float | None) -> str:
    text = f"{one.mean:+.1f}"
    bold = f"**{text}**" if p is not None and p <= LEVEL else text
    return f"{bold} ({one.low:.1f} to {one.high:.1f})"


def _line(texts: Sequence[str]) -> str:
    return f"|{'|'.join(f' {text} ' if text else ' ' for text in texts)}|"


def _rule(columns: int) -> str:
    return _line(["---", *["---:"] * (columns - 1)])


def _rates_of(measured: Measured, kind: str, loss: Loss) -> str:
    """The scores of all rates of a kind and a loss."""
    used = measured.arms[Arm(kind, loss)][0].rate
    texts = []
    for rate in RATES[kind]:
        held = [measured.results.rate(RateUnit(kind, loss, rate, seed).name).held for seed in SEARCH_SEEDS]
        scores = ", ".join("diverged" if one is None else f"{100 * one.score:.1f}" for one in held)
        texts.append(f"{f'**{rate:g}**' if rate == used else f'{rate:g}'}: {scores}")
    return "; ".join(texts)


def _printed(task: str, metric: str) -> list[str]:
    """The figures of the paper's Table 6 without and with its adapter; '' where it has none."""
    texts = []
    for rows in PAPER_MODELS.values():
        found = [published("mmr3", task, row).get((metric, "all")) for row in rows]
        texts.append(" → ".join(f"{each[0].value:.1f}" for each in found if each) if all(found) else "")
    return texts


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the tables; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.adapter.tables", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--write", action="store_true", help="write them to docs/adapters.md")
    options = parser.parse_args(arguments)
    text = section(ResultFiles(options.results))
    if options.write:
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
