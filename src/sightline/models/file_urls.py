"""file:// URLs of images, for a server that runs on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from sightline.images import check_unchanged, data_url_length, real_path
from sightline.models.image_references import ImageTraffic
from sightline.output import print_note
from sightline.types import Failure, ImageFile, Request

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

    def exchange(self, request: Request) -> _Exchange:
        """Begin to send a request."""
        return _Exchange(self)

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
        """Send bytes from now on."""
        if self.works is None:
            self.works = False
            print_note(f"{self._name}: the server reads no files, so images are sent as data ({why})")


def readable_folder(images: Path | None) -> Path | None:
    """Find the folder of which a server may read files.

    Args:
        images: The data folder; None if there is none.

    Returns:
        The folder, links resolved; None where it would be the whole file system.
    """
    folder = images.resolve() if images is not None else None
    return None if folder is None or folder == Path(folder.anchor) else folder


class _Exchange:
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
