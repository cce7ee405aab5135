"""Models without a connection: `replay` takes answers from a file of predictions, `baseline` guesses."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.formats.files import read_bytes, text_digest
from sightline.formats.jsonl import as_answered
from sightline.formats.other_tools import of_model, read_predictions
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.models.base import Capabilities, Model
from sightline.types import NOT_SENT, Answer, Failure, Origin, Request, Text

# -- The base class of models without a connection and without sampling, such as `replay` and `baseline`


class OfflineModel(Model):
    """The members of `Model` that are the same for every model that answers without a connection."""

    batch_size = 256

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Drop all options, because none changes an answer."""
        return {}


class Replay(OfflineModel):
    """Answers each probe from a file of predictions, in any layout that `score` reads.

    Its identity is the digest of the file. A probe without a prediction is a permanent failure.
    """

    host = "replay"
    capabilities = Capabilities(replays=True)

    def __init__(self, file: str, answer_files: AnswerFiles) -> None:
        self.name = f"replay/{file}"
        self._file = Path(file)
        self._answer_files = answer_files
        self.identity = f"replay {hashlib.sha256(read_bytes(self._file)).hexdigest()}"
        self._predictions: dict[tuple[str, str], dict[tuple[str, str, int], Prediction]] = {}

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            origin = request.origin
            if origin is None:
                yield index, Failure("permanent", "a replayed file answers only the probes of a benchmark")
                continue
            if (origin.benchmark, origin.setting) not in self._predictions:
                await asyncio.to_thread(self._read, origin)
            yield index, self._answer(origin)

    def recorded(self, origin: Origin) -> Prediction | None:
        """The answer in the file, with the question and the options that it was given to."""
        if (origin.benchmark, origin.setting) not in self._predictions:
            self._read(origin)
        predictions = self._predictions[origin.benchmark, origin.setting]
        found = predictions.get((origin.sample, origin.variant, origin.draw))
        return found and as_answered(found, origin.options)

    def _answer(self, origin: Origin) -> Answer | Failure:
        prediction = self.recorded(origin)
        if prediction is None or prediction.error == NOT_SENT:
            return Failure("permanent", f"{self._file} has no answer to {origin.sample} {origin.variant}")
        if prediction.error is not None:
            return Failure("permanent", f"{self._file} records a failure: {prediction.error}")
        return Answer(
            prediction.response,
            reasoning=prediction.reasoning,
            finish_reason=prediction.finish_reason,
            version=self.name,
        )

    def _read(self, origin: Origin) -> None:
        predictions = read_predictions(
            self._file, self._answer_files, setting=origin.variant, allow_missing=True
        )
        self._predictions[origin.benchmark, origin.setting] = {
            (prediction.sample, prediction.variant, prediction.draw): prediction
            for prediction in of_model(predictions, "", self._file)
        }


# -- Baselines without a model: `baseline/chance` picks one of the offered options at random

_OPTION = re.compile(r"^\(([A-Z])\) ", re.MULTILINE)
_OTHER_OPTION = re.compile(r"(?:^|(?<=\s))([A-Z])(?:[.)] |:)|(?<=\s)\(([A-Za-z])\) ", re.MULTILINE)
"""Options in other layouts: 'A. red B. blue', 'A:red; B:blue', '(A) red (B) blue' or '(a) red (b) blue'."""
_ANSWER_YES_OR_NO = re.compile(r"\banswer (?:with )?yes or no\b", re.IGNORECASE)
_QUESTION = re.compile(r"Question:\s*(.+)", re.DOTALL)
_OR = re.compile(r"\bor\b")
_OPEN = re.compile(
    r"((in|at|on|to|from|by|for) )?(who|whom|whose|what|which|when|where|why|how)\b", re.IGNORECASE
)
_YES_NO = re.compile(
    r"(is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(f"{_OPEN.pattern}|{_YES_NO.pattern}", re.IGNORECASE)


class ChanceBaseline(OfflineModel):
    """Guesses: a letter if options are listed, one of the choices in the question, otherwise yes or no.

    The guess is a pure function of the request and the seed; images do not matter.
    """

    name = "baseline/chance"
    host = "baseline"

    def __init__(self, seed: int = 0) -> None:
        self.identity = f"baseline/chance seed {seed}"
        self._seed = seed

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            text = "\n".join(part.text for part in request.messages[-1].parts if isinstance(part, Text))
            choices = _choices(text)
            digest = bytes.fromhex(text_digest(f"{self._seed}/{request.key}"))
            guess = choices[int.from_bytes(digest[:8], "big") % len(choices)]
            yield index, Answer(guess, finish_reason="stop", version=self.name)


def _choices(prompt: str) -> list[str]:
    r"""The choices that a prompt offers.

    >>> _choices("Question: Is the hand moving up or down?")
    ['up', 'down']
    >>> _choices("Question: Up or down: which way does the hand move?")
    ['Up', 'down']
    >>> _choices("Question: When was it taken, by day or by night?")
    ['by day', 'by night']
    >>> _choices("Question: Can I eat it?")
    ['Yes', 'No']
    >>> _choices("Which one? (A) red (B) blue"), _choices("Which one?\nA. red\nB. blue")
    (['(A)', '(B)'], ['(A)', '(B)'])
    >>> _choices("Which one? (a) red (b) blue"), _choices("Which one? A. red B. blue")
    (['(a)', '(b)'], ['(A)', '(B)'])
    >>> _choices("Which one?\nOption: A:red; B:blue;Please output the letter.")
    ['(A)', '(B)']
    >>> _choices("Is it red, or is it blue?Please answer Yes or No.")
    ['Yes', 'No']
    """
    if letters := _OPTION.findall(prompt) or _other_letters(prompt):
        return [f"({letter})" for letter in dict.fromkeys(letters)]
    if _ANSWER_YES_OR_NO.search(prompt):
        return ["Yes", "No"]
    questions = _QUESTION.findall(prompt)
    question = (questions[-1] if questions else prompt).strip()
    offer = _offer(question)
    pieces = [piece.strip(" ?.") for piece in re.split(r",|\bor\b", offer)]
    first, *others = [piece for piece in pieces if piece] or [""]
    if not others:
        return ["Yes", "No"]
    stands_apart = not question.startswith(offer) and not _ASKING.match(offer)
    return [first if stands_apart else _end(first, others), *others]


def _other_letters(prompt: str) -> list[str]:
    """The letters of options in other layouts, if they are at least A and B."""
    letters = ["".join(found) for found in _OTHER_OPTION.findall(prompt)]
    return letters if letters[:2] in (["A", "B"], ["a", "b"]) else []


def _offer(question: str) -> str:
    """The clauses of a question that offer choices, with the stem if it is in one of them.

    >>> _offer("Which way is the car going, uphill or downhill?")
    'uphill or downhill?'
    >>> _offer("What does he do, is he giving or receiving the present?")
    'is he giving or receiving the present?'
    >>> _offer("Was it day or night, would you say?")
    'Was it day or night'
    """
    sentence = re.split(r"(?<=[.?!])\s+", question)[-1]
    # 'Up or down: which way does the hand move?' has its choices before the colon.
    part = next((part for part in sentence.split(":") if _OR.search(part)), "")
    clauses = [clause.strip() for clause in part.split(",")]
    while len(clauses) > 1 and not _OR.search(clauses[-1]):
        del clauses[-1]
    # 'Is it red, green or blue?' has choices from its first clause on, 'Which is it, ...' and
    # 'From here, is it ...' from the second clause on.
    while len(clauses) > 1 and (_OPEN.match(clauses[0]) or _is_aside(*clauses[:2])):
        del clauses[0]
    return ", ".join(clauses)


def _is_aside(clause: str, following: str) -> bool:
    """Whether a clause only introduces the question after it."""
    return not _ASKING.match(clause) and bool(_ASKING.match(following))


def _end(clause: str, others: Sequence[str]) -> str:
    """The end of a clause that is a choice next to the other choices.

    >>> _end("Is the hand moving up", ["down"])
    'up'
    >>> _end("Is it on the left side", ["the right side"])
    'the left side'
    """
    words = clause.split()
    openings = {other.split()[0].casefold() for other in others}
    shared = [number for number, word in enumerate(words) if word.casefold() in openings]
    return " ".join(words[shared[-1] :]) if shared else words[-1]
