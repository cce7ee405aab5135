"""Judging by a model: the prompts of the papers, and the parsing of replies."""

from __future__ import annotations

from sightline.prompts import fill, load
from sightline.scoring.judge_replies import CORRECT, SAME, read_verdict
from sightline.scoring.scorer import ModelScorer, Reading
from sightline.types import Case, ImageRef, Message, user


def right_or_wrong(prompt: str, *, released: bool = False) -> ModelScorer:
    """A judge that replies 'right' or 'wrong' about an answer and its reference (CODIS, Table 12)."""

    def ask(case: Case) -> tuple[Message, ...]:
        return (
            user(
                fill(prompt, question=case.probe_question, reference=case.references[0], output=case.texts[0])
            ),
        )

    def read(reply: str) -> Reading:
        if released:
            return Reading("right" if "right" in reply else "wrong", reply)
        return Reading(read_verdict(reply, CORRECT), reply)

    return ModelScorer("right_or_wrong", "correct", ask, read)


def same_or_different(prompt: str) -> ModelScorer:
    """A judge that decides whether two answers have the same meaning."""

    def ask(case: Case) -> tuple[Message, ...]:
        first, second = case.texts
        return (user(fill(prompt, question=case.probe_question, first=first, second=second)),)

    def read(reply: str) -> Reading:
        return Reading(read_verdict(reply, SAME), reply)

    return ModelScorer("same_or_different", "same_meaning", ask, read)


def same_meaning_by_model() -> ModelScorer:
    """A judge that compares two answers with the prompt of this package, since no paper prints one."""
    return same_or_different(load(__package__)["same_meaning"]["text"])


def accepted(prompt: str, *, needs_images: bool = False, released: bool = False) -> ModelScorer:
    """A judge that ends its reply with 'Judgement: Yes' or 'Judgement: No' (ConTextual, Figure 20).

    A reply without a verdict (see `read_verdict`) is requested once more, then it is undecided.
    """

    def ask(case: Case) -> tuple[Message, ...]:
        words = fill(
            prompt, instruction=case.probe_question, reference=case.references[0], prediction=case.texts[0]
        )
        images = [ImageRef(file.path) for file in case.images] if needs_images else []
        return (user(*images, words),)

    def read(reply: str) -> Reading:
        return _released_judgement(reply) if released else Reading(read_verdict(reply, CORRECT), reply)

    return ModelScorer("accepted", "correct", ask, read, needs_images, max_attempts=2)


def _released_judgement(reply: str) -> Reading:
    _, stated, said = reply.partition("Judgement: ")
    if stated:
        yes, no = "Yes" in said, "No" in said
    else:
        yes, no = reply == "Yes", reply == "No"
    return Reading("right" if yes else "wrong" if no else "undecided", reply)
