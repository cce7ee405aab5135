"""Baselines that need no model: chance, which picks one of the offered options, seeded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Sequence

from sightline.models.offline import Offline
from sightline.types import Answer, Failure, Request, Text

_OPTION = re.compile(r"^\(([A-Z])\) ", re.MULTILINE)
_QUESTION = re.compile(r"Question:\s*(.+)", re.DOTALL)


class Chance(Offline):
    """Guesses: a letter where options are listed, one of the words that the question offers, else yes or no.

    The guess is a pure function of the request and `seed`; it never looks at a picture.
    """

    name = "baseline/chance"
    host = "baseline"

    def __init__(self, seed: int = 0) -> None:
        self.identity = f"baseline/chance seed {seed}"
        self._seed = seed

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Guess for each request."""
        for index, request in enumerate(requests):
            text = "\n".join(part.text for part in request.messages[-1].parts if isinstance(part, Text))
            choices = _choices(text)
            digest = hashlib.sha256(f"{self._seed}/{request.key}".encode()).digest()
            guess = choices[int.from_bytes(digest[:8], "big") % len(choices)]
            yield index, Answer(guess, finish_reason="stop", version=self.name)


def _choices(prompt: str) -> list[str]:
    """What a prompt offers to choose from.

    >>> _choices("Question: Is the hand moving up or down?")
    ['up', 'down']
    >>> _choices("Question: Up or down: which way does the hand move?")
    ['Up', 'down']
    >>> _choices("Question: Can I eat it?")
    ['Yes', 'No']
    """
    letters = _OPTION.findall(prompt)
    if letters:
        return [f"({letter})" for letter in dict.fromkeys(letters)]
    found = _QUESTION.findall(prompt)
    question = found[-1].strip() if found else prompt
    last = re.split(r"(?<=[.?!])\s+", question.strip())[-1]
    # 'Up or down: which way does the hand move?' offers before its colon.
    last = next((part for part in last.split(":") if re.search(r"\bor\b", part)), "")
    if not last:
        return ["Yes", "No"]
    pieces = [piece.strip(" ?.") for piece in re.split(r",|\bor\b", last)]
    pieces = [piece for piece in pieces if piece]
    # 'Is the hand moving up' offers its last word beside 'down'.
    return [pieces[0].split()[-1], *pieces[1:]] if len(pieces) > 1 else ["Yes", "No"]
