"""Captioning: images into words, by any model that takes images (CODIS, section 5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from sightline.engine.client import ModelClient
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.errors import UserError
from sightline.prompts import load
from sightline.types import Answer, Failure, ImageFile, ImageRef, user

SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
"""Unpublished in the paper."""

EMPTY = "the reply is empty"


class Caption(Struct, frozen=True):
    """What an image shows, in one line; where there is no `text`, `missing` says why.

    `cut` is whether the model was stopped by its token limit, `key` the reply's address in the store.
    """

    text: str = ""
    key: str = ""
    cut: bool = False
    missing: str = ""


class CaptioningEstimate(Struct, frozen=True):
    """What captioning would ask: distinct images, requests to be sent, bytes of the images in them.

    `known` are the images about which nothing is to be asked, those with an empty reply among them.
    """

    images: int
    known: int
    to_ask: int
    image_bytes: int


class Captioner:
    """A model that takes images, and the words in which it is asked for a caption."""

    def __init__(self, client: ModelClient, prompt: str | None = None, *, again: bool = False) -> None:
        """`prompt` is asked behind each image (None: the words of engine/prompts.toml); `again` says
        that an image whose replies were all empty is given one chance more.

        Raises UserError where the model takes no images, or the prompt says nothing.
        """
        self.prompt: str = load(__package__)["caption"]["text"] if prompt is None else prompt
        if not self.prompt.strip():
            raise UserError("--prompt is empty", expected="what to ask about each image")
        if not client.capabilities.images:
            raise UserError("this model takes no images", expected="a --model that does")
        self._client = client
        self._again = again

    async def describe(
        self, files: Iterable[ImageFile], store: Store, *, show_progress: bool = False
    ) -> dict[str, Caption]:
        """A caption of each image, or why it has none, by the image's digest; what is known is not asked.

        Raises UserError where the model cannot be used at all, EnvironmentFailedError where the store fails.
        Cancelled, it keeps everything answered so far.
        """
        distinct = {file.digest: file for file in files}
        requests = await run_in_thread(self._wanted, distinct, store)
        await self._client.ask(store, requests, "captioning", show_progress=show_progress)
        stopped = self._client.counts.stopped
        return await run_in_thread(self.known, distinct.values(), store, stopped=stopped)

    def known(self, files: Iterable[ImageFile], store: Store, *, stopped: str = "") -> dict[str, Caption]:
        """What the store holds of each image, by its digest; `stopped` is why asking ended early."""
        distinct = {file.digest: file for file in files}
        return {digest: _read(one, stopped) for digest, one in self._standing(distinct, store).items()}

    def estimate(self, files: Iterable[ImageFile], store: Store) -> CaptioningEstimate:
        """What `describe` would ask, by what the store holds; nothing is asked or written."""
        distinct = {file.digest: file for file in files}
        wanted = self._wanted(distinct, store)
        settled = self._client.settled(store, wanted)
        sent = [keyed.request for keyed in wanted if keyed.request.key not in settled]
        size = sum(file.stamp[0] for request in sent for file in request.images.values())
        return CaptioningEstimate(len(distinct), len(distinct) - len(sent), len(sent), size)

    def _wanted(self, distinct: Mapping[str, ImageFile], store: Store) -> list[KeyedRequest]:
        """The request that counts of each image; the one behind an empty reply only where it is known, or
        is to be asked."""
        return [
            one.keyed
            for one in self._standing(distinct, store).values()
            if one.keyed.request.draw == 0 or one.result is not None or self._again
        ]

    def _standing(self, distinct: Mapping[str, ImageFile], store: Store) -> dict[str, _Standing]:
        """Of each image the request that counts: the first that has no empty reply."""
        found: dict[str, _Standing] = {}
        pending, draw = dict(distinct), 0
        while pending:
            requests = {digest: self._keyed(file, draw) for digest, file in pending.items()}
            known = store.look_up([keyed.request.key for keyed in requests.values()])
            for digest, keyed in requests.items():
                found[digest] = _Standing(keyed, known.get(keyed.request.key))
                if not found[digest].empty:
                    del pending[digest]
            draw += 1
        return {digest: found[digest] for digest in distinct}

    def _keyed(self, file: ImageFile, draw: int) -> KeyedRequest:
        return self._client.keyed((user(ImageRef(file.path), self.prompt),), draw, [file])


class _Standing(NamedTuple):
    """A request about an image, and what came of it (None: nothing yet)."""

    keyed: KeyedRequest
    result: Answer | Failure | None

    @property
    def empty(self) -> bool:
        return isinstance(self.result, Answer) and not self.result.text.strip()


def _read(one: _Standing, stopped: str) -> Caption:
    """The caption in one line, since prompts give it a line; reasoning is no part of it."""
    key = one.keyed.request.key
    if isinstance(one.result, Answer):
        return Caption(" ".join(one.result.text.split()), key, one.result.truncated)
    if isinstance(one.result, Failure):
        return Caption(key=key, missing=one.result.message)
    if one.keyed.request.draw:
        return Caption(key=key, missing=EMPTY)
    return Caption(key=key, missing="the budget is spent" if stopped == "budget" else "not asked")
