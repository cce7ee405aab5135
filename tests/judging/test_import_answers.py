"""Answers of several models in one file: the data are read once, and each answer brings its verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.contextual.benchmark import Contextual
from sightline.benchmarks.contextual.formats import add_judgements
from sightline.builders.synthetic import generate_contextual
from sightline.formats.read import read_predictions
from sightline.judging.import_answers import import_answers
from sightline.plan.spec import Spec
from sightline.registry import benchmark_class
from sightline.types import Sample

MODELS = ("a", "b", "c")


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
