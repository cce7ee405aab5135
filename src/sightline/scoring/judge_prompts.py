"""Judging by a model: the papers' prompts filled in, and the replies read."""

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
    """A judge that says 'right' or 'wrong' about an answer and its reference (CODIS, Table 12).

    Anything else in the reply is an unparsed verdict. `released` reads as the released script does:
    right where the reply contains 'right', else wrong.
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

    return ModelScorer("right_or_wrong", ask, read)


def same_or_different(prompt: str) -> ModelScorer:
    """A judge that says whether two answers mean the same: verdict right is same, wrong is different."""

    def ask(case: Case) -> tuple[Message, ...]:
        first, second = case.texts
        return (user(fill(prompt, question=case.probe_question, first=first, second=second)),)

    def read(reply: str) -> Reading:
        return _one_of(reply, {"same": "right", "different": "wrong"})

    return ModelScorer("same_or_different", ask, read)


def same_meaning_by_model() -> ModelScorer:
    """A judge that compares two answers with the prompt of this package, since no paper prints one.

    Returns:
        The scorer for the question `same_meaning`.
    """
    return same_or_different(load(__package__)["same_meaning"]["text"])


def accepted(prompt: str, *, sees: bool = False, released: bool = False) -> ModelScorer:
    """A judge that ends on 'Judgement: Yes' or 'No' (ConTextual, Figure 20): right is accepted.

    The Yes or No that follows the last 'Judgement:' counts where the other word does not stand behind it in
    the line ('Yes/No'), or a bare Yes or No; anything else is asked once more, and is then an unparsed
    verdict. `released` reads as eval/response_eval_gpt4.py does: what follows the first
    'Judgement: ', in which 'Yes' wins over 'No'. Where it `sees`, the image stands before the prompt
    (3.2.2: GPT-4V).
    """

    def ask(case: Case) -> tuple[Message, ...]:
        words = fill(
            prompt, instruction=case.probe_question, reference=case.references[0], prediction=case.texts[0]
        )
        images = [ImageRef(file.path) for file in case.images] if sees else []
        return (user(*images, words),)

    return ModelScorer("accepted", ask, _released_judgement if released else _judgement, sees, chances=2)


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
    """The verdict, where the reply is one of the words (quotes, case and a full stop aside)."""
    said = _WORD.findall(reply.lower())
    if len(said) == 1 and said[0] in words:
        return Reading(words[said[0]], reply)
    return Reading("undecided", reply)
