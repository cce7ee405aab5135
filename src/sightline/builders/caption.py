"""Writes a file of captions, and refuses to replace captions that the same command would not write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from sightline.benchmarks.captions import read_captions
from sightline.engine.captioning import Caption
from sightline.errors import UserError
from sightline.formats.files import refuse_overwriting, write_atomically


def refuse_other_captions(out: Path, captions: Mapping[str, Caption], *, force: bool = False) -> None:
    """Refuse a file with other captions, so that corrections by hand are not lost."""
    refuse_overwriting(out, force=True)
    if force or not out.exists():
        return
    remedy = "another --out, or --force"
    try:
        existing = read_captions(str(out), needed=True)
    except UserError:
        raise UserError("contains something else", file=out, expected=remedy) from None
    for name, text in existing.items():
        if name not in captions or captions[name].text != text:
            problem = "contains a caption that this command did not write"
            raise UserError(problem, file=out, record=name, found=text, expected=remedy)


def write_captions(captions: Mapping[str, Caption], model: str, out: Path) -> None:
    """Write the captions as a JSON list of image_id, caption, model and reply, one on a line."""
    lines = [
        msgspec.json.encode({"image_id": name, "caption": one.text, "model": model, "reply": one.key})
        for name, one in captions.items()
        if one.text
    ]
    write_atomically(out, [b"[\n", b",\n".join(lines), b"\n]\n"])
