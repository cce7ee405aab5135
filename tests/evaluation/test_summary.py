"""Notes on what a server's answers show: repeats that never differ, prompt tokens without those of images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from sightline.config import Price
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.summary import Summary, summary_notes
from sightline.types import Group, ImageSize, Outcome, Spent, Usage

WARM = {"temperature": 0.7}
LARGE: ImageSize = (640, 480)


def outcome(sample: str, draw: int = 0, response: str = "a kite", **changes: Any) -> Outcome:
    fields: dict[str, Any] = {
        "sample": sample,
        "variant": "v",
        "draw": draw,
        "key": f"{sample} {draw}",
        "labels": {},
        "response": response,
        "status": "ok",
        "finish_reason": "stop",
        "usage": Usage(),
        "verdict": "right",
        "references": ("a kite",),
    }
    return Outcome(**{**fields, **changes})


def notes(groups: Iterable[Sequence[Outcome]], sampling: Mapping[str, Any] = WARM) -> list[str]:
    summary = Summary()
    for outcomes in groups:
        first = outcomes[0]
        summary.add(JudgedGroup(Group(first.sample, first.draw, "c", tuple(outcomes)), []))
    return summary_notes(summary, 0, {"sampling": sampling})


def repeated(requests: int, draws: int = 2, *, pooled: bool = False, **changes: Any) -> list[list[Outcome]]:
    """Groups of one draw each, or those of all draws of a request."""
    samples = [
        [outcome(f"s{nth}", draw, f"answer {nth}", **changes) for draw in range(draws)]
        for nth in range(requests)
    ]
    return samples if pooled else [[one] for of_sample in samples for one in of_sample]


@pytest.mark.parametrize("pooled", [False, True])
def test_repeats_that_never_differ_at_a_temperature_are_noted(pooled: bool) -> None:
    (note,) = notes(repeated(10, pooled=pooled))
    assert note.startswith("the repeats of each of 10 requests are equal in text at temperature 0.7")


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0}, {"temperature": None}])
def test_equal_repeats_are_expected_without_a_temperature(sampling: Mapping[str, Any]) -> None:
    assert notes(repeated(20), sampling) == []


@pytest.mark.parametrize(
    "groups",
    [
        repeated(9),
        repeated(20, draws=1),
        repeated(20, status="empty"),
        repeated(20, status="error"),
        [*repeated(20), [outcome("x", 0, "yes")], [outcome("x", 1, "no")]],
        [*repeated(20), [outcome("x", 0, reasoning="A?")], [outcome("x", 1, reasoning="B?")]],
    ],
    ids=["few", "one draw", "empty", "failed", "one differs", "the reasoning differs"],
)
def test_few_repeats_and_repeats_that_differ_are_not_noted(groups: Sequence[Sequence[Outcome]]) -> None:
    assert not any("repeats" in note for note in notes(groups))


def with_images(
    tokens: int | None,
    *,
    words: int = 20,
    sizes: Sequence[ImageSize | None] = (LARGE,),
    cached: int | None = None,
    of_images: int | None = None,
) -> Sequence[Outcome]:
    usage = Usage(prompt_tokens=tokens, cached_tokens=cached, image_tokens=of_images)
    return [outcome("s", usage=usage, prompt="word " * words, image_sizes=tuple(sizes))]


@pytest.mark.parametrize("overhead", [0, 10, 36])
def test_prompt_tokens_of_the_text_alone_are_noted(overhead: int) -> None:
    """A text model with the chat template of Qwen 2.5 or Llama 3.1, which the server gave no image."""
    (note,) = notes([with_images(26 + overhead), with_images(40 + overhead, words=35)])
    assert note.startswith("the prompt tokens of 2 of 2 requests with a short text and large images leave")
    assert f"such as {26 + overhead} tokens for 1 image and a text of at least 20:" in note


@given(
    words=st.integers(1, 3000), images=st.integers(1, 8), share=st.floats(1, 4), overhead=st.integers(0, 60)
)
def test_models_that_take_64_tokens_an_image_are_never_noted(
    words: int, images: int, share: float, overhead: int
) -> None:
    """However long the text and however many tokens a word takes."""
    tokens = int(words * share) + 64 * images + overhead
    assert notes([with_images(tokens, words=words, sizes=[LARGE] * images)]) == []


@pytest.mark.parametrize(
    "outcomes",
    [
        with_images(None),
        with_images(0),
        with_images(5),
        with_images(26, sizes=()),
        with_images(26, sizes=(None,)),
        with_images(26, sizes=((224, 224),)),
        with_images(26, of_images=16),
        with_images(26, cached=576),
        with_images(250, words=201),
    ],
    ids=["none", "zero", "not counted", "no image", "unknown size", "small", "counted", "cached", "long"],
)
def test_prompt_tokens_that_say_nothing_of_images_are_not_noted(outcomes: Sequence[Outcome]) -> None:
    assert notes([outcomes]) == []


def test_single_requests_among_others_with_image_tokens_are_not_noted() -> None:
    assert notes([with_images(26), *[with_images(602)] * 2]) == []


def test_the_text_takes_a_token_for_each_word_and_for_signs_at_their_end() -> None:
    text = 'Look (at this): "a kite", isn\'t it?\n\n'
    usage = Usage(prompt_tokens=40)
    (note,) = notes([[outcome("s", usage=usage, prompt=text, image_sizes=(LARGE,))]])
    assert "a text of at least 11:" in note  # Look at this ): a kite ", isn t it ?


def test_tokens_cost_and_latency_are_those_of_all_answers() -> None:
    """60 tokens at full price, 40 cached ones and 10 of the answer, 100 times; quantiles of 1 to 100 s."""
    usage = Usage(100, 10, cached_tokens=40)
    summary = Summary()
    for nth in range(1, 101):
        one = outcome(f"s{nth}", 0, "text", usage=usage, latency=float(nth))
        summary.add(JudgedGroup(Group(one.sample, 0, "c", (one,)), []))
    spent = summary.spent(Price(prompt=2.0, completion=10.0, cached=1.0))
    assert spent == Spent(100, 11_000, 100 * (60 * 2 + 40 * 1 + 10 * 10) / 1e6, 50.5, 95.05)
    assert Summary().spent(None) is UNSET
