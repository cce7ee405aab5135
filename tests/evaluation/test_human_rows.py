"""Humans as rows: the average of CODIS' Table 9 is Table 3's row, with the interval of two-way clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.api import OLS

from sightline import api
from sightline.evaluation.reports import report_runs
from sightline.metrics.statistics import two_sided_quantile, wilson
from sightline.types import MetricValue, Result

TABLE_9 = {"A": (324, 654), "B": (292, 596), "C": (314, 631), "D": (295, 597), "E": (296, 617)}
"""The right pairs of 353 and the right queries of 706 that fit the printed shares of each human."""

Right = Mapping[str, tuple[bool, bool]]
"""Whether a human answered each of the two queries of a pair right."""


@pytest.fixture(scope="session")
def data(shared: Path) -> Path:
    return shared / "data" / "codis"


def records(data: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((data / "data.json").read_text())
    return found


def score(data: Path, folder: Path, name: str, right: Right) -> str:
    """Score a human, whose wrong answers are those of the other context, on the pairs that they answered."""
    lines = []
    for record in records(data):
        if record["id"] not in right:
            continue
        for nth, is_right in enumerate(right[str(record["id"])]):
            answer = record["answer"][f"answer_{nth + 1 if is_right else 2 - nth}"]
            line = {"id": record["id"], "variant": f"context_{nth + 1}", "response": answer}
            lines.append(json.dumps(line))
    (folder / f"{name}.jsonl").write_text("\n".join(lines))
    out = folder / f"{name} {len(lines)}"
    api.score(
        "codis", folder / f"{name}.jsonl", data=data, model=f"human:{name}", only_answered=True, out=out
    )
    return str(out)


def drawn(data: Path, pairs: int, queries: int, seed: int) -> Right:
    """A number of pairs with both queries right, and single right queries among the others."""
    ids = np.random.default_rng(seed).permutation([str(record["id"]) for record in records(data)])
    single = queries - 2 * pairs
    return {name: (nth < pairs + single, nth < pairs) for nth, name in enumerate(ids)}


def value(result: Result, metric: str, subset: str = "all") -> MetricValue:
    return next(one for one in result.metrics if (one.metric, one.subset) == (metric, subset))


def test_the_average_of_table_9_is_the_human_row_of_table_3(data: Path, tmp_path: Path) -> None:
    """Its interval is that of statsmodels' error, clustered by humans and by images."""
    humans = {name: drawn(data, *counts, seed) for seed, (name, counts) in enumerate(sorted(TABLE_9.items()))}
    folders = [score(data, tmp_path, name, right) for name, right in humans.items()]
    shown = report_runs(folders, "")
    average, best, worst, span = shown.humans
    names = ["average", "best (A)", "worst (B)", "range"]
    assert [row.model for row in shown.humans] == [f"Humans, {name}" for name in names]
    assert [round(value(average, name).value or 0, 1) for name in ("acc_p", "acc_q")] == [86.2, 87.7]
    assert [round(value(best, name).value or 0, 1) for name in ("acc_p", "acc_q")] == [91.8, 92.6]
    assert [round(value(worst, name).value or 0, 1) for name in ("acc_p", "acc_q")] == [82.7, 84.4]
    assert value(span, "acc_p").value == pytest.approx(100 * (324 - 292) / 353)
    found = {figure.row: figure for figure in value(average, "acc_p").published or ()}
    assert (found["Human"].value, found["Human"].also) == (86.2, ("Table 9",))

    # One pair an image: clusters have one size, so that no correction for it is to choose.
    chosen = list({str(record["image_id"]): str(record["id"]) for record in records(data)}.values())
    part = [score(data, tmp_path, name, {one: of[one] for one in chosen}) for name, of in humans.items()]
    crossed = value(report_runs(part, "").humans[0], "acc_p")
    right = np.array([[all(of[one]) for one in chosen] for of in humans.values()], float)
    groups = np.indices(right.shape).reshape(2, -1).T
    fit = OLS(right.ravel(), np.ones(right.size)).fit(cov_type="cluster", cov_kwds={"groups": groups})
    share, error = float(fit.params[0]), float(fit.bse[0])
    effective = np.array(share * (1 - share) / error**2)
    expected = wilson(np.array(share), effective, two_sided_quantile(np.array(4.0)))
    assert crossed.value == pytest.approx(100 * share)
    assert (crossed.low, crossed.high) == pytest.approx([100 * float(bound) for bound in expected])
    assert (crossed.n, crossed.clusters) == (5 * len(chosen), len(chosen))


def test_a_row_of_the_best_human_holds_that_humans_values_only(data: Path, tmp_path: Path) -> None:
    """As II-Bench's Human_best, which sums to one number of right answers in all columns."""
    ids = [str(record["id"]) for record in records(data)[:60]]
    pairs = {name: (nth < 30, nth < 30) for nth, name in enumerate(ids)}
    queries = {name: (True, nth < 20) for nth, name in enumerate(ids)}
    shown = report_runs([score(data, tmp_path, "A", queries), score(data, tmp_path, "B", pairs)], "")
    average, best, worst, _ = shown.humans
    assert (best.model, worst.model) == ("Humans, best (B)", "Humans, worst (A)")
    assert [value(best, name).value for name in ("acc_p", "acc_q")] == [50, 50]
    assert [value(worst, name).value for name in ("acc_p", "acc_q")] == pytest.approx([100 / 3, 200 / 3])
    assert value(average, "acc_q").value == pytest.approx(700 / 12)
    assert "fewer than 5 humans" in (value(average, "acc_q").reason or "")
    rows = {row[0]: row for row in shown.tables(pivot=True)[0].rows}
    assert {"Humans, average", "Humans, best (B)", "Humans, worst (A)", "Humans, range"} < rows.keys()


def test_a_tie_on_the_first_metric_is_broken_by_the_next(data: Path, tmp_path: Path) -> None:
    ids = [str(record["id"]) for record in records(data)[:20]]
    fewer = {name: (nth < 10, nth < 10) for nth, name in enumerate(ids)}
    more = {name: (True, nth < 10) for nth, name in enumerate(ids)}
    shown = report_runs([score(data, tmp_path, "A", fewer), score(data, tmp_path, "B", more)], "")
    _, best, worst, _ = shown.humans
    assert (best.model, worst.model) == ("Humans, best (B)", "Humans, worst (A)")
    assert "of 2 that are equal, by the next metrics" in best.notes[0]


def test_rows_name_ties_unequal_shares_and_humans_that_are_not_among_them(data: Path, tmp_path: Path) -> None:
    ids = [str(record["id"]) for record in records(data)[:40]]
    folders = [score(data, tmp_path, name, dict.fromkeys(ids, (True, True))) for name in ("A", "B")]
    (average, best, *_) = report_runs(folders, "").humans
    assert "CI" not in average.notes[0]
    assert "(the first of 2 that are equal)" in best.notes[0]
    fewer = score(data, tmp_path, "C", dict.fromkeys(ids[:30], (False, True)))
    (average, *_) = report_runs([*folders, fewer], "").humans
    assert (
        "the humans answered 60 to 80 probes: best, worst and range compare different ones" in average.notes
    )


def test_a_model_and_one_human_make_no_rows(data: Path, tmp_path: Path) -> None:
    right = {str(record["id"]): (True, True) for record in records(data)[:10]}
    assert report_runs([score(data, tmp_path, "A", right)] * 2, "").humans == []
