"""Another checkpoint under the name of a served model, as its users meet it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from training.scenes.build import generate_codis

WORDS = ("--words", "|".join(f"It shows thing number {number}." for number in range(99)))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return generate_codis(tmp_path / "codis", pairs=10)


def run(data: Path, server: Any, store: str, *more: str) -> int:
    words = ["--model", server.model, "--model-id", "mine", "--data", str(data), "--quiet", "--out", "out"]
    return main(["run", "codis", *words, "--store", store, *more])


def states(store: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The state of each run in the store, the oldest first."""
    capsys.readouterr()
    assert main(["runs", "list", "--json", "--store", store]) == 0
    return [one["state"] for one in sorted(json.loads(capsys.readouterr().out), key=lambda one: one["run"])]


def test_other_weights_end_the_run_before_it_writes_anything_unless_the_user_accepts_them(
    data: Path, mock: Any, store_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, other = mock(*WORDS), mock(*WORDS, "--weights", "B")
    assert run(data, before, store_url, "--limit", "5") == 0
    kept = {path: path.read_bytes() for path in Path("out").iterdir()}
    assert run(data, other, store_url) == 2
    told = capsys.readouterr().err
    assert "is not the model that gave its cached answers" in told
    for remedy in ("--fresh", "--model-id", "--accept-changed"):
        assert remedy in told
    assert {path: path.read_bytes() for path in Path("out").iterdir()} == kept
    assert "3 of 3 cached answers, stored 2" in told
    assert other.stats()["requests"] == 3
    assert "requests sent before" not in told
    assert states(store_url, capsys) == ["complete"], "a run that sent nothing else leaves nothing behind"
    assert run(data, other, store_url, "--accept-changed") == 0
    result = json.loads(Path("out/metrics.json").read_text())
    assert any(note.startswith("--accept-changed: ") for note in result["notes"])
    assert result["options"]["accept_changed"] is True
    other.reset()
    assert run(data, other, store_url) == 0
    assert other.stats()["requests"] == 0, "all answers are cached"
    assert run(data, other, store_url, "--fresh", "b") == 0
    assert other.stats()["requests"] == 20
    capsys.readouterr()
    assert main(["store", "export", "endpoints", "--out", "checks.jsonl", "--store", store_url]) == 0
    listed = [json.loads(line) for line in Path("checks.jsonl").read_text().splitlines()]
    assert [one["result"] for one in listed] == ["first contact", "changed", "changed"]


@pytest.mark.slow
def test_a_judge_with_other_weights_is_refused_too(
    data: Path, mock: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server, judge = mock(*WORDS), mock("--words", "right|wrong")
    host = judge.model.partition("#")[0].removeprefix("http://").removesuffix("/v1")
    Path("sightline.toml").write_text(f'[models.judge]\nspec = "http://{host}/v1#mock"\nmodel_id = "judge"\n')
    assert run(data, server, sqlite_url, "--judge", "judge", "--limit", "5") == 0
    other = mock("--words", "It is none.")
    Path("sightline.toml").write_text(f'[models.judge]\nspec = "{other.model}"\nmodel_id = "judge"\n')
    capsys.readouterr()
    assert run(data, server, sqlite_url, "--judge", "judge") == 2
    told = capsys.readouterr().err
    assert "expected --accept-changed" in told
    assert "requests sent before this was found: 10, answers kept: 10 (run 2, not finished)" in told
    assert states(sqlite_url, capsys) == ["complete", "not finished"]
    server.reset()
    assert run(data, server, sqlite_url, "--judge", "judge", "--fingerprint", "off") == 0
    assert server.stats()["requests"] == 0, "the answers of the refused run are cached"
    result = json.loads(Path("out/metrics.json").read_text())
    assert sum(note.startswith("--fingerprint off: ") for note in result["notes"]) == 2
