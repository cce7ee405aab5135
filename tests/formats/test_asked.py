"""The rule for recorded answers: options, letters and texts are those of the file, not of the setting."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sightline
from sightline.evaluation.result import Evaluation
from sightline.formats.jsonl import as_asked, image_paths
from sightline.formats.prediction import Prediction
from sightline.types import LETTERS, ImageRef, Probe, user

OPTIONS = st.lists(
    st.text(min_size=2).filter(lambda text: len(text.strip()) != 1), min_size=2, max_size=26, unique=True
)
"""No option's text is a letter with white space: as a reference, it is the letter."""


@given(OPTIONS, st.randoms(use_true_random=False))
def test_whatever_the_order_in_the_file_the_references_name_the_same_options(
    options: list[str], rng: random.Random
) -> None:
    shown = rng.sample(options, len(options))
    letter = rng.choice(LETTERS[: len(options)])
    right = options[LETTERS.index(letter)]
    probe = Probe("q", "v", (user("q"),), "q", (letter, f" {letter} ", right), tuple(options))
    asked = as_asked(probe, Prediction("q", "v", "", options=tuple(shown)))
    carried, spaced, text = asked.references
    assert (shown[LETTERS.index(carried)], text, asked.options) == (right, right, tuple(shown))
    assert spaced.strip() == carried


def test_an_option_after_z_has_no_letter() -> None:
    options = tuple(f"option {number}" for number in range(27))
    probe = Probe("q", "v", (user("q"),), "q", ("A", "B"), options)
    assert as_asked(probe, Prediction("q", "v", "", options=options[::-1])).references == ("Z",)


@pytest.mark.parametrize("how", ["score", "replay"])
@pytest.mark.parametrize("count", [2, 7, 26])
def test_right_choices_are_right_for_any_number_of_options(tmp_path: Path, how: str, count: int) -> None:
    options = [f"object {number:02}" for number in range(count)]
    lines, answers = [], []
    for number, text in enumerate(options):
        name = f"q{number}"
        references = [LETTERS[number] if number % 2 else text]
        lines.append(
            {"group": name, "variant": "v", "prompt": "?", "options": options, "references": references}
        )
        response = LETTERS[count - 1 - number]
        answers.append({"group": name, "variant": "v", "options": options[::-1], "response": response})
    for file, records in (("g.jsonl", lines), ("a.jsonl", answers)):
        (tmp_path / file).write_text("\n".join(map(json.dumps, records)))
    task, no_embedder = f"groups:{tmp_path / 'g.jsonl'}", {"embedder": "none"}
    if how == "score":
        result = sightline.score(task, tmp_path / "a.jsonl", set=no_embedder).result
    else:
        model = f"replay/{tmp_path / 'a.jsonl'}"
        result = sightline.run(task, model=model, set=no_embedder, store=tmp_path / "s.db").result
    assert {one.value for one in result.metrics if one.metric == "acc"} == {100.0}


def test_without_options_in_the_file_the_order_is_that_of_the_setting() -> None:
    probe = Probe("q", "v", (user("q"),), "q", ("A",), ("sun", "rain"))
    asked = as_asked(probe, Prediction("q", "v", "(A)"))
    assert (asked.options, asked.references) == (probe.options, probe.references)
    assert as_asked(probe, None) is probe


def test_a_right_option_that_the_file_does_not_offer_is_no_reference() -> None:
    probe = Probe("q", "v", (user("q"),), "q", ("A",), ("sun", "rain"))
    assert as_asked(probe, Prediction("q", "v", "(A)", options=("fog", "hail"))).references == ()


def shuffled_answers(data: Path, path: Path, variants: list[str], *, with_options: bool = True) -> Path:
    """Right answers to the questions of dev, each to options in a random order of its own."""
    rng = random.Random(1)
    lines = []
    for record in json.loads((data / "dev.json").read_bytes()):
        for question in record["questions"]:
            for variant in variants:
                order = rng.sample(question["options"], 6)
                right = question["options"][LETTERS.index(question["answer"])]
                line: dict[str, Any] = {"id": question["id"], "variant": variant}
                line |= {"options": order} if with_options else {}
                lines.append({**line, "response": f"({LETTERS[order.index(right)]})"})
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def answered(how: str, task: str, file: Path, data: Path, tmp_path: Path) -> Evaluation:
    if how == "score":
        return sightline.score(task, file, data=data, split="dev")
    store = tmp_path / "s.db"
    return sightline.run(task, model=f"replay/{file}", data=data, split="dev", store=store)


@pytest.mark.parametrize("how", ["score", "replay"])
@pytest.mark.parametrize(
    ("setting", "variants"), [("none", ["none"]), ("shuffled", ["order_0", "order_1", "order_2"])]
)
def test_right_answers_are_right_in_any_order_of_their_options(
    shared: Path, tmp_path: Path, how: str, setting: str, variants: list[str]
) -> None:
    data = shared / "data" / "iibench"
    file = shuffled_answers(data, tmp_path / "a.jsonl", variants)
    evaluation = answered(how, f"iibench:{setting}", file, data, tmp_path)
    assert {metric.value for metric in evaluation.metrics if metric.metric == "accuracy"} == {100.0}
    assert not any("verified" in note for note in evaluation.result.notes)


@pytest.mark.parametrize("how", ["score", "replay"])
def test_an_assumed_order_of_options_is_reported(shared: Path, tmp_path: Path, how: str) -> None:
    data = shared / "data" / "iibench"
    file = shuffled_answers(data, tmp_path / "a.jsonl", ["none"], with_options=False)
    evaluation = answered(how, "iibench:none", file, data, tmp_path)
    (note,) = (note for note in evaluation.result.notes if "verified" in note)
    assert note.startswith("35 of 35 answers come without the options that the model saw")


@pytest.mark.parametrize("how", ["score", "replay"])
def test_the_options_of_a_groups_file_follow_the_answers_too(tmp_path: Path, how: str) -> None:
    line = {"group": "g", "prompt": "Weather?", "options": ["sun", "rain", "fog"], "references": ["A"]}
    lines = [{**line, "variant": variant} for variant in ("a", "b")]
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, lines)))
    answers = [
        {"group": "g", "variant": "a", "options": ["rain", "sun", "fog"], "response": "(B)"},
        {"group": "g", "variant": "b", "options": ["fog", "rain", "sun"], "response": "(C)"},
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(map(json.dumps, answers)))
    task, options = f"groups:{tmp_path / 'g.jsonl'}", {"embedder": "none"}
    if how == "score":
        evaluation = sightline.score(task, file, set=options)
    else:
        evaluation = sightline.run(task, model=f"replay/{file}", set=options, store=tmp_path / "s.db")
    assert next(metric.value for metric in evaluation.metrics if metric.metric == "acc") == 100.0


@given(
    root=st.sampled_from(["", "a", "/r", "/r/", "./a", "a/../b", "."]),
    parts=st.lists(st.sampled_from(["a", "b.png", "..", ".", "", "...", ".hidden"]), min_size=1, max_size=4),
    inside=st.booleans(),
)
def test_the_path_of_an_image_is_the_one_relative_to_its_folder(
    root: str, parts: list[str], inside: bool
) -> None:
    path = "/".join([root, *parts] if inside else parts) or "a"
    expected = Path(os.path.relpath(path, root) if root else path).as_posix()
    assert image_paths([user(ImageRef(path, root))]) == (expected,)
