"""Judging by a model: the prompts of the papers, and the parsing of replies."""

from __future__ import annotations

import re

from sightline.prompts import fill, load
from sightline.scoring.scorer import ModelScorer, Reading
from sightline.types import Case, ImageRef, Message, VerdictName, user

_WORD = re.compile(r"[a-z]+")
_JUDGEMENT = re.compile(r"judge?ment\W*:", re.IGNORECASE)
_SAID = re.compile(
    r"[\W_]*(?P<lead>(?:it|that|this|(?:the|my) (?:answer|judge?ment))(?:['’]s| is) (?:an? )?[\W_]*)?"
    r"(?P<said>yes|no)(?![^\W_])(?(lead)(?!\s+\w))(?P<rest>.*)",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(r"(?<![^\W_])(?:yes|no)(?![^\W_])")


def right_or_wrong(prompt: str, *, released: bool = False) -> ModelScorer:
    """A judge that replies 'right' or 'wrong' about an answer and its reference (CODIS, Table 12).

    Args:
        prompt: The prompt with the fields question, reference and output.
        released: Whether to read replies like the released script: right if they contain 'right', else wrong.

    Returns:
        The scorer; any other reply is undecided.
    """

    def ask(case: Case) -> tuple[Message, ...]:
        return (
            user(
                fill(prompt, question=case.probe_question, reference=case.references[0], output=case.texts[0])
            ),
        )

    def read(reply: str) -> Reading:
        if released:
            return Reading("right" if "right" in reply else "wrong", reply)
        return _one_of(reply, {"right": "right", "wrong": "wrong"})

    return ModelScorer("right_or_wrong", "correct", ask, read)


def same_or_different(prompt: str) -> ModelScorer:
    """A judge that decides whether two answers have the same meaning.

    Args:
        prompt: The prompt with the fields question, first and second.

    Returns:
        The scorer; `right` is the same meaning, `wrong` a different one.
    """

    def ask(case: Case) -> tuple[Message, ...]:
        first, second = case.texts
        return (user(fill(prompt, question=case.probe_question, first=first, second=second)),)

    def read(reply: str) -> Reading:
        return _one_of(reply, {"same": "right", "different": "wrong"})

    return ModelScorer("same_or_different", "same_meaning", ask, read)


def same_meaning_by_model() -> ModelScorer:
    """A judge that compares two answers with the prompt of this package, since no paper prints one.

    Returns:
        The scorer for the question `same_meaning`.
    """
    return same_or_different(load(__package__)["same_meaning"]["text"])


def accepted(prompt: str, *, needs_images: bool = False, released: bool = False) -> ModelScorer:
    """A judge that ends its reply with 'Judgement: Yes' or 'Judgement: No' (ConTextual, Figure 20).

    The Yes or No after the last 'Judgement:' counts, unless the line holds the other word too ('Yes/No'),
    or a reply of that one word. Another reply is requested once more, then it is undecided.

    Args:
        prompt: The prompt with the fields instruction, reference and prediction.
        needs_images: Whether the image precedes the prompt (3.2.2: GPT-4V).
        released: Whether to read replies like eval/response_eval_gpt4.py: after the first 'Judgement: ', with
            'Yes' before 'No'.

    Returns:
        The scorer; `right` is accepted.
    """

    def ask(case: Case) -> tuple[Message, ...]:
        words = fill(
            prompt, instruction=case.probe_question, reference=case.references[0], prediction=case.texts[0]
        )
        images = [ImageRef(file.path) for file in case.images] if needs_images else []
        return (user(*images, words),)

    read = _released_judgement if released else _judgement
    return ModelScorer("accepted", "correct", ask, read, needs_images, max_attempts=2)


def _judgement(reply: str) -> Reading:
    said = _SAID.match(_JUDGEMENT.split(reply)[-1]) if _JUDGEMENT.search(reply) else None
    if said is None:
        return _one_of(reply, {"yes": "right", "no": "wrong"})
    found = {said["said"].lower(), *_YES_OR_NO.findall(said["rest"].lower())}
    return Reading("undecided" if len(found) > 1 else "right" if "yes" in found else "wrong", reply)


def _released_judgement(reply: str) -> Reading:
    _, stated, said = reply.partition("Judgement: ")
    if stated:
        yes, no = "Yes" in said, "No" in said
    else:
        yes, no = reply == "Yes", reply == "No"
    return Reading("right" if yes else "wrong" if no else "undecided", reply)


def _one_of(reply: str, words: dict[str, VerdictName]) -> Reading:
    """The verdict if the reply is one of the words, ignoring quotes, case and a full stop."""
    said = _WORD.findall(reply.lower())
    if len(said) == 1 and said[0] in words:
        return Reading(words[said[0]], reply)
    return Reading("undecided", reply)
