"""Answers of several models in one file: the data are read once, and each answer brings its verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.benchmarks.contextual.benchmark import Contextual
from sightline.benchmarks.contextual.formats import add_judgements
from sightline.benchmarks.registry import benchmark_class
from sightline.cli.main import main
from sightline.evaluation.score import import_answers
from sightline.evaluation.spec import Spec
from sightline.formats.jsonl import read_outcomes
from sightline.formats.other_tools import read_predictions
from sightline.types import Sample
from training.scenes.build import generate_contextual, generate_iibench

LINES = (
    {"id": "dev-1", "response": "(A)", "usage": {"prompt_tokens": 5}, "version": "m-1"},
    {"id": "dev-2", "response": "  ", "usage": {"prompt_tokens": 6}},
    {"id": "dev-3", "response": ""},
    {"id": "dev-4", "error": "time-out"},
)

MODELS = ("a", "b", "c")


def test_an_imported_file_scores_like_the_file_itself(tmp_path: Path) -> None:
    data = generate_iibench(tmp_path / "iibench", questions=0, dev=4)
    file, imported = tmp_path / "lines.jsonl", tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    words = ["--task", "iibench", "--data", str(data), "--split", "dev"]
    assert main(["import", str(file), *words, "--out", str(imported)]) == 0
    assert [(one.status, one.verdict) for one in read_outcomes(imported)] == [
        ("ok", "unscored"),
        ("ok", "unscored"),
        ("empty", "unscored"),
        ("error", "error"),
    ]
    options: Any = {"data": data, "split": "dev"}
    for name, answers in (("direct", file), ("by_import", imported)):
        sightline.score("iibench", answers, **options, out=tmp_path / name)
    direct, by_import = (
        list(read_outcomes(tmp_path / name / "answers.jsonl")) for name in ("direct", "by_import")
    )
    assert direct == by_import
    assert [one.usage.prompt_tokens for one in direct] == [5, 6, None, None]
    assert [one.verdict for one in direct][2:] == ["wrong", "error"]


def test_the_data_are_read_once_for_all_models_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = generate_contextual(tmp_path / "contextual", questions=2, val=3)
    read, samples = [], Contextual.samples

    def counted(self: Contextual, folder: Path, split: str, options: Mapping[str, Any]) -> Iterator[Sample]:
        read.append(split)
        yield from samples(self, folder, split, options)

    monkeypatch.setattr(Contextual, "samples", counted)
    urls = [f"images/val-{number:03}.png" for number in (3, 1, 2)]
    answers, judgements = tmp_path / "master.json", tmp_path / "judgements.json"
    answers.write_text(json.dumps({model: {url: f"{model} {url}" for url in urls} for model in MODELS}))
    judgements.write_text(json.dumps({"b": {urls[0]: 1, urls[1]: 0}}))
    predictions = add_judgements(
        read_predictions(answers, benchmark_class("contextual").answer_files, setting="0-shot"), judgements
    )
    found = import_answers(Spec(task="contextual", data=str(data), split="val"), predictions, answers)
    assert read == ["val"]
    assert [(one.model, one.outcome.sample) for one in found] == [
        (model, url) for model in MODELS for url in sorted(urls)
    ]
    given = {(one.model, one.outcome.sample): one for one in found if one.verdicts}
    assert given.keys() == {("b", urls[0]), ("b", urls[1])}
    for one in given.values():
        (verdict,) = one.verdicts
        assert (verdict.targets, verdict.variant) == ((one.outcome.key,), one.outcome.variant)
