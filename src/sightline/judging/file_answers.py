"""Answers that were read from a file, looked up by key as those of the store are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sightline.engine.keys import key_of
from sightline.errors import UserError
from sightline.formats.prediction import Prediction
from sightline.types import NOT_SENT, Answer, Failure


class FileAnswers:
    """Answers from a file, by the keys made for them."""

    def __init__(self) -> None:
        self._by_key: dict[str, Answer | Failure] = {}

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """The answers under some keys."""
        return {key: self._by_key[key] for key in keys if key in self._by_key}

    def add(self, benchmark: str, setting: str, prediction: Prediction) -> str:
        """Add an answer; nothing is kept of a probe that was not sent."""
        key = prediction_key(benchmark, setting, prediction)
        if prediction.error == NOT_SENT:
            return key
        result = _result(prediction)
        if self._by_key.setdefault(key, result) != result:
            raise UserError(
                "two different answers have the same key",
                record=prediction.sample,
                field="key",
                found=key,
                expected="the keys of one answers.jsonl, or none",
            )
        return key


def prediction_key(benchmark: str, setting: str, prediction: Prediction) -> str:
    """The key of an answer from a file."""
    probe = [benchmark, setting, prediction.sample, prediction.variant, prediction.draw]
    model = [prediction.model] if prediction.model else []
    return prediction.key or key_of(repr([*probe, prediction.response, *model]).encode())


def _result(prediction: Prediction) -> Answer | Failure:
    if prediction.error is not None:
        return Failure("permanent", prediction.error)
    return Answer(
        prediction.response,
        finish_reason=prediction.finish_reason,
        usage=prediction.usage,
        version=prediction.version or prediction.model,
    )
