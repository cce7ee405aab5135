"""Several settings at a glance."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sightline.reporting.table import flat
from sightline.reporting.tables import overview
from sightline.types import Result

Make = Callable[..., Result]


def leading(result: Result, *names: str) -> Result:
    """The result with these metrics alone."""
    return replace(result, metrics=[m for m in result.metrics if m.metric in names])


def test_a_row_is_a_metric_and_a_column_a_model(codis: Make, iibench: Make) -> None:
    results = [
        leading(make(model=model), "acc_p", "accuracy")
        for make in (codis, iibench)
        for model in ("mini", "baseline/chance")
    ]
    table = overview("drawn scenes", results)
    assert [column.head for column in table.columns] == ["", "metric", "mini\n95 %", "chance\n95 %", "n"]
    rows = flat(table)
    assert [(row["setting"], row["metric"], row["mini value"], row["n"]) for row in rows] == [
        ("codis:default", "acc_p", 32.45, 353),
        ("iibench:none", "accuracy", 71.25, 1399),
    ]


def test_a_note_of_several_models_is_printed_once_with_their_names(codis: Make, iibench: Make) -> None:
    drawn = "drawn scenes"
    first = leading(codis(model="mini", notes=[drawn]), "acc_p")
    second = leading(codis(model="baseline/chance", notes=[drawn, "many are undecided"]), "acc_p")
    third = leading(iibench(model="mini", notes=[drawn]), "accuracy")
    assert overview("", [first, second, third]).all_notes == (
        drawn,
        "codis:default, baseline/chance: many are undecided",
        "codis: a model that ignores the context gets acc_p 0.0",
        "iibench: chance: accuracy 16.7 (one of six options)",
        "95 % CI: Wilson score interval with the effective number of units; samples that share an image form"
        " a cluster",
    )


def test_a_model_without_a_value_has_an_empty_cell(codis: Make) -> None:
    table = overview("", [leading(codis(model="a"), "acc_p", "acc_q"), leading(codis(model="b"), "acc_p")])
    assert table.rows[1][3] is None
