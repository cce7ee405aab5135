"""A run leaves as a file of another tool, which that tool's own library opens."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.cli.main import main
from sightline.formats.jsonl import read_outcomes
from training.scenes.build import generate_codis

Capture = pytest.CaptureFixture[str]

REPLIES = (
    {"response": "Yes.", "finish_reason": "stop", "version": "v1", "reasoning": "The sign says so."},
    {"response": "No.", "usage": {"prompt_tokens": 90, "completion_tokens": 2, "cached_tokens": 64}},
    {"response": "It is the left one.\nLeft.", "finish_reason": "length"},
    {"response": ""},
    {"error": "time-out"},
    {"response": "I cannot tell."},
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)


@pytest.fixture
def codis(tmp_path: Path) -> Path:
    folder = tmp_path / "codis"
    generate_codis(folder)
    return folder


def call(*words: str | Path, status: Sequence[int] = (0,)) -> None:
    assert main([*map(str, words)]) in status


def scored(codis: Path, *more: str) -> dict[str, Any]:
    """The metrics.json of a file of two repeats with every kind of answer, in `own`, run 1."""
    records = json.loads((codis / "data.json").read_text())
    probes = [(one["id"], f"context_{half}", draw) for one in records for half in (1, 2) for draw in (0, 1)]
    lines = [
        {"id": sample, "variant": variant, "draw": draw, **REPLIES[number % len(REPLIES)]}
        for number, (sample, variant, draw) in enumerate(probes)
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    call("score", "codis", "answers.jsonl", "--data", codis, "--out", "own", "--quiet", *more, status=(0, 1))
    result: dict[str, Any] = json.loads(Path("own/metrics.json").read_text())
    return result


# -- Logs of inspect_ai

OF_THE_FILE = ("model", "model_identity", "options", "files", "spent")


@pytest.mark.parametrize("name", ["run.eval", "run.json"])
def test_a_log_of_inspect_gives_the_metrics_of_the_run_again(codis: Path, name: str) -> None:
    pytest.importorskip("inspect_ai")
    own = scored(codis)
    call("export", "1", "--as", "inspect", "--out", name)
    call("score", "codis", name, "--data", codis, "--out", "back", "--quiet", status=(0, 1))
    back = json.loads(Path("back/metrics.json").read_text())
    assert {one: own[one] for one in own if one not in OF_THE_FILE} == {
        one: back[one] for one in own if one not in OF_THE_FILE
    }
    # `score` reads no latency.
    for first, second in zip(
        read_outcomes(Path("own/answers.jsonl")), read_outcomes(Path("back/answers.jsonl")), strict=True
    ):
        assert replace(first, latency=0.0) == second


def test_inspect_reads_question_images_choices_scores_and_metrics_of_a_log(codis: Path) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ContentImage

    asked = ("run", "codis", "--model", "baseline/chance", "--repeats", "2", "--out", "own", "--quiet")
    call(*asked, "--data", codis)
    own = json.loads(Path("own/metrics.json").read_text())
    call("export", "own", "--as", "inspect", "--out", "run.eval", "--data", codis)
    log = read_eval_log("run.eval", resolve_attachments=True)
    outcomes = list(read_outcomes(Path("own/answers.jsonl")))
    assert log.status == "success"
    assert log.samples is not None
    samples = {(one.id, one.epoch): one for one in log.samples}
    assert len(samples) == len(outcomes)
    for outcome in outcomes:
        sample = samples[f"{outcome.sample}/{outcome.variant}", outcome.draw + 1]
        assert not isinstance(sample.input, str)
        (message,) = sample.input
        assert message.text == outcome.prompt
        (image,) = [part for part in message.content if isinstance(part, ContentImage)]
        sent = base64.b64decode(image.image.partition(",")[2])
        assert hashlib.sha256(sent).hexdigest() == sample.metadata["images"][0]["sha256"]
        assert sent == (codis / outcome.images[0]).read_bytes()
        assert sample.metadata["cluster"] == outcome.cluster
        assert sample.metadata["group"] == outcome.sample
        assert sample.target == list(outcome.references)
        assert sample.output.completion == outcome.response
        assert (sample.error.message if sample.error else None) == outcome.error
        assert sample.scores is not None
        value = {"right": "C", "wrong": "I"}.get(outcome.verdict, "N")
        assert sample.scores["verdict"].value == value
        assert outcome.judge in (sample.scores["verdict"].explanation or "")
    assert log.results is not None
    found = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    (acc,) = [one for one in own["metrics"] if (one["metric"], one["subset"]) == ("acc_p", "all")]
    names = ("acc_p", "acc_p_low", "acc_p_high", "acc_p_n")
    assert [found[name] for name in names] == [acc[name] for name in ("value", "low", "high", "n")]
    assert log.results.headline is not None
    assert log.results.headline.metric == "acc_p"
    assert log.results.metadata is not None
    assert log.results.metadata["metrics"] == own["metrics"]


def test_images_that_changed_are_left_out_and_counted(codis: Path, capsys: Capture) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log

    call("run", "codis", "--model", "baseline/chance", "--data", codis, "--quiet")
    first = next(iter(sorted((codis / "images").iterdir())))
    first.write_bytes(next(iter(sorted((codis / "images").iterdir(), reverse=True))).read_bytes())
    capsys.readouterr()
    call("export", "1", "--as", "inspect", "--out", "run.eval")
    assert "1 images were not found as they were sent" in capsys.readouterr().err
    log = read_eval_log("run.eval")
    assert log.samples is not None
    shown = {one["path"]: one["sha256"] for sample in log.samples for one in sample.metadata["images"]}
    assert shown[f"images/{first.name}"] != hashlib.sha256(first.read_bytes()).hexdigest()


def test_a_log_needs_a_name_that_inspect_opens(codis: Path, capsys: Capture) -> None:
    scored(codis)
    call("export", "1", "--as", "inspect", "--out", "run.jsonl", status=(2,))
    assert ".eval" in capsys.readouterr().err
