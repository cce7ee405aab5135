"""ConTextual's data folder: its tables, their columns, and the path of a URL's image."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from sightline.formats.digests import text_digest

NAME = "contextual"
"""The benchmark's name, and that of its folder of data."""

IMAGE, INSTRUCTION, ANSWER, CATEGORY = COLUMNS = ("image_url", "instruction", "response", "category")
"""The columns of the tables in the released order; the table of test has no answers."""

SYNTHETIC = "synthetic"
"""The split that `sightline build synthesize` writes; it is not part of the release."""

LONGEST_NAME = 200
"""The most characters of a file's or a folder's name; file systems allow 255 bytes."""

LONGEST_PATH = 1000

_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9._~%+=,@()-]|^\.+|\.$")
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)")


def table_name(split: str) -> str:
    return f"contextual_{split}.csv"


def image_path(url: str) -> str:
    """Compute the path of a URL's image in the data folder: `images` and the URL's own path.

    Escapes (%2B) are kept, so that different URLs have different paths. Characters that could leave the
    folder, hide a file, or are not allowed on some file system are escaped too. A query is part of the name,
    a fragment is not. A text that is not a URL is a path in the folder already, as in synthetic data.

    >>> image_path("https://images.s3.amazonaws.com/time-images/clock%2B1.JPG")
    'images/time-images/clock%2B1.JPG'
    >>> image_path("https://h/a/../..//x.jpg?w=1"), image_path("images/val-001.png")
    ('images/a/%2E%2E/%2E%2E/%/x.jpg%3Fw=1', 'images/val-001.png')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"images/{_name(url)}"
    if not parts.scheme and not parts.netloc:
        return _within(url.partition("#")[0])
    query = f"?{parts.query}" if parts.query else ""
    path = "/".join(["images", *map(_name, (parts.path.removeprefix("/") + query).split("/"))])
    return path if len(path) <= LONGEST_PATH else f"images/{_digest(path)}"


def _within(path: str) -> str:
    """A path in the folder; steps out of the folder become names."""
    steps = [step for step in path.replace("\0", "%00").split("/") if step]
    return "/".join(_name(step) if step in (".", "..") else step for step in steps) or "%"


def _name(text: str) -> str:
    """A part of a URL's path as a name; '%' stands for an empty part only."""
    name = _ESCAPED.sub(_escape, text) or "%"
    name = _RESERVED.sub(lambda found: f"%{ord(found[0][0]):02X}{found[0][1:]}", name, count=1)
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME // 2]}~{_digest(name)}"


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _digest(text: str) -> str:
    return text_digest(text)[:32]
