"""A table of image URLs that a user made: which image is stored under which path."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from sightline.data.image_download import ImageDownload, download_images
from sightline.decoding import json_records
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.tables import read_table, table_rows

IMAGES = "images"
"""The subfolder of the images, as in the released data sets."""


class PulledTable(Struct, frozen=True):
    """The images of a table on disk, in `folder`."""

    folder: str
    table: str
    images: ImageDownload


def pull_table(
    table: Path, to: Path, copy_from: Path | None, *, allow_private: bool, show_progress: bool
) -> PulledTable:
    """Download the images of a table; a failed URL does not stop the others."""
    requested, folder = read_url_table(table), to / table.stem
    images = download_images(
        requested,
        folder,
        copy_from=copy_from,
        allow_private=allow_private,
        show_progress=show_progress,
    )
    return PulledTable(str(folder), str(table), images)


def read_url_table(table: Path) -> dict[str, str]:
    """Read the URLs of a table: CSV, TSV, xlsx, JSON Lines or a JSON list.

    The column `url` is required. The column `image` is the path below `images/`; by default it is made of the
    host and the path of the URL. Other columns may exist.
    """
    content = read_bytes(table)
    is_json = content.lstrip()[:1] in (b"{", b"[")
    rows = json_records(content, table) if is_json else table_rows(read_table(content, table), table)
    paths: dict[str, str] = {}
    for where, row in rows:
        url, image = row.get("url"), row.get("image") or ""
        if not isinstance(url, str) or not url.strip() or not isinstance(image, str):
            raise UserError(
                "has no URL of an image",
                file=table,
                record=where,
                found=", ".join(row) if "url" not in row else repr(url),
                expected="a column url, and optionally a column image (the path below images/)",
            )
        url = url.strip()
        path = str(PurePosixPath(IMAGES, image.strip() or _path_of(url)))
        if paths.setdefault(url, path) != path:
            raise UserError(
                "the URL occurs twice, with two paths",
                file=table,
                record=where,
                field="image",
                found=path,
                expected=paths[url],
            )
    return paths


def _path_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or ''}/{unquote(parts.path).lstrip('/')}"
    except ValueError:
        return url  # The download says what is wrong with it.
