"""`sightline adapter report`: the effect of an adapter on the tasks that it ran on, and its cost."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_printing, add_store
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.adapter.saved_adapter import SavedAdapter
    from sightline.engine.store import Store
    from sightline.reporting.adapter_tables import Cost
    from sightline.results.adapter_runs import AdapterRuns

SUMMARY = "compare runs with and without an adapter, as in Table 6 of MM-R3, and show its cost"

EXAMPLE = """examples:
  sightline run mmr3:restyling --model mini --data test/mmr3
  sightline run mmr3:restyling --model mini --data test/mmr3 --model-arg adapter=adapter
  sightline adapter report adapter
  sightline adapter report seed0 seed1 seed2 --by style      three adapters of one kind, pooled
  sightline adapter report adapter --runs 3,7                run 7 with the adapter, run 3 without it

For each task, this compares the newest pair of runs, one with and one without the adapter, that have the same
data, options and judges. Requests that the adapter refused because of a training image are left out on both
sides, and counted. It sends no requests.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `adapter report`."""
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("folder", nargs="+", metavar="DIR", help="output of `sightline adapter train`; several are pooled")
    add(
        "--runs",
        action="append",
        default=[],
        metavar="WITHOUT,WITH",
        help="compare these two runs (numbers or names); may repeat (default: the newest pair for each task)",
    )
    add(
        "--metric",
        action="append",
        metavar="NAME",
        help="metric to print; may repeat (default: those of Table 6, and agree)",
    )
    add_printing(parser)
    add_store(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the tables; returns the exit status."""
    from sightline.adapter.requirements import check_installed

    check_installed()
    from sightline.adapter.saved_adapter import SavedAdapter
    from sightline.cli.printing import print_tables
    from sightline.engine.store import Store
    from sightline.evaluation.adapter_report import compare_adapter_runs
    from sightline.reporting.adapter_tables import SHOWN, adapted_table, cost_table, run_notes
    from sightline.reporting.comparison import check_label

    adapters = [SavedAdapter(Path(folder)) for folder in options.folder]
    store = Store.open(options.store, create=False)
    try:
        found = _runs(store, adapters, options.runs)
        compared = [compare_adapter_runs(store, task) for task in found]
        pairs = [pair for task in found for pair in task.runs]
        costs = [_cost(store, adapter, pairs) for adapter in adapters]
    finally:
        store.close()
    comparisons = [one.comparison for one in compared]
    known = {change.metric for comparison in comparisons for change in comparison.differences}
    for name in options.metric or []:
        if name not in known:
            raise UserError(
                f"--metric {name}: these runs have no such metric", expected=", ".join(sorted(known))
            )
    check_label(options.by, comparisons)
    metrics = options.metric or [name for name in SHOWN if name in known] or sorted(known)
    tables = [adapted_table(comparisons, metrics, options.by, run_notes(compared)), cost_table(costs)]
    print_tables(tables[:1] if options.format == "csv" else tables, options.format)
    return 0


def _runs(store: Store, adapters: Sequence[SavedAdapter], named: Sequence[str]) -> list[AdapterRuns]:
    """The runs to compare: those that the user named, or the newest pairs."""
    from sightline.evaluation.adapter_report import find_adapter_runs, named_adapter_runs
    from sightline.results.run_names import find_run

    identities = [adapter.identity for adapter in adapters]
    if not named:
        return find_adapter_runs(store, identities)
    pairs = []
    for text in named:
        without, comma, adapted = text.partition(",")
        if not comma or "," in adapted:
            raise UserError(f"--runs {text}: two runs are needed", expected="WITHOUT,WITH, such as 3,7")
        pairs.append((find_run(store, without), find_run(store, adapted)))
    return named_adapter_runs(store, identities, pairs)


def _cost(store: Store, adapter: SavedAdapter, pairs: Sequence[tuple[int, int]]) -> Cost:
    """What one adapter costs, by its files and by the answers of its runs."""
    from sightline.evaluation.adapter_report import adapter_of, mean_latency
    from sightline.reporting.adapter_tables import Cost

    own = [pair for pair in pairs if adapter_of(store, pair[1]) == adapter.identity]
    return Cost(
        folder=str(adapter.folder),
        kind=f"{adapter.metadata.adapter.__struct_config__.tag}, {adapter.metadata.training.get('loss', '')}",
        trained_on=", ".join(name for name, _ in adapter.metadata.training.get("data", ())),
        parameters=adapter.parameters,
        model=adapter.metadata.parameters,
        memory=adapter.memory,
        before=mean_latency(store, [base for base, _ in own]),
        after=mean_latency(store, [other for _, other in own]),
    )
