"""The published figures of ConTextual are its tables' and leaderboards', cell by cell, with their doubts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.released import (
    add_published,
    published,
    published_judges,
    published_responders,
    rows,
)
from sightline.types import MetricValue, PublishedValue, Result

MISCELLANEOUS = "category=Miscellaneous Natural Scenes"
SUBSETS = {
    "Overall": "all",
    "280 samples": "all",
    "Time": "category=time",
    "Shopping": "category=shopping",
    "Navigation": "category=navigation-transportation",
    "Abstract": "category=abstract",
    "Application Usage": "category=app",
    "Web Usage": "category=web",
    "Infographics": "category=infographics",
    "Misc. Natural Scenes": MISCELLANEOUS,
    "extractive reasoning (285)": "task=extractive",
    "math reasoning (66)": "task=math",
    "natural scenes": "scene=natural",
    "digital scenes": "scene=digital",
    "synthetic (200, Misc. Natural Scenes)": "all",
    "ConTextual (156, Misc. Natural Scenes)": MISCELLANEOUS,
}
COUNTS = {MISCELLANEOUS: 156, "task=extractive": 285, "task=math": 66, "scene=natural": 256} | {
    "scene=digital": 250,
    "all": 506,
}
NAMES = {
    "GPT-4V(ision)": "GPT-4V",
    "Human Performance": "Humans",
    "LLaVA-1.5B-13B": "LLaVA-1.5-13B",
    "Qwen-VL": "Qwen-VL-7B",
    "BLIVA": "BLIVA-Vicuna-7B",
    "GPT-4 w/ Layout-aware OCR (+ Caption in the text)": "GPT-4 w/ Layout-aware OCR",
}
METRICS = {"BLEURT": "bleurt", "Rouge-L": "rouge_l", "BERTScore": "bertscore"}


def transcribed(shared: Path) -> Iterator[tuple[str, str, str, str, str, float]]:
    """Table, setting, row, metric, subset and value of every printed figure but those of Table 4."""
    for row in json.loads((shared / "data/published/contextual.json").read_text())["rows"]:
        if row["table"] == 4:
            continue
        setting = "default"
        if row["metric"] == "gpt4v_eval":
            setting = "judged with the image"
        elif "val leaderboard" in str(row["table"]):
            setting = "val"
        elif row["subset"].startswith("synthetic"):
            setting = "synthetic"
        name = NAMES.get(row["model"], row["model"])
        metric = METRICS.get(row["metric"], "accepted")
        yield str(row["table"]), setting, name, metric, SUBSETS[row["subset"]], row["value"]


def test_every_transcribed_figure_is_held(shared: Path) -> None:
    """But one: Table 7 gives a model the figure that Table 5 and the text give it with captions."""
    missing = [
        (table, row, value)
        for table, setting, row, metric, subset, value in transcribed(shared)
        if value not in [one.value for one in published("contextual", setting, row).get((metric, subset), [])]
    ]
    assert missing == [("7", "GPT-4 w/ Layout-aware OCR", 27.3)]


def test_no_figure_is_held_that_is_not_transcribed(shared: Path) -> None:
    known = {
        (setting, row, metric, subset, value)
        for _, setting, row, metric, subset, value in transcribed(shared)
    }
    for setting in ("default", "judged with the image", "val", "synthetic"):
        for row in rows("contextual"):
            for (metric, subset), values in published("contextual", setting, row).items():
                assert {(setting, row, metric, subset, one.value) for one in values} <= known


def is_share(value: float, n: int) -> bool:
    return any(abs(100 * k / n - value) <= 0.0501 for k in range(n + 1))


@pytest.mark.parametrize("row", rows("contextual"))
def test_a_figure_that_is_no_count_of_all_instances_is_not_comparable_and_says_why(row: str) -> None:
    for setting, whole in (
        ("default", COUNTS),
        ("judged with the image", COUNTS),
        ("val", {"all": 100, MISCELLANEOUS: 30}),
        ("synthetic", {"all": 200}),
    ):
        for (metric, subset), values in published("contextual", setting, row).items():
            for one in values if metric == "accepted" else ():
                count = whole.get(subset, 10 if setting == "val" else 50)
                by_150 = setting == "default" and subset == MISCELLANEOUS
                if by_150 or not is_share(one.value, count):
                    assert not one.comparable, (subset, one)
                    assert one.note, (subset, one)


@pytest.mark.parametrize(
    ("row", "subset", "value", "told"),
    [
        ("Humans", MISCELLANEOUS, 78.0, "117 of 150"),
        ("Humans", MISCELLANEOUS, 78.0, "over the 156 of this category it is 75.0"),
        ("GPT-4V", MISCELLANEOUS, 48.0, "71 of 148"),
        ("GPT-4V", MISCELLANEOUS, 48.0, "it is 45.5"),
        ("GPT-4 w/ OCR", "category=abstract", 30.6, "15 of 49"),
        ("Gemini-Pro-Vision", "all", 40.2, "199 of 495"),
        ("Humans", "all", 80.1, "280 of the 506 instances, of which no count gives it"),
        ("GPT-4V", "all", 49.3, "280 of the 506 instances"),
        ("Humans", "all", 69.6, "351, of 504 responses"),
        ("Gemini-1.5-Pro-Preview-0514", "all", 52.4, "sum to 264"),
        ("LLaVA-Next-34B", "category=shopping", 30.6, "15 of 49"),
        ("LLaVA-Next-34B", "category=navigation-transportation", 30.6, "15 of 49"),
        ("LLaVA-Next-34B", "category=shopping", 36.0, "the other way round"),
        ("LLaVA-Next-34B", "category=shopping", 30.6, "the other way round"),
    ],
)
def test_the_doubts_of_a_figure_stand_beside_it(row: str, subset: str, value: float, told: str) -> None:
    figures: list[PublishedValue] = published("contextual", "default", row)["accepted", subset]
    (figure,) = [one for one in figures if one.value == value]
    assert not figure.comparable
    assert told in (figure.note or "")


def accepted_responses(figure: PublishedValue, n: int) -> int | None:
    """The count that a figure is of n, or of the denominator that its note states; None where it is of
    neither."""
    stated = re.match(r"(\d+) of (\d+)", figure.note or "")
    if stated:
        assert is_share(figure.value, int(stated[2])), figure
        return int(stated[1])
    counts = [k for k in range(n + 1) if abs(100 * k / n - figure.value) <= 0.0501]
    return counts[0] if len(counts) == 1 else None


@pytest.mark.parametrize("table", ["Table 5", "test leaderboard", "val leaderboard"])
def test_an_overall_figure_is_what_its_categories_sum_to_or_says_why_not(table: str) -> None:
    setting, whole = ("val", 100) if table == "val leaderboard" else ("default", 506)
    sizes = {MISCELLANEOUS: 30 if setting == "val" else 156}
    compared = 0
    for row in rows("contextual"):
        printed = {
            subset: one
            for (metric, subset), values in published("contextual", setting, row).items()
            for one in values
            if metric == "accepted" and one.table == table
        }
        each = 10 if setting == "val" else 50
        cells = {subset: one for subset, one in printed.items() if subset.startswith("category=")}
        counts = [accepted_responses(one, sizes.get(subset, each)) for subset, one in cells.items()]
        if len(counts) < 8 or None in counts:
            continue
        compared += 1
        total = sum(count for count in counts if count is not None)
        fits = abs(100 * total / whole - printed["all"].value) <= 0.0501
        assert fits or (not printed["all"].comparable and printed["all"].note), (row, total, printed["all"])
    assert compared == {"Table 5": 15, "test leaderboard": 6, "val leaderboard": 6}[table]


def test_the_denominators_of_table_5_are_those_that_the_reproduction_page_counts() -> None:
    """Cells of seven categories, of the miscellaneous scenes, and overall, by what they are counts of."""
    found: dict[str, Counter[int]] = {"categories": Counter(), "miscellaneous": Counter(), "all": Counter()}
    for row in rows("contextual"):
        for (metric, subset), values in published("contextual", "default", row).items():
            for one in values:
                if (metric, one.table) != ("accepted", "Table 5"):
                    continue
                kind = {"all": "all", MISCELLANEOUS: "miscellaneous"}.get(subset, "categories")
                stated = re.match(r"\d+ of (\d+)", one.note or "")
                whole = COUNTS.get(subset, 50)
                of = int(stated[1]) if stated else whole if is_share(one.value, whole) else 0
                found[kind][of if one.comparable or kind != "all" else 0] += 1
    assert found == {
        "categories": {50: 86, 49: 17, 48: 2},
        "miscellaneous": {150: 10, 148: 3, 146: 1, 144: 1},
        "all": {506: 8, 0: 7},
    }


def test_no_count_of_the_instances_that_table_7_names_gives_its_figures() -> None:
    named = ("LLaVA-1.5-13B", "ShareGPT-4V-7B", "GPT-4 w/ Layout-aware OCR", "GPT-4V")
    values = [published("contextual", "synthetic", row)["accepted", "all"][0].value for row in named]
    assert values == [39.8, 44.9, 51.1, 68.6]
    assert not any(is_share(value, 200) for value in values)
    assert not any(all(is_share(value, n) for value in values) for n in range(1, 201))


def test_the_columns_of_table_3_are_neither_all_of_280_nor_all_of_506() -> None:
    seen, humans = {}, {}
    for row in rows("contextual"):
        for one in published("contextual", "judged with the image", row).get(("accepted", "all"), []):
            seen[one.value] = is_share(one.value, 280), is_share(one.value, 506)
        for one in published("contextual", "default", row).get(("accepted", "all"), []):
            if "judged by humans" in (one.note or ""):
                humans[one.value] = is_share(one.value, 280)
                assert humans[one.value] != ("no count gives it" in (one.note or ""))
    assert {value for value, of in seen.items() if of == (True, False)} == {45.0, 37.1, 17.5}
    assert {value for value, of in seen.items() if of == (False, True)} == {17.6, 20.6}
    assert {value for value, of in humans.items() if not of} == {17.2, 27.8, 80.1}


def test_the_natural_scenes_of_gpt_4v_are_what_its_cells_sum_to() -> None:
    """27, 24 and 71 of shopping, navigation and the miscellaneous ones: 122 of 255 responses (Figure 21)."""
    figures = published("contextual", "default", "GPT-4V")
    places = ("category=shopping", "category=navigation-transportation", MISCELLANEOUS)
    natural = sum(accepted_responses(figures["accepted", place][0], 50) or 0 for place in places)
    assert natural == 122
    assert round(100 * natural / 255, 1) == figures["accepted", "scene=natural"][0].value == 47.8


def result(split: str, samples: int, **options: Any) -> Result:
    return Result(
        benchmark="contextual",
        setting="default",
        model="m",
        model_identity="m",
        judge="openai/gpt-4",
        options={"shots": 0, "judge_image": False, "split": split, **options},
        samples=samples,
        probes=samples,
        errors=0,
        misses=0,
        undecided=0,
        truncated=0,
        versions={},
        data_digest="",
        metrics=[MetricValue("accepted", "all", 50.0, samples, samples)],
    )


def figures(one: Result, row: str = "GPT-4V") -> list[tuple[float, bool]]:
    attached = add_published(one, row).metrics[0].published or []
    return [(value.value, value.comparable) for value in attached if value.row == row]


def test_a_run_is_set_beside_the_figures_of_its_split_and_judge() -> None:
    assert figures(result("test", 506)) == [(47.4, True), (49.3, False)]
    assert figures(result("val", 100)) == [(53.0, True)]
    assert figures(result("test", 506, judge_image=True)) == [(45.0, False)]
    assert figures(result("synthetic", 200)) == [(68.6, False)]
    assert figures(result("synthetic", 100)) == [(68.6, False)]
    assert figures(result("test", 498)) == [(47.4, False), (49.3, False)]
    assert figures(result("test", 506, shots=2)) == []


def test_the_judges_of_the_paper_are_those_of_table_4(shared: Path) -> None:
    names = {"BLEURT": "bleurt", "RougeL": "rouge_l", "BERTScore": "bertscore"}
    statistics = {"ROC-AUC": "roc_auc", "Spearman": "spearman"}
    printed = {
        (names.get(row["model"], row["model"]), statistics[row["metric"]]): row["value"]
        for row in json.loads((shared / "data/published/contextual.json").read_text())["rows"]
        if row["table"] == 4
    }
    judges = published_judges("contextual")
    assert judges is not None
    held = {
        (name, column): value
        for name, values in judges.rows.items()
        for column, value in zip(judges.columns, values, strict=True)
    }
    assert (judges.table, held) == ("Table 4", printed)
    assert published_judges("codis") is published_judges("groups") is None
    assert "bleurt" not in rows("contextual"), "a judge is no model to compare with"


def test_what_humans_judges_and_metrics_say_of_models_is_table_3(shared: Path) -> None:
    names = {"human_eval": "humans", "gpt4_eval": "GPT-4", "gpt4v_eval": "GPT-4V", "Rouge-L": "rouge_l"}
    printed = {
        (row["model"], names.get(row["metric"], row["metric"].lower())): row["value"]
        for row in json.loads((shared / "data/published/contextual.json").read_text())["rows"]
        if row["table"] == 3
    }
    table = published_responders("contextual")
    assert table is not None
    assert printed == {
        (row, column): value
        for row, values in table.rows.items()
        for column, value in zip(table.columns, values, strict=True)
    }


@pytest.mark.parametrize(("n", "comparable"), [(10, False), (50, True)])
def test_a_category_of_test_that_rests_on_the_references_of_val_is_not_comparable(
    n: int, comparable: bool
) -> None:
    category = MetricValue("accepted", "category=time", 50.0, n, n)
    attached = add_published(replace(result("test", 506), metrics=[category]), "GPT-4V")
    values = attached.metrics[0].published or []
    assert [value.row for value in values] == ["GPT-4V", "Humans"]
    for value in values:
        assert value.comparable == comparable
        assert ("over 10 here, 50 in the paper" in (value.note or "")) != comparable
