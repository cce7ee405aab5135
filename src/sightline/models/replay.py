"""Replay: answers from a file of predictions, in place of a model."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from sightline.formats.content import read_bytes
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.formats.read import of_model, read_predictions
from sightline.models.base import Capabilities
from sightline.models.offline_model import OfflineModel
from sightline.types import NOT_SENT, Answer, Failure, Origin, Request


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
        """Look up each request by the probe that it was rendered from, as `Model.answer`."""
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
        return predictions.get((origin.sample, origin.variant, origin.draw))

    def _answer(self, origin: Origin) -> Answer | Failure:
        prediction = self.recorded(origin)
        if prediction is None or prediction.error == NOT_SENT:
            return Failure("permanent", f"{self._file} has no answer to {origin.sample} {origin.variant}")
        if prediction.error is not None:
            return Failure("permanent", f"{self._file} records a failure: {prediction.error}")
        return Answer(prediction.response, version=self.name)

    def _read(self, origin: Origin) -> None:
        """Read the predictions for the setting of a probe."""
        predictions = read_predictions(
            self._file, self._answer_files, setting=origin.variant, allow_missing=True
        )
        self._predictions[origin.benchmark, origin.setting] = {
            (prediction.sample, prediction.variant, prediction.draw): prediction
            for prediction in of_model(predictions, "", self._file)
        }
