"""Runs with and without adapters: `compare` over several pairs, and `adapter report`."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

from PIL import Image

from sightline.cli.main import main

Folder = Callable[[str], Path]
Capture = pytest.CaptureFixture[str]
BOTH = ["--metric", "acc", "--metric", "agree"]


def _groups(folder: Path, first: int) -> Path:
    folder.mkdir()
    lines = []
    for number in range(first, first + 6):
        Image.effect_noise((48, 48), 40 + 20 * number).convert("RGB").save(folder / f"{number}.png")
        for variant, prompt in (("r1", "what is this"), ("r2", "what a dog"), ("r3", "is it the cat")):
            line = {"group": f"g{number}", "variant": variant, "images": [f"{number}.png"], "prompt": prompt}
            lines.append({**line, "references": ["a cat"], "labels": {"wording": variant}})
    file = folder / "groups.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


class Runs:
    """Two adapters with many and with few steps, the runs with them and the run without."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.model, self.folder = f"hf/{model}", folder
        self.data, self.test = _groups(folder / "data", 0), _groups(folder / "test", 6)
        self.adapters = [str(folder / f"seed{seed}") for seed in (0, 1)]
        self.store = ["--store", str(folder / "s.db")]
        for seed, out in enumerate(self.adapters):
            words = [
                "adapter",
                "train",
                "--model",
                self.model,
                "--data",
                str(self.data),
                "--out",
                out,
                "--quiet",
            ]
            words += ["--kind", "lora", "--rate", "0.02", "--steps", str(30 - 28 * seed), "--seed", str(seed)]
            assert main(words) == 0
        self.run()
        for adapter in self.adapters:
            self.run("--adapter", adapter)

    def run(self, *more: str) -> None:
        """One run of the test groups."""
        words = ["run", f"groups:{self.test}", "--model", self.model, "--quiet", *self.store]
        assert main([*words, "--set", "embedder=none", "--gen", "max_tokens=4", *more]) == 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, folder: Folder) -> Runs:
    """Made once: numbers 1 (without), 2 and 3 (with)."""
    return Runs(tmp_path_factory.mktemp("report"), folder("llava"))


def _json(words: list[str], capsys: Capture) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main([*words, "--format", "json"]) == 0
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return tables


def _differences(table: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(row["metric"], row["subset"]): row["difference value"] for row in table["rows"]}


def test_the_pooled_difference_is_the_mean_of_the_differences(runs: Runs, capsys: Capture) -> None:
    alone = [
        _differences(_json(["compare", "1", run, "--by", "wording", *BOTH, *runs.store], capsys)[0])
        for run in ("2", "3")
    ]
    (table, *_) = _json(["compare", "1", "2,3", "--by", "wording", *BOTH, *runs.store], capsys)
    together = _differences(table)
    assert ("acc", "all") in together
    assert any(together.values())
    assert any("adapter none, then" in note for note in table["notes"])
    for place, value in together.items():
        assert value == pytest.approx((alone[0][place] + alone[1][place]) / 2)
    assert {row["groups"] for row in table["rows"] if row["subset"] == "all"} == {12}
    assert {row["clusters"] for row in table["rows"] if row["subset"] == "all"} == {6}
    for row in table["rows"]:
        assert row["second value"] - row["first value"] == pytest.approx(row["difference value"])


def test_equally_many_runs_on_both_sides_form_pairs(runs: Runs, capsys: Capture) -> None:
    (there, *_) = _json(["compare", "2", "3", *BOTH, *runs.store], capsys)
    (both, *_) = _json(["compare", "2,3", "3,2", *BOTH, *runs.store], capsys)
    assert any(_differences(there).values())
    assert all(value == pytest.approx(0) for value in _differences(both).values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["1,2", "1,2,3"], "2 base runs and 3 compared runs"),
        (["1", "7"], "there is no run 7"),
        (["1", "2", "--metric", "con2"], "no such metric"),
        (["1", "two"], "no run is called 'two'"),
    ],
)
def test_runs_that_cannot_be_compared_give_exit_status_2(
    words: list[str], said: str, runs: Runs, capsys: Capture
) -> None:
    assert main(["compare", *words, *runs.store]) == 2
    assert said in capsys.readouterr().err


def test_the_report_finds_the_runs_and_shows_the_cost(runs: Runs, capsys: Capture) -> None:
    words = ["adapter", "report", *runs.adapters, "--by", "wording", *runs.store]
    effects, costs = _json(words, capsys)
    (table, *_) = _json(["compare", "1", "2,3", "--by", "wording", *BOTH, *runs.store], capsys)
    wanted = _differences(table)
    found = _differences(effects)
    assert {("acc", "all"), ("agree", "all"), ("acc", "wording=r2")} <= found.keys()
    assert {place: found[place] for place in wanted} == pytest.approx(wanted)
    for row in costs["rows"]:
        capsys.readouterr()
        assert main(["adapter", "show", row["adapter"], "--json"]) == 0
        assert row["parameters"] == json.loads(capsys.readouterr().out)["parameters"] > 100
        assert row["MB value"] == row["parameters"] * 4 / 1e6
        assert row["ratio value"] == pytest.approx(row["ms with value"] / row["ms without value"])
        assert row["ms without value"] > 0


def test_a_run_without_a_counterpart_is_reported(runs: Runs, capsys: Capture) -> None:
    store = ["--store", str(runs.folder / "other.db")]
    words = ["run", f"groups:{runs.test}", "--model", runs.model, "--quiet", *store, "--set", "embedder=none"]
    report = ["adapter", "report", runs.adapters[0], *store]
    assert main([*words, "--gen", "max_tokens=4"]) == 0
    assert main(report) == 2
    assert "this store contains no run with this adapter" in capsys.readouterr().err
    assert main([*words, "--gen", "max_tokens=5", "--adapter", runs.adapters[0]]) == 0
    assert main(report) == 2
    assert "was not run without the adapter under the same options" in capsys.readouterr().err
