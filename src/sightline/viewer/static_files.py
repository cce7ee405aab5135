"""The files of the pages: style and scripts, with the digest of the content in their names.

A name stands for one content, so that browsers keep it for good. The files are read once, and a request can
only name one of them: no path reaches the file system.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.viewer.addresses import NotFoundError

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The media type by the ending of a name; other files, as licences, are not served."""
FOREVER = "public, max-age=31536000, immutable"


class StaticFile(Struct, frozen=True):
    """A file: its content and its media type."""

    content: bytes
    media_type: str


class StaticFiles:
    """All static files, by the names in their URLs."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._names: dict[str, str] = {}
        self._files: dict[str, StaticFile] = {}
        for path in paths:
            if path.suffix not in TYPES:
                continue
            content = path.read_bytes()
            name = f"{path.stem}.{hashlib.sha256(content).hexdigest()[:12]}{path.suffix}"
            self._names[path.name] = name
            self._files[name] = StaticFile(content, TYPES[path.suffix])

    def url(self, name: str) -> str:
        return f"/static/{self._names[name]}"

    async def respond(self, request: Request) -> Response:
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise NotFoundError("There is no such file.")
        return Response(file.content, media_type=file.media_type, headers={"cache-control": FOREVER})

    async def icon(self, request: Request) -> Response:
        """Answer the request that browsers send for pages that name no icon, as refusals."""
        return RedirectResponse(self.url("sightline.svg"))
