"""ConTextual's judge: the prompt of Figure 20, and the released reading of its replies."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from sightline.scoring.scorer import ModelScorer, accepted, seeing
from sightline.text import load
from sightline.types import Case, ImageFile, ImageRef, Text

PROMPT = load("sightline.benchmarks.contextual")["judge"]["text"]
CASE = Case(
    ("k",),
    "correct",
    "Give the number {x}.",
    ("It is {prediction} 16.",),
    ("16",),
    images=(ImageFile("/data/x.jpg", "d", "JPEG", 1, 1, (1, 1)),),
)


def prompt_of(scorer: ModelScorer) -> tuple[list[str], str]:
    """The paths of the images that are asked about, and the words."""
    (message,) = scorer.ask(CASE)
    images = [part.path for part in message.parts if isinstance(part, ImageRef)]
    (words,) = [part.text for part in message.parts if isinstance(part, Text)]
    return images, words


def test_the_prompt_is_that_of_figure_20(shared: Path) -> None:
    paper = (shared / "papers/contextual.txt").read_text()
    start = paper.index("You are ImageTaskEvaluatorGPT")
    figure = paper[start : paper.index("Figure 20. Example prompt", start)]
    words, _, example = PROMPT.partition("\nInstruction: ")
    assert " ".join(figure.split()).startswith(" ".join(words.split()))
    printed = [line.partition(":")[0] for line in figure.splitlines() if ":" in line][-4:]
    ours = [line.partition(":")[0] for line in f"Instruction: {example}".splitlines()]
    assert [*ours, "Response"] == printed


def test_the_prompt_is_that_of_the_released_script_byte_for_byte() -> None:
    """PROMPT of eval/response_eval_gpt4.py at 6e199b8, which calls the reference 'groundtruth'."""
    released = PROMPT.replace("{reference}", "{groundtruth}").encode()
    assert hashlib.sha256(released).hexdigest() == (
        "f1d7ba5e9648f1cc8f9cee777cd209a980030bb63bbeebcbbaa9cd737252535e"
    )


def test_the_prompt_ends_behind_the_prediction_and_braces_in_answers_stay() -> None:
    images, words = prompt_of(accepted(PROMPT))
    assert images == []
    assert words.endswith(
        "Instruction: Give the number {x}.\nGround-truth Response: 16\n"
        "Predicted Response: It is {prediction} 16."
    )


def test_a_judge_who_sees_is_shown_the_image_before_the_same_words() -> None:
    images, words = prompt_of(seeing(accepted(PROMPT), True))
    assert images == ["/data/x.jpg"]
    assert words == prompt_of(accepted(PROMPT))[1]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Judgement: No\nJudgement: Yes", "right"),
        ("Judgement: No, as Yesterday is meant", "right"),
        ("Judgement: No", "wrong"),
        ("Judgement: Neither", "undecided"),
        ("judgement: Yes", "undecided"),
        ("Yes", "right"),
        ("Yes.", "undecided"),
    ],
)
def test_as_released_the_first_judgement_counts_and_yes_wins(reply: str, expected: str) -> None:
    """eval/response_eval_gpt4.py: what follows 'Judgement: ', in which 'Yes' is looked for before 'No'."""
    assert accepted(PROMPT, released=True).read(CASE, reply).verdict == expected
