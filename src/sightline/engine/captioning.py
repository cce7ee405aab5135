"""Captioning: descriptions of images, by any model that accepts images (CODIS, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from sightline.engine.client import ModelClient, RequestEstimate
from sightline.errors import UserError
from sightline.store.answers import KeyedRequest
from sightline.store.database import run_in_thread
from sightline.store.store import Store
from sightline.text import load
from sightline.types import Answer, Failure, ImageFile, ImageRef, user

SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
"""Sightline's own choice: the paper publishes none."""

EMPTY = "the reply is empty"


class Caption(Struct, frozen=True):
    """The description of an image, in one line; '' if there is none."""

    text: str = ""
    key: str = ""
    cut: bool = False
    missing: str = ""


class Captioner:
    """Describes images with a model."""

    def __init__(self, client: ModelClient, prompt: str | None = None, *, again: bool = False) -> None:
        """`prompt` is the text after each image; None: the prompt in engine/prompts.toml."""
        self.prompt: str = load(__package__)["caption"]["text"] if prompt is None else prompt
        if not self.prompt.strip():
            raise UserError("--prompt is empty", expected="a question about each image")
        if not client.capabilities.images:
            raise UserError("this model does not accept images", expected="a --model that accepts images")
        self._client = client
        self._again = again

    async def describe(
        self, files: Iterable[ImageFile], store: Store, *, show_progress: bool = False
    ) -> dict[str, Caption]:
        """Describe images; cached descriptions are not requested again.

        When cancelled, it keeps everything answered so far.

        Returns:
            Image digest -> description, or the reason why there is none.
        """
        distinct = {file.digest: file for file in files}
        requests = await run_in_thread(self._requests, distinct, store)
        await self._client.ask(store, requests, "captioning", show_progress=show_progress)
        stopped = self._client.counts.stopped
        return await run_in_thread(self.cached, distinct.values(), store, stopped=stopped)

    def cached(self, files: Iterable[ImageFile], store: Store, *, stopped: str = "") -> dict[str, Caption]:
        """Look up descriptions by image digest, or the reason why there is none; nothing is sent."""
        distinct = {file.digest: file for file in files}
        return {digest: _read(latest, stopped) for digest, latest in self._current(distinct, store).items()}

    def estimate(self, files: Iterable[ImageFile], store: Store) -> RequestEstimate:
        """Estimate what `describe` would send, a request per distinct image; nothing is sent or written."""
        distinct = {file.digest: file for file in files}
        requests = self._requests(distinct, store)
        settled = self._client.settled(store, requests)
        sent = [keyed.request for keyed in requests if keyed.request.key not in settled]
        size = sum(file.stamp[0] for request in sent for file in request.images.values())
        return RequestEstimate(len(distinct) - len(sent), len(sent), len(sent), size)

    def _requests(self, distinct: Mapping[str, ImageFile], store: Store) -> list[KeyedRequest]:
        """One request an image; one after an empty response only if cached, or `again` is set."""
        return [
            latest.keyed
            for latest in self._current(distinct, store).values()
            if latest.keyed.request.draw == 0 or latest.result is not None or self._again
        ]

    def _current(self, distinct: Mapping[str, ImageFile], store: Store) -> dict[str, _Current]:
        """The current request of each image: the first whose response is not empty."""
        current: dict[str, _Current] = {}
        pending, draw = dict(distinct), 0
        while pending:
            requests = {digest: self._keyed(file, draw) for digest, file in pending.items()}
            stored = store.answers.look_up([keyed.request.key for keyed in requests.values()])
            for digest, keyed in requests.items():
                current[digest] = _Current(keyed, stored.get(keyed.request.key))
                if not current[digest].is_empty:
                    del pending[digest]
            draw += 1
        return {digest: current[digest] for digest in distinct}

    def _keyed(self, file: ImageFile, draw: int) -> KeyedRequest:
        return self._client.keyed((user(ImageRef(file.path), self.prompt),), draw, [file])


class _Current(NamedTuple):
    """The current request of an image and its result, None if there is none yet."""

    keyed: KeyedRequest
    result: Answer | Failure | None

    @property
    def is_empty(self) -> bool:
        return isinstance(self.result, Answer) and not self.result.text.strip()


def _read(current: _Current, stopped: str) -> Caption:
    """The description in one line, because prompts have one line for it; reasoning is not part of it."""
    key = current.keyed.request.key
    if isinstance(current.result, Answer):
        return Caption(" ".join(current.result.text.split()), key, current.result.truncated)
    if isinstance(current.result, Failure):
        return Caption(key=key, missing=current.result.message)
    if current.keyed.request.draw:
        return Caption(key=key, missing=EMPTY)
    return Caption(key=key, missing="the budget is reached" if stopped == "budget" else "not asked")
