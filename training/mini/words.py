"""A baseline that answers from the words of a question alone: what the synthetic data reveal without images.

It is a model for `sightline.run`, `words/FOLDER`. It learns from the questions and answers of synthetic data
in that folder, which have another seed than the data it is tested on, and ignores images.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from sightline.evaluation.prepare import prepare_evaluation
from sightline.evaluation.spec import Spec
from sightline.models.offline import OfflineModel
from sightline.types import Answer, Failure, Message, Request, Text

READ = "read.json"
"""The file in the data folder that lists the tasks to learn from, as fields of Spec."""

_OPTION = re.compile(r"^\(([A-F])\) (.+)$", re.MULTILINE)


class Words(OfflineModel):
    """Naive Bayes over the words of a question; for options, the one that was right most often.

    All counts use add-one smoothing.
    """

    host = "words"

    def __init__(self, name: str, examples: Iterable[tuple[str, str]]) -> None:
        self.name = self.identity = name
        self._answers: Counter[str] = Counter()
        self._words: dict[str, Counter[str]] = defaultdict(Counter)
        self._offered: Counter[str] = Counter()
        for question, answer in examples:
            offered = _options(question)
            self._offered.update(offered.values())
            self._answers[offered.get(answer, answer)] += 1
            if not offered:
                self._words[answer].update(_words(question))
        self._distinct = len({word for words in self._words.values() for word in words})

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Answer each request with the most likely answer."""
        for index, request in enumerate(requests):
            yield index, Answer(self.guess(_text(request.messages)), finish_reason="stop")

    def guess(self, question: str) -> str:
        """The most likely answer to a question."""
        offered = list(_options(question).values())
        if offered:
            return max(offered, key=lambda option: (self._answers[option] + 1) / (self._offered[option] + 6))
        words = _words(question)
        return max(self._words, key=lambda answer: self._likely(answer, words))

    def _likely(self, answer: str, words: Counter[str]) -> float:
        counts = self._words[answer]
        total = counts.total() + self._distinct
        likelihood = sum(times * math.log((counts[word] + 1) / total) for word, times in words.items())
        return math.log(self._answers[answer]) + likelihood


def _options(question: str) -> dict[str, str]:
    """The options of a question by their letters."""
    return dict(_OPTION.findall(question))


def _words(question: str) -> Counter[str]:
    return Counter(re.findall(r"[a-z0-9]+", question.lower()))


def _text(messages: Sequence[Message]) -> str:
    return "\n".join(part.text for message in messages for part in message.parts if isinstance(part, Text))


def _questions(spec: Spec) -> Iterable[tuple[str, str]]:
    """The questions of a task with their answers."""
    task = prepare_evaluation(spec).task
    for sample in task.samples:
        for probe in task.benchmark.probes(sample, task.options.benchmark):
            if probe.references:
                yield _text(probe.messages), probe.references[0]


def words(rest: str, spec: str, _: object) -> Sequence[Words]:
    """The model `words/FOLDER`."""
    tasks = json.loads((Path(rest) / READ).read_text())
    specs = [Spec(**{**task, "model": "baseline/chance"}) for task in tasks]
    return [Words(spec, (pair for one in specs for pair in _questions(one)))]


models = {"words/": words}
