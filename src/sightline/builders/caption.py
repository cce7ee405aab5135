"""A file of captions: what is written for a captioner's images, and when it must not be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from sightline.benchmarks.captions import read_captions
from sightline.engine.captioning import Caption
from sightline.errors import UserError
from sightline.formats.files import refuse_overwriting, write_atomically


def refuse_other_captions(out: Path, captions: Mapping[str, Caption], *, force: bool = False) -> None:
    """Raise UserError where `out` cannot be written, or holds a caption that is none of these, by name.

    So the same command goes on with its file, and no other captions and nobody's corrections are lost.
    """
    refuse_overwriting(out, force=True)
    if force or not out.exists():
        return
    remedy = "another --out, or --force"
    try:
        there = read_captions(str(out), needed=True)
    except UserError:
        raise UserError("holds something else", file=out, expected=remedy) from None
    for name, text in there.items():
        if name not in captions or captions[name].text != text:
            what = "holds a caption that this command and its store do not give"
            raise UserError(what, file=out, record=name, found=text, expected=remedy)


def write(captions: Mapping[str, Caption], model: str, out: Path) -> None:
    """Write the captions that there are as a JSON list of image_id, caption, model and reply, a line each.

    EnvironmentFailedError where the disk refuses.
    """
    lines = [
        msgspec.json.encode({"image_id": name, "caption": one.text, "model": model, "reply": one.key})
        for name, one in captions.items()
        if one.text
    ]
    write_atomically(out, [b"[\n", b",\n".join(lines), b"\n]\n"])
