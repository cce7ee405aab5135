"""Text metrics from a run to its report: in answers, in metrics, remembered, and computed anew."""

from __future__ import annotations

import csv
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.cli.main import main
from sightline.evaluation.result import recompute
from sightline.store.store import Store
from training.scenes.build import generate_contextual

pytestmark = pytest.mark.skipif(find_spec("rouge_score") is None, reason="needs the extra 'text'")

OPTIONS: dict[str, Any] = {"split": "val", "set": {"text_metrics": "rouge_l"}}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return generate_contextual(tmp_path / "contextual", questions=2, val=12)


@pytest.fixture
def answers(data: Path, tmp_path: Path) -> Path:
    """Each reference said in full, every other one with as many words again behind it."""
    out = tmp_path / "said.jsonl"
    lines = []
    with (data / "contextual_val.csv").open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            said = row["response"] + " zzz" * (number % 2 * len(row["response"].split()))
            lines.append(json.dumps({"image_url": row["image_url"], "response": said}))
    out.write_text("\n".join(lines))
    return out


@pytest.mark.slow
def test_a_run_is_measured_remembered_and_computed_anew(data: Path, answers: Path, tmp_path: Path) -> None:
    store, out = tmp_path / "s.db", tmp_path / "out"
    first = sightline.run(
        "contextual", model=f"replay/{answers}", data=data, store=str(store), out=out, **OPTIONS
    )
    (mean,) = [m for m in first.metrics if (m.metric, m.subset) == ("rouge_l", "all")]
    lines = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    scores = [line["scores"]["rouge_l"] for line in lines]
    assert mean.n == len(scores) == 12
    assert mean.value == pytest.approx(sum(scores) / 12)
    assert set(scores[::2]) == {100.0}
    assert all(0 < score < 100 for score in scores[1::2])
    assert first.result.versions["rouge_l"].startswith("rouge-score ")
    assert first.result.options["text_metrics"] == "rouge_l"
    opened = Store.open(str(store))
    try:
        assert recompute(opened).metrics == first.metrics
    finally:
        opened.close()


def test_collected_answers_are_measured_alike(data: Path, answers: Path, tmp_path: Path) -> None:
    ran = sightline.run(
        "contextual", model=f"replay/{answers}", data=data, store=str(tmp_path / "s.db"), **OPTIONS
    )
    scored = sightline.score("contextual", answers, data=data, store=str(tmp_path / "t.db"), **OPTIONS)
    assert [(m.subset, m.value) for m in scored.metrics if m.metric == "rouge_l"] == [
        (m.subset, m.value) for m in ran.metrics if m.metric == "rouge_l"
    ]


def test_without_the_option_nothing_is_measured(data: Path, answers: Path, tmp_path: Path) -> None:
    plain = sightline.score("contextual", answers, data=data, split="val", store=str(tmp_path / "s.db"))
    assert "rouge_l" not in {metric.metric for metric in plain.metrics}


def test_a_wrong_name_is_refused_before_the_first_call(
    data: Path, answers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["score", "contextual", str(answers), "--data", str(data), "--split", "val"]
    assert main([*call, "--set", "text_metrics=rouge", "--out", str(tmp_path / "out")]) == 2
    assert "did you mean 'rouge_l'?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
