"""The published figures of ConTextual are its tables' and leaderboards', cell by cell, with their doubts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.report.published import attach, published, rows
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
            setting = "judged with the picture"
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
    for setting in ("default", "judged with the picture", "val", "synthetic"):
        for row in rows("contextual"):
            for (metric, subset), values in published("contextual", setting, row).items():
                assert {(setting, row, metric, subset, one.value) for one in values} <= known


def is_share(value: float, n: int) -> bool:
    return any(abs(100 * k / n - value) <= 0.0501 for k in range(n + 1))


@pytest.mark.parametrize("row", rows("contextual"))
def test_a_figure_that_is_no_count_of_all_instances_is_not_comparable_and_says_why(row: str) -> None:
    for setting, whole in (("default", COUNTS), ("val", {"all": 100, MISCELLANEOUS: 30})):
        for (metric, subset), values in published("contextual", setting, row).items():
            for one in values if metric == "accepted" else ():
                count = whole.get(subset, 50 if setting == "default" else 10)
                by_150 = setting == "default" and subset == MISCELLANEOUS
                if by_150 or not is_share(one.value, count):
                    assert not one.comparable, (subset, one)
                    assert one.note, (subset, one)


@pytest.mark.parametrize(
    ("row", "subset", "value", "told"),
    [
        ("Humans", MISCELLANEOUS, 78.0, "117 of 150"),
        ("Humans", MISCELLANEOUS, 78.0, "over the 156 of this category it is 75.0"),
        ("GPT-4V", MISCELLANEOUS, 48.0, "it is 46.2"),
        ("GPT-4 w/ OCR", "category=abstract", 30.6, "15 of 49"),
        ("Gemini-Pro-Vision", "all", 40.2, "199 of 495"),
        ("Humans", "all", 80.1, "judged by people"),
        ("LLaVA-Next-34B", "category=shopping", 36.0, "the other way round"),
        ("LLaVA-Next-34B", "category=shopping", 30.6, "the other way round"),
    ],
)
def test_the_doubts_of_a_figure_stand_beside_it(row: str, subset: str, value: float, told: str) -> None:
    figures: list[PublishedValue] = published("contextual", "default", row)["accepted", subset]
    (figure,) = [one for one in figures if one.value == value]
    assert not figure.comparable
    assert told in (figure.note or "")


def result(split: str, samples: int, **options: Any) -> Result:
    return Result(
        benchmark="contextual",
        setting="default",
        model="m",
        model_identity="m",
        judge="openai/gpt-4",
        options={"shots": 0, "judge_picture": False, "split": split, **options},
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
    attached = attach(one, row).metrics[0].published or []
    return [(value.value, value.comparable) for value in attached if value.row == row]


def test_a_run_is_set_beside_the_figures_of_its_split_and_judge() -> None:
    assert figures(result("test", 506)) == [(47.4, True), (49.3, False)]
    assert figures(result("val", 100)) == [(53.0, True)]
    assert figures(result("test", 506, judge_picture=True)) == [(45.0, True)]
    assert figures(result("test", 498)) == [(47.4, False), (49.3, False)]
    assert figures(result("test", 506, shots=2)) == []
