"""Answers from a file in the place of a model: what any tool collected before, for nothing."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from sightline.formats.files import read_bytes
from sightline.formats.prediction import Prediction
from sightline.formats.read import of_model, read_predictions
from sightline.models.base import Capabilities
from sightline.models.offline import Offline
from sightline.registry import benchmark_class
from sightline.types import Answer, Failure, Origin, Request


class Replay(Offline):
    """Replays a file of predictions in any layout that `score` reads, by sample, variant and draw.

    Its identity is the digest of the file. A probe that the file lacks is a failure of that probe.
    """

    host = "replay"
    capabilities = Capabilities(replays=True)

    def __init__(self, file: str) -> None:
        self.name = f"replay/{file}"
        self._file = Path(file)
        self.identity = f"replay {hashlib.sha256(read_bytes(self._file)).hexdigest()}"
        self._read: dict[tuple[str, str], dict[tuple[str, str, int], Prediction]] = {}

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Look each request up by the probe it came from."""
        for index, request in enumerate(requests):
            yield index, self._look_up(request.origin)

    def _look_up(self, origin: Origin | None) -> Answer | Failure:
        if origin is None:
            return Failure("permanent", "a replayed file answers probes of a benchmark, nothing else")
        found = self._predictions(origin).get((origin.sample, origin.variant, origin.draw))
        if found is None:
            return Failure("permanent", f"{self._file} has no answer to {origin.sample} {origin.variant}")
        if found.error is not None:
            return Failure("permanent", f"{self._file} records a failure: {found.error}")
        return Answer(found.response, version=self.name)

    def _predictions(self, origin: Origin) -> dict[tuple[str, str, int], Prediction]:
        asked = (origin.benchmark, origin.setting)
        if asked not in self._read:
            predictions = read_predictions(
                self._file,
                benchmark_class(origin.benchmark).answer_files,
                setting=origin.variant,
                allow_missing=True,
            )
            one = of_model(predictions, "", self._file)
            self._read[asked] = {(p.sample, p.variant, p.draw): p for p in one}
        return self._read[asked]
