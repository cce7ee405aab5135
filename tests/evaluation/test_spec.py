"""Each option is declared once; what no server accepts is refused before the first request."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from sightline.benchmarks.registry import benchmark
from sightline.cli.options import Parser, add_evaluation, options_of
from sightline.errors import UserError
from sightline.evaluation.options import effective, setting_of
from sightline.evaluation.spec import (
    RequestOptions,
    RunOptions,
    ScoreOptions,
    Spec,
    SweepOptions,
    declared_options,
    recorded_options,
    spec_of,
)


def sampling(**gen: Any) -> dict[str, Any]:
    codis = benchmark("codis")
    return dict(effective(codis, setting_of(codis, "codis"), Spec(task="codis", gen=gen)).sampling)


@pytest.mark.parametrize(
    "gen",
    [
        {"temperature": "hot"},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"temperature": True},
        {"top_p": 1.5},
        {"max_tokens": 0},
    ],
)
def test_values_that_no_server_can_take_are_refused(gen: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=rf"--gen {next(iter(gen))}=.*expected a number from"):
        sampling(**gen)


def test_null_leaves_an_option_out_and_unknown_ones_pass() -> None:
    assert sampling(temperature=None, top_k=5, top_p=0.9) == {"max_tokens": 1024, "top_k": 5, "top_p": 0.9}


def test_every_path_is_stored_as_text() -> None:
    paths = [option for option in declared_options(RunOptions) if option.is_path]
    spec = spec_of("codis", {"model": "m", **{option.name: Path("p") for option in paths}}, RunOptions)
    assert {option.name: getattr(spec, option.name) for option in paths} == dict.fromkeys(
        ("data", "store", "config", "out", "captions"), "p"
    )
    stored = get_type_hints(Spec)
    assert all(stored[option.name] in (str, str | None) for option in paths)


def test_the_command_line_has_a_flag_for_each_declared_option_and_the_same_defaults() -> None:
    for command in (RunOptions, SweepOptions, ScoreOptions):
        parser = Parser()
        add_evaluation(parser, command)
        flags = parser.format_usage()
        assert all(option.flag in flags for option in declared_options(command))
    parser = Parser()
    add_evaluation(parser, ScoreOptions)
    parsed = parser.parse_args(["codis"])
    assert spec_of("codis", options_of(parsed, ScoreOptions), ScoreOptions) == Spec(task="codis")


def test_a_parsed_command_line_and_a_call_give_the_same_spec() -> None:
    parser = Parser()
    add_evaluation(parser, RunOptions)
    words = "codis --model m --judge rules --judge openai/x --data d --limit 3 --gen temperature=0"
    words += " --preset released --model-arg timeout=5 --shuffle --set unchanged=on --max-cost 1.5"
    words += " --augment ocr --fail-if a<1"
    parsed = parser.parse_args(words.split())
    assert spec_of("codis", options_of(parsed, RunOptions), RunOptions) == spec_of(
        "codis",
        {
            "model": "m",
            "judge": ["rules", "openai/x"],
            "data": Path("d"),
            "limit": 3,
            "gen": {"temperature": 0},
            "preset": "released",
            "model_arg": {"timeout": 5},
            "shuffle": True,
            "set": {"unchanged": True},
            "max_cost": 1.5,
            "augment": "ocr",
            "fail_if": "a<1",
        },
        RunOptions,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "m", "limt": 3}, "unknown option 'limt', did you mean 'limit'?"),
        ({"model": "m", "limit": "3"}, "wrong value of the option limit (found '3'); expected int"),
        ({"model": "m", "judge": [3]}, "wrong value of the option judge (found [3]); expected str"),
        ({"model": "m", "gen": 3}, "wrong value of the option gen (found 3); expected a mapping"),
        (
            {"model": "m", "decide": "last"},
            "wrong value of the option decide (found 'last'); expected one of first,",
        ),
        ({"model": "m", "augment": "x"}, "expected one of ocr, layout, layout+caption"),
        ({}, "the option model is missing"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        spec_of("codis", options, RunOptions)


def test_options_of_other_commands_are_refused() -> None:
    assert "repeats" in get_type_hints(RequestOptions)
    with pytest.raises(UserError, match="unknown option 'repeats'"):
        spec_of("codis", {"repeats": 2}, ScoreOptions)


@pytest.mark.parametrize("name", ["fresh", "model_id"])
def test_a_text_that_a_user_gives_is_recorded_whatever_it_says(name: str) -> None:
    for text in ("on", "off", "none", "x"):
        assert recorded_options(spec_of("codis", {"model": "m", name: text}, RunOptions))[name] == text


def test_the_options_that_a_result_records_follow_from_their_declarations() -> None:
    spec = Spec(task="codis", limit=3, seed=1)
    assert recorded_options(spec) == {
        "limit": 3,
        "shuffle": None,
        "repeats": 1,
        "seed": 1,
        "fresh": None,
        "model_arg": None,
        "model_id": None,
        "decide": "first",
        "judge_repeats": 1,
        "fingerprint": None,
        "accept_changed": None,
    }


@pytest.mark.parametrize(
    "option",
    [{"model_id": "a\udcff"}, {"fresh": "\udcff"}, {"gen": {"stop": ["\udcff"]}}, {"judge": "\udcff"}],
)
def test_an_option_that_is_not_utf_8_is_refused_by_name(option: dict[str, Any]) -> None:
    """Names enter request keys and results; Python reads other bytes of a command as lone surrogates."""
    with pytest.raises(UserError, match=f"the option {next(iter(option))} is not UTF-8 text"):
        spec_of("codis", {"model": "mini", **option}, RunOptions)


def test_paths_may_have_any_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "\udcff"
    spec = spec_of("codis", {"model": "mini", "data": folder, "out": folder, "store": folder}, RunOptions)
    assert (spec.data, spec.out, spec.store) == (str(folder),) * 3
