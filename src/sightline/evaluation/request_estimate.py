"""The requests that would be sent to one model, and what they would cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from sightline.config import BatchSettings, Price
from sightline.engine.answers import is_settled, state_of
from sightline.engine.endpoint_check import CLOSED, choose, is_comparable
from sightline.engine.keys import KeyedRequest
from sightline.engine.token_estimate import completion_tokens, prompt_tokens
from sightline.evaluation.key_set import KeySet
from sightline.models.batch.input_files import AROUND_BODY
from sightline.types import Answer, Failure, Usage


class RequestsEstimate(Struct, frozen=True, kw_only=True):
    """What would be sent to one model.

    Attributes:
        prompt_tokens: Tokens of the requests to send: four characters or 750 pixels per token, times the
            ratio that cached answers of the run show.
        completion_tokens: Expected tokens of the answers, by the mean of cached answers; None without any.
        expected_cost: The cost by `completion_tokens`, with the checks; None if one of these is unknown.
        full_length_cost: The cost by `to_ask_at_most` and `completion_tokens_at_most`, with the checks. Not a
            bound: `prompt_tokens` is an estimate, above all that of images, and calls that fail and are sent
            again are not part of it. None without a price if anything would be sent.
        batch_files: Files of --batch that are uploaded; None if the model is not asked in batches.
        batch_bytes: Their bytes, with images as they are in the data; None likewise.
    """

    model: str
    requests: int
    cached: int
    to_ask: int
    to_ask_at_most: int
    checks: int
    prompt_tokens: int
    completion_tokens: int | None
    completion_tokens_at_most: int
    expected_cost: float | None
    full_length_cost: float | None
    has_price: bool
    batch_files: int | None = None
    batch_bytes: int | None = None


class AnswerLengths(Struct):
    """Lengths of cached answers: sums of tokens, and the rough estimates of the same prompts."""

    answers: int = 0
    completion_tokens: int = 0
    prompt_tokens: int = 0
    rough_prompt_tokens: int = 0

    def add(self, answer: Answer, rough_prompt_tokens: int = 0) -> None:
        """Count a cached answer.

        Args:
            rough_prompt_tokens: The rough estimate of the tokens of its request; 0 if that is not known.
        """
        self.answers += 1
        completion = answer.usage.completion_tokens
        self.completion_tokens += completion_tokens(answer) if completion is None else completion
        if rough_prompt_tokens and answer.usage.prompt_tokens:
            self.prompt_tokens += answer.usage.prompt_tokens
            self.rough_prompt_tokens += rough_prompt_tokens

    @property
    def mean_completion(self) -> float | None:
        """The mean number of tokens of an answer; None without answers."""
        return self.completion_tokens / self.answers if self.answers else None

    @property
    def prompt_ratio(self) -> float:
        """Tokens of a prompt by its rough estimate; 1 without answers that report them."""
        return self.prompt_tokens / self.rough_prompt_tokens if self.rough_prompt_tokens else 1.0


class BatchTally(Struct):
    """Counts the files of batches that requests fill, and their bytes."""

    settings: BatchSettings
    files: int = 0
    bytes: int = 0
    _lines: int = 0
    _size: int = 0

    def add(self, keyed: KeyedRequest) -> None:
        images = sum(4 * ((file.stamp[0] + 2) // 3) for file in keyed.request.images.values())
        line = AROUND_BODY + len(keyed.canonical) + images
        is_full = self._lines == self.settings.lines or self._size + line > self.settings.bytes
        if not self.files or is_full:
            self.files, self._lines, self._size = self.files + 1, 0, 0
        self._lines, self._size, self.bytes = self._lines + 1, self._size + line, self.bytes + line


class RequestTally(Struct, kw_only=True):
    """Counts the requests to one model.

    Attributes:
        price: Its price; None if sightline.toml has none.
        endpoints: Endpoints that are checked before cached answers are used; 0 for none.
        check_price: Its price for the requests of these checks; None if sightline.toml has none.
        batches: The files of its batches; None if it is not asked in batches.
        image_bytes: The bytes of the images in the requests to send.
        rough_tokens: The rough number of tokens of the requests to send.
    """

    model: str
    price: Price | None
    max_tokens: int
    attempts: int = 1
    endpoints: int = 0
    check_price: Price | None = None
    batches: BatchTally | None = None
    counted: KeySet = field(default_factory=KeySet)
    to_send: KeySet = field(default_factory=KeySet)
    image_bytes: int = 0
    rough_tokens: int = 0
    lengths: AnswerLengths = field(default_factory=AnswerLengths)
    _comparable: dict[str, Answer] = field(default_factory=dict)

    def add(
        self,
        requests: Iterable[KeyedRequest],
        stored: Mapping[str, Answer | Failure],
        planned: KeySet,
        *,
        retry: bool,
    ) -> None:
        """Count requests; those counted before are skipped."""
        new = {keyed.request.key: keyed for keyed in requests if keyed.request.key not in self.counted}
        for key, keyed in new.items():
            size = _size(keyed)
            result = stored.get(key)
            if isinstance(result, Answer):
                self.lengths.add(result, size[1])
                if len(self._comparable) < CLOSED and is_comparable(keyed.request, result):
                    self._comparable[key] = result
            settled = result is not None and is_settled(state_of(result), retry_errors=retry)
            self.counted.add(key)
            if key not in planned and not settled:
                self.to_send.add(key)
                self.image_bytes += size[0]
                self.rough_tokens += size[1]
                if self.batches is not None:
                    self.batches.add(keyed)

    def estimate(self, other: AnswerLengths | None = None) -> RequestsEstimate:
        """Estimate the cost of what was counted.

        Args:
            other: The lengths of other cached answers of the model, for the case that none was counted.
        """
        to_send = len(self.to_send)
        lengths = self.lengths if self.lengths.answers else other or self.lengths
        prompt = round(self.rough_tokens * lengths.prompt_ratio)
        mean = lengths.mean_completion
        expected = round(to_send * mean) if mean is not None else None
        if not to_send:
            expected = 0
        texts = {key: answer.text for key, answer in self._comparable.items()} if to_send else {}
        checked = [self._comparable[key] for key in choose(texts)]
        at_most = to_send * self.max_tokens * self.attempts
        expected_usage = None if expected is None else Usage(prompt, expected)
        return RequestsEstimate(
            model=self.model,
            requests=len(self.counted),
            cached=len(self.counted) - to_send,
            to_ask=to_send,
            to_ask_at_most=to_send * self.attempts,
            checks=len(checked) * self.endpoints,
            prompt_tokens=prompt,
            completion_tokens=expected,
            completion_tokens_at_most=at_most,
            expected_cost=self._total(expected_usage, checked),
            full_length_cost=self._total(Usage(prompt * self.attempts, at_most), checked),
            has_price=self.price is not None,
            batch_files=self.batches.files if self.batches is not None else None,
            batch_bytes=self.batches.bytes if self.batches is not None else None,
        )

    def _total(self, usage: Usage | None, checked: Iterable[Answer]) -> float | None:
        """The cost of requests and of checks of all endpoints; None if it is unknown."""
        if usage == Usage(0, 0):
            return 0.0
        if usage is None or self.price is None:
            return None
        checks = sum(self.check_price.of(answer.usage) for answer in checked) if self.check_price else 0.0
        return self.price.of(usage) + self.endpoints * checks


def _size(keyed: KeyedRequest) -> tuple[int, int]:
    """The bytes of the images and the rough number of tokens of one request."""
    return sum(file.stamp[0] for file in keyed.request.images.values()), prompt_tokens(keyed)
