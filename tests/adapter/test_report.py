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
            self.run("--model-arg", f"adapter={adapter}")

    def run(
        self, *more: str, store: str = "s.db", groups: Path | None = None, tokens: int = 4, status: int = 0
    ) -> None:
        """One run of the test groups, or of others."""
        words = ["run", f"groups:{groups or self.test}", "--model", self.model, "--quiet"]
        words += ["--store", str(self.folder / store), "--set", "embedder=none"]
        assert main([*words, "--gen", f"max_tokens={tokens}", *more]) == status

    def report(self, capsys: Capture, *words: str, store: str) -> dict[str, Any]:
        """The table of effects of the first adapter."""
        shown = ["adapter", "report", self.adapters[0], *words, "--store", str(self.folder / store)]
        return _json(shown, capsys)[0]


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


@pytest.mark.slow
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
    effects, votes, costs = _json(words, capsys)
    first = {(row["metric"], row["subset"]): row["without value"] for row in effects["rows"]}
    assert {(row["metric"], row["subset"]) for row in votes["rows"]} >= {("acc", "all")}
    for row in votes["rows"]:
        assert row["without value"] == pytest.approx(first[row["metric"], row["subset"]])
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
    report = ["adapter", "report", runs.adapters[0], "--store", str(runs.folder / "other.db")]
    runs.run(store="other.db")
    assert main(report) == 2
    assert "this store contains no run with this adapter" in capsys.readouterr().err
    runs.run("--model-arg", f"adapter={runs.adapters[0]}", store="other.db", tokens=5)
    assert main(report) == 2
    assert "was not run without the adapter under the same options" in capsys.readouterr().err


def test_the_newest_pair_that_matches_is_used_and_newer_runs_are_named(runs: Runs, capsys: Capture) -> None:
    with_adapter = ["--model-arg", f"adapter={runs.adapters[0]}"]
    runs.run(store="newest.db")
    runs.run(*with_adapter, store="newest.db")
    runs.run(*with_adapter, store="newest.db", tokens=5)
    table = runs.report(capsys, store="newest.db")
    assert table["notes"][0].endswith("groups.jsonl: runs 2 with and 1 without")
    assert table["notes"][1].endswith("so not used: 3")
    # The pair is complete now: it is the newest one, although run 3 is older than run 4.
    runs.run(store="newest.db", tokens=5)
    table = runs.report(capsys, store="newest.db")
    assert table["notes"][0].endswith("groups.jsonl: runs 3 with and 4 without")
    assert not any("not used" in note for note in table["notes"])


def test_runs_that_the_user_names_are_compared(runs: Runs, capsys: Capture) -> None:
    with_adapter = ["--model-arg", f"adapter={runs.adapters[0]}"]
    runs.run("--name", "plain", store="named.db")
    runs.run(*with_adapter, store="named.db", tokens=5)
    runs.run(*with_adapter, store="named.db")
    table = runs.report(capsys, "--runs", "plain,2", store="named.db")
    assert table["notes"][0].endswith("groups.jsonl: runs 2 with and 1 without")
    assert any("these runs also differ in" in note and "max_tokens" in note for note in table["notes"])
    (other, *_) = _json(["compare", "1", "2", *BOTH, "--store", str(runs.folder / "named.db")], capsys)
    assert _differences(other).items() <= _differences(table).items()
    for words, said in (
        ("1", "two runs are needed"),
        ("2,1", "run 1 was not made with this adapter"),
        ("2,3", "with the same model and without the adapter"),
    ):
        report = ["adapter", "report", runs.adapters[0], "--runs", words]
        assert main([*report, "--store", str(runs.folder / "named.db")]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.slow
def test_training_images_are_left_out_on_both_sides_and_counted(runs: Runs, capsys: Capture) -> None:
    """A refused request is no wrong answer: the difference is that of the other images."""
    mixed = _groups(runs.folder / "mixed", 6)
    lines = [json.loads(line) for line in mixed.read_text().splitlines()]
    for name in ("0.png", "1.png"):
        (mixed.parent / name).write_bytes((runs.data.parent / name).read_bytes())
    # One group of training images only, and one of which only the third variant shows one.
    lines += [{**line, "group": "seen", "images": ["0.png"]} for line in lines[:3]]
    lines[2]["images"] = ["1.png"]
    mixed.write_text("".join(json.dumps(line) + "\n" for line in lines))
    clean = runs.folder / "mixed" / "clean.jsonl"
    lines = [line for line in lines if line["images"][0] not in ("0.png", "1.png")]
    clean.write_text("".join(json.dumps(line) + "\n" for line in lines))
    tables, votes = [], []
    for store, groups in (("mixed.db", mixed), ("clean.db", clean)):
        runs.run(store=store, groups=groups)
        # Exit status 1: requests were refused.
        runs.run(
            "--model-arg",
            f"adapter={runs.adapters[0]}",
            store=store,
            groups=groups,
            status=int(groups == mixed),
        )
        tables.append(runs.report(capsys, store=store))
        votes.append(
            _json(["adapter", "report", runs.adapters[0], "--store", str(runs.folder / store)], capsys)[1]
        )
    counted = [note for note in tables[0]["notes"] if "left out on both sides" in note]
    assert len(counted) == 1
    assert "4 requests in 2 groups" in counted[0]
    assert not any("left out on both sides" in note for note in tables[1]["notes"])
    for first, second in zip(tables[0]["rows"], tables[1]["rows"], strict=True):
        for column in ("without value", "with value", "difference value", "groups"):
            assert first[column] == pytest.approx(second[column])
    assert _differences(votes[0]) == pytest.approx(_differences(votes[1]))
