"""What the commands print in a terminal of any width: whole names of models."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sightline.cli.main import main
from training.scenes.build import generate_codis

Servers = Callable[..., Any]
Capture = pytest.CaptureFixture[str]

NAMES = ("Qwen/Qwen2.5-VL-72B-Instruct", "llava-onevision-qwen2-7b-ov-hf", "judge-model-14b")


class Runs(NamedTuple):
    """A folder with runs of two served models, one judged by a third, and verdicts of a human."""

    folder: Path
    models: list[str]

    def commands(self) -> list[list[str]]:
        store = ["--store", str(self.folder / "s.db")]
        out = [str(self.folder / "first"), str(self.folder / "second")]
        return [
            ["runs", "list", *store],
            ["report", "1", "2", *store],
            ["report", "1", "2", "--by", "category", "--pivot", *store],
            ["report", *out],
            ["compare", "1", "2", "--list", "both_wrong", *store],
            ["judge-report", *out, "--human", str(self.folder / "human.jsonl"), *store],
            ["show", "1", "-n", "3", *store],
            ["store", "info", *store],
            ["list"],
            ["list", "codis"],
        ]


@pytest.fixture(scope="module")
def runs(module_mock: Servers, module_folder: Path) -> Runs:
    data = generate_codis(module_folder / "codis", pairs=6)
    server = module_mock("--words", "Yes|No|It says so. Judgement: True")
    first, second, judge = (f"{server.address}#{name}" for name in NAMES)
    words = ["--data", str(data), "--store", str(module_folder / "s.db"), "--quiet", "--fingerprint", "off"]
    for model, judged, out in ((first, "rules", "first"), (second, judge, "second")):
        folder = ["--out", str(module_folder / out)]
        assert main(["run", "codis", "--model", model, "--judge", judged, *words, *folder]) in (0, 1)
    lines = (module_folder / "first" / "answers.jsonl").read_text().splitlines()
    with (module_folder / "human.jsonl").open("w") as file:
        for line in map(json.loads, lines):
            human = {"targets": [line["key"]], "question": "correct", "verdict": "right", "judge": "ann"}
            file.write(json.dumps(human) + "\n")
    return Runs(module_folder, [first, second, judge])


def in_terminal(
    command: list[str], width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The lines that a command prints in a terminal, without their styles."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    capsys.readouterr()
    assert main([*command]) == 0
    return re.sub("\x1b(\\[[0-9;]*m|\\]8;.*?\x1b\\\\)", "", capsys.readouterr().out).splitlines()


@pytest.mark.parametrize("width", [72, 80, 120, 200])
@pytest.mark.parametrize("nth", range(10))
def test_a_terminal_keeps_its_width_and_breaks_addresses_before_names(
    runs: Runs, nth: int, width: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = runs.commands()[nth]
    lines = in_terminal(command, width, capsys, monkeypatch)
    paths = [line for line in lines if str(runs.folder.parent.parent) in line]
    assert max(len(line.rstrip()) for line in lines if line not in paths) <= width
    assert "…" not in "".join(lines)
    for word in " ".join(lines).split():
        for name in NAMES:
            if name[:12] in word:
                assert name in word, word


def test_a_pipe_gets_every_address_whole(
    runs: Runs, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for command in runs.commands():
        capsys.readouterr()
        assert main(command) == 0
        printed = capsys.readouterr().out
        assert "…" not in printed
        assert all(
            any(model in word for model in runs.models) or "/v1" in word[-4:]
            for word in printed.split()
            if "://" in word
        )
