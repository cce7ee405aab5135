"""The best guess from words alone: what a model without eyes could know of the drawn scenes.

A model for `sightline.run`, `words/FOLDER`: it has read the questions and answers of the data that were drawn
there, from another seed than those it is asked about, and sees no image.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from sightline.models.offline import Offline

from sightline.evaluation.prepare import prepare
from sightline.plan.spec import Spec
from sightline.types import Answer, Failure, Message, Request, Text

READ = "read.json"
"""The tasks whose questions are read, in the folder of the drawn data: a list of Spec's fields."""

_OPTION = re.compile(r"^\(([A-F])\) (.+)$", re.MULTILINE)


class Words(Offline):
    """Naive Bayes over the words of a question; of options, the one that was right most often.

    Answers and words are counted with one more of each than there were.
    """

    host = "words"

    def __init__(self, name: str, read: Iterable[tuple[str, str]]) -> None:
        self.name = self.identity = name
        self._answers: Counter[str] = Counter()
        self._words: dict[str, Counter[str]] = defaultdict(Counter)
        self._offered: Counter[str] = Counter()
        for question, answer in read:
            offered = _options(question)
            self._offered.update(offered.values())
            self._answers[offered.get(answer, answer)] += 1
            if not offered:
                self._words[answer].update(_words(question))
        self._known = len({word for words in self._words.values() for word in words})

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """The likeliest answer to each request."""
        for place, request in enumerate(requests):
            yield place, Answer(self.guess(_text(request.messages)), finish_reason="stop")

    def guess(self, question: str) -> str:
        """The likeliest answer to a question."""
        offered = list(_options(question).values())
        if offered:
            return max(offered, key=lambda option: (self._answers[option] + 1) / (self._offered[option] + 6))
        words = _words(question)
        return max(self._words, key=lambda answer: self._likely(answer, words))

    def _likely(self, answer: str, words: Counter[str]) -> float:
        counts = self._words[answer]
        total = counts.total() + self._known
        said = sum(times * math.log((counts[word] + 1) / total) for word, times in words.items())
        return math.log(self._answers[answer]) + said


def _options(question: str) -> dict[str, str]:
    """The options that a question offers, by their letters."""
    return dict(_OPTION.findall(question))


def _words(question: str) -> Counter[str]:
    return Counter(re.findall(r"[a-z0-9]+", question.lower()))


def _text(messages: Sequence[Message]) -> str:
    return "\n".join(part.text for message in messages for part in message.parts if isinstance(part, Text))


def _questions(spec: Spec) -> Iterable[tuple[str, str]]:
    """What a task asks, with the answer."""
    task = prepare(spec).task
    for sample in task.samples:
        for probe in task.benchmark.probes(sample, task.options.benchmark):
            if probe.references:
                yield _text(probe.messages), probe.references[0]


def words(rest: str, spec: str, _: object) -> Sequence[Words]:
    """The model `words/FOLDER`."""
    tasks = json.loads((Path(rest) / READ).read_text())
    asked = [Spec(**{**task, "model": "baseline/chance"}) for task in tasks]
    return [Words(spec, (pair for one in asked for pair in _questions(one)))]


models = {"words/": words}
