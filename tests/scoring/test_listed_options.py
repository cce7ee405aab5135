"""The option that an answer chooses from a list, by letter or by text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sightline.scoring.chosen import chosen_letter
from sightline.scoring.options import extract_released

FRUITS = ["a red apple", "a green pear", "a yellow banana", "apple"]


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        ("B", "B"),
        ("b)", "B"),
        ("(c)", "C"),
        ("B. a green pear", "B"),
        ("The answer is (C).", "C"),
        ("(A) is too red and (B) too green.\nAnswer: C", "C"),
        ("A man holds (B).", "B"),
        ("I think it is a green pear.", "B"),
        ("A red apple", "A"),
        ("It shows a red apple.", "A"),
        ("apple", "D"),
        ("A or B", None),
        ("It is not a green pear.", None),
        ("A man holds fruit.", None),
        ("E", None),
        ("I cannot tell.", None),
        ("", None),
    ],
)
def test_an_answer_chooses_the_option_that_it_names_alone(response: str, letter: str | None) -> None:
    assert chosen_letter(response, FRUITS) == letter


def test_on_released_answers_it_reads_what_the_released_script_reads(shared: Path) -> None:
    read = 0
    for file in sorted((shared / "data/iibench/released").glob("*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
            (question,) = json.loads(line)["questions"]
            response, options = question["response"], question["options"]
            assert chosen_letter(response, options) == extract_released(response, options), response
            read += 1
    assert read == 5 * 1399
