"""References in place of images: the uuid of one that a vLLM server has cached, or a file:// URL."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pybase64
from msgspec.structs import replace

from sightline.formats.files import json_digest
from sightline.images import check_unchanged, data_url_length, real_path
from sightline.models.base import ImageTraffic
from sightline.models.chat import DETAIL
from sightline.text import print_note
from sightline.types import Failure, ImageFile, Request

CACHED = 16 * 1024
"""How many images are taken for cached at most."""

MISSES = (400, 422)
"""The HTTP statuses with which vLLM and what stands before it refuse a uuid without an image."""
_MISS = "cache miss"

PROCESSOR_OPTIONS = ("media_io_kwargs", "mm_processor_kwargs")
"""Options of vLLM's requests that change what is made of an image."""


class _Address(NamedTuple):
    """What the bytes are made of, and the options with which the server processes them."""

    digest: str
    transform: str
    options: str


class _Cached(NamedTuple):
    """The uuid of an image, and the length of its data URL."""

    uuid: str
    length: int


class CachedImages:
    """The images that one vLLM server has in its cache. A model's `ImageReferences`.

    vLLM's protocol (https://docs.vllm.ai/en/latest/features/multimodal_inputs/, "Online Serving"; vLLM 0.11):
    a part of a message has the field `uuid` beside `image_url`; where `image_url` is null, the server takes
    the image that it has cached under this uuid. If it has none, it refuses the request: "Cache miss for
    image at index 0 but data is not provided" (vllm/multimodal/processing, `_get_cache_missing_items`).

    The server compares nothing but the uuid, so that one uuid for two contents gives wrong answers. The uuid
    is therefore the SHA-256 of the bytes that were sent, after re-encoding; if the request has options for
    the processor of images, their digest follows.

    An image counts as cached when a request with its bytes has an answer. The server drops the images that
    were not used for longest: after a miss, those that were used before the missed one do not count as cached
    either.

    Until the server has answered a request with a uuid, its errors may mean that it knows no uuids: such
    requests are sent again without. If this helps, no further uuid is sent.
    """

    sends_once = True

    def __init__(self, name: str) -> None:
        self.traffic = ImageTraffic()
        self.works: bool | None = None
        self._name = name
        self._cached: dict[_Address, _Cached] = {}

    def probe(self, model: str) -> dict[str, Any]:
        """A request for an image that no server has."""
        image = {"type": "image_url", "image_url": None, "uuid": secrets.token_hex(32)}
        content = [image, {"type": "text", "text": "What is in the image?"}]
        return {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 1}

    def exchange(self, request: Request) -> _CachedImages:
        options = {name: request.sampling[name] for name in PROCESSOR_OPTIONS if name in request.sampling}
        digest = json_digest(options)[:16]
        # A part without `image_url` has no place for OpenAI's `detail`.
        takes_uuids = DETAIL not in request.sampling and self.works is not False
        return _CachedImages(self, digest if options else "", takes_uuids=takes_uuids)

    def find(self, address: _Address) -> _Cached | None:
        """Look up the uuid and length of an image; None if the server does not have it."""
        return self._cached.get(address)

    def used(self, address: _Address, cached: _Cached) -> None:
        self._cached.pop(address, None)
        self._cached[address] = cached
        if len(self._cached) > CACHED:
            del self._cached[next(iter(self._cached))]

    def stop(self, why: str) -> None:
        if self.works is None:
            self.works = False
            print_note(
                f"{self._name}: the server takes no uuids, so the bytes of all images are sent ({why})"
            )

    def missed(self, addresses: set[_Address]) -> None:
        """Forget images of which the server lacks one or more, and those used before all of them."""
        if addresses.isdisjoint(self._cached):
            return
        for address in list(self._cached):
            del self._cached[address]
            if address in addresses:
                break
        for address in addresses:
            self._cached.pop(address, None)


class _CachedImages:
    def __init__(self, images: CachedImages, options: str, *, takes_uuids: bool) -> None:
        self._images = images
        self._options = options
        self._takes_uuids = self._may_refer = takes_uuids
        self._sent: dict[_Address, _Cached] = {}
        self._referenced: dict[_Address, _Cached] = {}
        self._saved = 0
        self._refusal = ""

    def reference(self, file: ImageFile) -> dict[str, Any] | None:
        address = _Address(file.digest, file.transform, self._options)
        cached = self._images.find(address) if self._may_refer else None
        if cached is None:
            return None
        self._referenced[address] = cached
        self._saved += cached.length
        return {"type": "image_url", "image_url": None, "uuid": cached.uuid}

    def sends(self, file: ImageFile, url: bytes) -> dict[str, Any]:
        traffic = self._images.traffic
        self._images.traffic = replace(traffic, sent=traffic.sent + len(url) - 2)
        if not self._takes_uuids:
            return {}
        digest = hashlib.sha256(_bytes_of(url)).hexdigest() if file.transform else file.digest
        uuid = f"{digest}-{self._options}" if self._options else digest
        self._sent[_Address(file.digest, file.transform, self._options)] = _Cached(uuid, len(url) - 2)
        return {"uuid": uuid}

    def is_refused(self, failure: Failure) -> bool:
        is_miss = failure.status in MISSES or (failure.status and _MISS in failure.message.lower())
        is_first = bool(self._sent) and self._images.works is None
        if not (self._referenced or is_first) or not is_miss or failure.kind == "blocked":
            return False
        if self._referenced:
            self._images.missed(set(self._referenced))
        else:
            self._refusal, self._takes_uuids = failure.message, False
        self._images.traffic = replace(self._images.traffic, resent=self._images.traffic.resent + 1)
        self._may_refer, self._referenced, self._sent, self._saved = False, {}, {}, 0
        return True

    def accepted(self) -> None:
        if self._refusal:
            self._images.stop(self._refusal)
        elif self._sent or self._referenced:
            self._images.works = True
        for address, cached in (*self._referenced.items(), *self._sent.items()):
            self._images.used(address, cached)
        traffic = self._images.traffic
        self._images.traffic = replace(traffic, not_sent=traffic.not_sent + self._saved)


def _bytes_of(url: bytes) -> bytes:
    """The bytes in a data URL that is a JSON string."""
    return pybase64.b64decode(url[url.index(b",") + 1 : -1])


# -- file:// URLs of images, for a server that runs on this machine

REFUSALS = (400, 415, 422, 500, 501)
"""The HTTP statuses with which servers refuse URLs that they cannot read; vLLM without the flag has 500."""


class FileUrls:
    """The images of one folder, which a server reads itself. A model's `ImageReferences`.

    vLLM reads the files below the folder of `--allowed-local-media-path`, links resolved
    (https://docs.vllm.ai/en/latest/features/multimodal_inputs/, vllm/multimodal/media/connector.py). SGLang
    reads every path (python/sglang/srt/utils/common.py, `load_image`). Re-encoded images and those outside of
    the folder are sent as data URLs.

    Until the server has answered a request with a file URL, its errors may mean that it reads no files: such
    requests are sent again with the bytes. If this helps, no further file URL is sent.
    """

    sends_once = False

    def __init__(self, folder: Path, name: str) -> None:
        self.traffic = ImageTraffic()
        self.works: bool | None = None
        self._root = os.path.join(os.path.realpath(folder), "")
        self._name = name

    def probe(self, model: str) -> dict[str, Any] | None:
        """None: no server ignores a URL."""
        return None

    def exchange(self, request: Request) -> _FileUrls:
        return _FileUrls(self)

    def url(self, file: ImageFile) -> str | None:
        """The URL of an image; None if its bytes must be sent."""
        if file.transform or self.works is False:
            return None
        path = real_path(file.path)
        if not path.startswith(self._root):
            return None
        check_unchanged(file)
        return f"file://{quote(path)}"

    def stop(self, why: str) -> None:
        if self.works is None:
            self.works = False
            print_note(f"{self._name}: the server reads no files, so images are sent as data ({why})")


def readable_folder(images: Path | None) -> Path | None:
    """Find the folder of which a server may read files.

    `images`: the data folder; None if there is none. Returns the folder, links resolved; None where it would
    be the whole file system.
    """
    folder = images.resolve() if images is not None else None
    return None if folder is None or folder == Path(folder.anchor) else folder


class _FileUrls:
    def __init__(self, urls: FileUrls) -> None:
        self._urls = urls
        self._referenced: list[ImageFile] = []
        self._refusal = ""

    def reference(self, file: ImageFile) -> dict[str, Any] | None:
        url = None if self._refusal else self._urls.url(file)
        if url is None:
            return None
        self._referenced.append(file)
        return {"type": "image_url", "image_url": {"url": url}}

    def sends(self, file: ImageFile, url: bytes) -> dict[str, Any]:
        traffic = self._urls.traffic
        self._urls.traffic = replace(traffic, sent=traffic.sent + len(url) - 2)
        return {}

    def is_refused(self, failure: Failure) -> bool:
        if (
            not self._referenced
            or self._urls.works
            or failure.status not in REFUSALS
            or failure.kind == "blocked"
        ):
            return False
        self._refusal = failure.message
        self._referenced = []
        self._urls.traffic = replace(self._urls.traffic, resent=self._urls.traffic.resent + 1)
        return True

    def accepted(self) -> None:
        if self._refusal:
            self._urls.stop(self._refusal)
        if self._referenced:
            self._urls.works = True
        for file in self._referenced:
            check_unchanged(file)
        saved = sum(map(data_url_length, self._referenced))
        self._urls.traffic = replace(self._urls.traffic, not_sent=self._urls.traffic.not_sent + saved)
