"""The words of `sweep`: commas that separate and commas that do not, and every form of what it prints."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.cli.main import main
from sightline.cli.sweep import lists
from sightline.errors import UserError
from training.scenes.build import generate_codis


@pytest.fixture(scope="module")
def codis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_codis(tmp_path_factory.mktemp("drawn") / "codis", pairs=6)


@pytest.fixture
def words(codis: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A sweep over two prompts in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    return ["sweep", "codis", "--model", "baseline/chance", "--data", str(codis), "--set", "cot=on,off"]


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("size=224,640,1024", (224, 640, 1024)),
        ("temperature=0.2", (0.2,)),
        ("cot=on,off", (True, False)),
        ("size=null,224", (None, 224)),
        ("name=a, b c ,d", ("a", "b c", "d")),
        ('stop=["a","b"],["c"]', (["a", "b"], ["c"])),
        ('stop=["]",","]', (["]", ","],)),
        ('bias="up:down,left:right"', ("up:down,left:right",)),
        ('extra={"a": [1, 2]}, null', ({"a": [1, 2]}, None)),
        ("captions=", ("",)),
        ('captions="",x', ("", "x")),
        ("answer=a=b,c", ("a=b", "c")),
    ],
)
def test_commas_separate_values_but_not_inside_json(word: str, values: tuple[Any, ...]) -> None:
    (found,) = lists([word], "--set").values()
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(json_values, min_size=1, max_size=5))
def test_whatever_is_json_comes_back_as_it_was(values: list[Any]) -> None:
    word = ",".join(msgspec.json.encode(value).decode() for value in values)
    assert lists([f"key={word}"], "--gen") == {"key": tuple(values)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["size"], "the key is missing"),
        (["=1"], "the key is missing"),
        (["size=1", "size=2"], "occurs twice"),
        (["size=1,,2"], "an empty value"),
        (["size=1,"], "an empty value"),
        (['stop=["a","b"'], "starts like JSON and is not"),
        (['stop=["a"]b,c'], "starts like JSON and is not"),
    ],
)
def test_a_list_that_is_none_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        lists(words, "--set")


def test_a_line_a_point_on_standard_error_and_one_table_on_standard_output(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--out", "out"]) == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert [line for line in lines if line.startswith("[")] == [
        "[1/2] chance, cot=on",
        "[2/2] chance, cot=off",
    ]
    assert lines[-1] == "results: out"
    assert out.startswith("codis:default, by cot\n")
    assert main([*words, "--quiet"]) == 0
    assert "[1/2]" not in capsys.readouterr().err


def test_every_form_is_the_same_sweep(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--out", "out", "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert kept == json.loads(Path("out/sweep.json").read_text())
    values = {
        one["at"]["cot"]: next(m["value"] for m in one["result"]["metrics"] if m["metric"] == "acc_q")
        for one in kept["points"]
    }
    for call in ([*words, "--format", "csv"], ["report", "out", "--format", "csv"]):
        assert main(call) == 0
        row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert float(row["cot=on acc_q"]) == values[True]
        assert float(row["cot=off acc_q"]) == values[False]
        assert float(row["cot=off acc_q difference"]) == values[False] - values[True]
    for call in ([*words, "--format", "markdown"], ["report", "1", "2", "--pivot", "--format", "markdown"]):
        assert main(call) == 0
        assert f"| {values[True]:.1f} " in capsys.readouterr().out


def test_two_runs_without_pivot_are_reported_as_ever(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["report", "1", "2"]) == 0
    out = capsys.readouterr().out
    assert "run 1" in out
    assert "run 2" in out


def test_a_dry_run_asks_and_writes_nothing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--out", "out", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "[2/2] chance, cot=off: 12 to ask, 0 cached" in out
    assert "to ask                      24" in out
    assert main([*words, "--dry-run", "--json"]) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert estimate["total"]["to_ask"] == 24
    assert [one["at"] for one in estimate["points"]] == [{"cot": True}, {"cot": False}]
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        (["--set", "cto=on,off"], "did you mean 'cot'?"),
        (["--set", "image=shown,hidden"], "one of shown, caption, none"),
        (["--gen", "stream=true,false"], "is not a sampling option"),
        (["--model", "baseline/chance"], "twice"),
        (["--model", "x/y", "--model-id", "z"], "--model-id"),
        (["--plot", "curves.png", "--plot-kind", "curves"], "no option has two numbers"),
        (["--plot", "none/bars.png"], "an existing folder"),
        (["--gen", "temperature=0,1", "--plot", "curves.jpg"], ".svg, .pdf or .png"),
        (["--gen", "released"], "KEY=VALUE"),
        (["--max-cost", "1"], "without a price"),
    ],
)
def test_what_is_wrong_with_any_point_is_said_before_the_first_call(
    words: list[str], more: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = words if "--set" not in more else words[:-2]
    assert main([*given, *more, "--out", "out"]) == 2
    assert hint in capsys.readouterr().err
    assert list(Path().iterdir()) == []


@pytest.mark.slow
def test_curves_are_drawn_where_asked_for(words: list[str]) -> None:
    pytest.importorskip("matplotlib")
    sweep = [*words[:-2], "--gen", "temperature=0.2,0.7,1", "--quiet", "--out", "out"]
    assert main([*sweep, "--plot", "curves.png"]) == 0
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    assert main(["report", "out", "--plot", "again.png"]) == 0
    assert Path("again.png").read_bytes() == Path("curves.png").read_bytes()


def test_a_folder_with_a_broken_sweep_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.json").write_text('{"task": 1}')
    assert main(["report", str(tmp_path)]) == 2
    assert "is not a valid sweep.json" in capsys.readouterr().err
    (tmp_path / "sweep.json").write_text('{"task": "codis", "exit_status": 4, "points": []}')
    assert main(["report", str(tmp_path)]) == 2
    assert "no point of this sweep has a result" in capsys.readouterr().err
