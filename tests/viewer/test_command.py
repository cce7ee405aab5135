"""The commands of a group page repeat its run: the same requests, of which the cached ones are not sent."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from sightline.evaluation.runs import list_runs, read_stored_run
from sightline.store.store import Store
from sightline.viewer.groups_page import SELECTION, AskAgain, ask_again

SENT = re.compile(r"sent (\d+)")


def commands(file: Path, run: int) -> AskAgain:
    store = Store.open(str(file), create=False)
    try:
        line = next(line for line in list_runs(store) if line.number == run)
        return ask_again(read_stored_run(store, run), line, str(file), "003")
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["codis"],
        ["codis:plain", "--set", "cot=on", "--seed", "7", "--limit", "4", "--shuffle"],
        ["codis", "--repeats", "2", "--fresh", "tuesday", "--judge", "rules", "--judge", "baseline/chance"],
    ],
)
def test_the_commands_repeat_the_run(
    options: list[str], codis: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "it's a store.db"
    run = [
        *("run", *options, "--model", "baseline/chance"),
        *("--data", str(codis), "--store", str(file), "--quiet"),
    ]
    assert main(run) == 0
    sent = SENT.search(capsys.readouterr().err)
    samples = 4 if "--limit" in options else 30
    found = commands(file, 1)
    group = str(int(sent[1]) // samples) if sent else ""
    for command, expected in ((found.failed, "0"), (found.group, group)):
        assert main([*shlex.split(command)[1:], "--quiet"]) == 0
        again = SENT.search(capsys.readouterr().err)
        assert again is not None
        assert again[1] == expected
    store = Store.open(str(file), create=False)
    first, *others = (read_stored_run(store, number).description for number in (1, 2, 3))
    store.close()
    for other in others:
        assert _asked(other.options) == _asked(first.options)
        assert other.judges == first.judges
    assert others[1].options["ids"] == "003"


def _asked(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in (*SELECTION, "fresh")}
