"""Synthetic instructions (ConTextual, Appendix H): for each image a model writes one, and its response.

It is shown the two examples of Figure 22, good and bad instructions with the reasons, and then the image.
What it writes is for people to accept (`build.verify`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

import sightline
from sightline.benchmarks.contextual.data import MISCELLANEOUS
from sightline.benchmarks.contextual.folder import COLUMNS, NAME, SYNTHETIC, image_path, table_name
from sightline.builders.built_folder import (
    IMAGES,
    BuildIdentity,
    begin,
    copy_images,
    finish,
    held,
    nothing_left,
)
from sightline.builders.image_index import CheckedImages
from sightline.builders.image_io import ENDINGS
from sightline.builders.instruction_replies import InstructionPair, read
from sightline.builders.manifest import BuildManifest, fingerprint
from sightline.builders.reply_retries import (
    ASKS,
    ReplyRequests,
    ReplyResult,
    RequestCounts,
    collect_replies,
    count_requests,
)
from sightline.builders.source_ids import ids_of
from sightline.engine.client import ModelClient
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.digests import file_digest
from sightline.formats.files import write_atomically
from sightline.formats.groups import GroupLine
from sightline.formats.tables import csv_bytes
from sightline.images import BadImage, inspect_image
from sightline.prompts import load
from sightline.scoring.text import words
from sightline.types import Answer, ImageFile, ImageRef, Message, Part, Text, user

KIND = "synthesize"
TABLE = table_name(SYNTHETIC)
CATEGORY = MISCELLANEOUS
"""What the paper writes instructions for (Table 7)."""
SAMPLING: Mapping[str, Any] = {"temperature": 1, "max_tokens": 1024}
"""Unpublished in the paper. A second chance needs a temperature: at 0 it would be the same reply again."""


class SynthesisJob(Struct, frozen=True):
    """What is to be written about, looked at before anything is asked.

    `images` are the candidates by id, `examples` the two that are shown before each, `dropped` the
    candidates left out, by id too, with why.
    """

    images: Mapping[str, ImageFile]
    examples: tuple[ImageFile, ...]
    category: str
    settings: Mapping[str, Any]
    dropped: Mapping[str, str] = field(default_factory=dict)

    @property
    def build(self) -> BuildIdentity:
        """What a folder must have been built from to be built on; replies that come later join it."""
        header = {"kind": KIND, "settings": self.settings, "versions": {"sightline": sightline.__version__}}
        digests = {name: file.digest for name, file in self.images.items()}
        return BuildIdentity(header, fingerprint([header, self.dropped, digests]))


class SynthesisManifest(BuildManifest, frozen=True):
    """The manifest of synthetic instructions, with the address of each one's reply in the store, and the
    images whose call failed: the same command asks about them again."""

    replies: Mapping[str, str] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)


def examples_in(folder: Path | None) -> tuple[ImageFile, ...]:
    """The images of Figure 22's two examples, out of ConTextual's data folder or one that holds it.

    UserError where they are not there: they are no part of this package.
    """
    paths = [image_path(url) for url in _prompt()["images"]]
    expected = f"--examples DIR with {' and '.join(paths)}, or `sightline data pull contextual`"
    if folder is None:
        raise UserError("there is no folder for the two examples of the prompt", expected=expected)
    place = folder / NAME if (folder / NAME / paths[0]).is_file() else folder
    try:
        return tuple(inspect_image(ImageRef(str(place / path), str(place)), {}) for path in paths)
    except BadImage as error:
        raise UserError(f"an example of the prompt cannot be shown: {error}", expected=expected) from None


def prepare(
    gallery: CheckedImages, examples: tuple[ImageFile, ...], client: ModelClient, *, category: str = CATEGORY
) -> SynthesisJob:
    """Leave out what cannot be shown, what lies there twice, and the examples themselves.

    Raises UserError where nothing is left, the category says nothing, or the model cannot be shown three
    images.
    """
    if not category.strip():
        raise UserError("--category is empty", expected="a category for every image")
    if not (client.capabilities.images and client.capabilities.several_images):
        raise UserError("this model cannot be shown three images", expected="a --model that can")
    names = [*gallery.files, *gallery.broken]
    ids = dict(zip(names, ids_of(names), strict=True))
    seen = {file.digest: "it is an example of the prompt" for file in examples}
    images, dropped = {}, {ids[name]: why for name, why in gallery.broken.items()}
    for name, file in gallery.files.items():
        if file.digest in seen:
            dropped[ids[name]] = seen[file.digest]
        else:
            images[ids[name]] = file
            seen[file.digest] = f"the same file as {ids[name]}"
    if not images:
        raise nothing_left(dropped, "images")
    settings = {
        **client.description,
        "prompt": _prompt()["text"],
        "examples": [file.digest for file in examples],
        "asks": ASKS,
        "category": category,
    }
    plain = msgspec.json.decode(msgspec.json.encode(settings))
    return SynthesisJob(images, examples, category, plain, dropped)


def request(images: Sequence[ImageFile]) -> tuple[Message, ...]:
    """What a model is asked: Figure 22 with its two images and a third in their places."""
    first, *others = _prompt()["text"].split("{picture}")
    parts: list[Part] = [Text(first)]
    for file, text in zip(images, others, strict=True):
        parts += [ImageRef(file.path), Text(text)]
    return (user(*parts),)


async def synthesize(
    job: SynthesisJob, client: ModelClient, store: Store, *, show_progress: bool = False
) -> dict[str, ReplyResult[InstructionPair]]:
    """Ask about every image what the store does not hold, up to ASKS times; what became of each, by id.

    An instruction that was written for an earlier image too is dropped. Raises UserError where the model
    cannot be used at all, EnvironmentFailedError where the store fails. Cancelled, it keeps everything answered.
    """
    found = await collect_replies(
        _wanted(job, client), client, store, "writing instructions", show_progress=show_progress
    )
    first: dict[tuple[str, ...], str] = {}
    for name in job.images:
        pair = found[name].found
        if pair is not None and first.setdefault(words(pair.instruction), name) != name:
            other = first[words(pair.instruction)]
            why = f"the instruction was written for another image too ({other})"
            found[name] = msgspec.structs.replace(found[name], found=None, dropped=why)
    return found


def estimate(job: SynthesisJob, client: ModelClient, store: Store) -> RequestCounts:
    """What `synthesize` would ask, by what the store holds; nothing is asked or written."""
    return count_requests(_wanted(job, client), client, store)


def write(
    job: SynthesisJob, found: Mapping[str, ReplyResult[InstructionPair]], out: Path, *, force: bool = False
) -> SynthesisManifest:
    """Write images/, TABLE and, last, manifest.json: the same bytes for the same replies.

    Raises UserError, with nothing written, where there is no pair, and where the folder holds something else
    by now unless `force` replaces it; EnvironmentFailedError where the disk refuses.
    """
    pairs = {name: one.found for name, one in found.items() if one.found is not None}
    dropped = {**job.dropped, **{name: one.dropped for name, one in found.items() if one.dropped}}
    if not pairs:
        raise nothing_left(dropped, "images")
    places = {name: _place(name, job.images[name]) for name in pairs}
    rows = [(places[name], pair.instruction, pair.response, job.category) for name, pair in pairs.items()]
    with held(out, job.build, force=force) as journal:
        begin(out, job.build, journal)
        made = copy_images({places[name]: job.images[name] for name in pairs}, out)
        write_atomically(out / TABLE, [csv_bytes([COLUMNS, *rows])])
        manifest = SynthesisManifest(
            **job.build.header,
            groups=len(pairs),
            probes=len(pairs),
            images=len(made),
            fingerprint=job.build.fingerprint,
            dropped=dropped,
            sources={name: job.images[name].digest for name in pairs},
            made={TABLE: file_digest(out / TABLE), **made},
            replies={name: found[name].key for name in pairs},
            unanswered={name: one.unanswered for name, one in found.items() if one.unanswered},
        )
        finish(out, manifest, journal)
    return manifest


def lines_of(job: SynthesisJob, found: Mapping[str, ReplyResult[InstructionPair]]) -> list[GroupLine]:
    """The pairs with their images as lines for a sheet."""
    return [
        GroupLine(name, "synthetic", (job.images[name].path,), pair.instruction, references=(pair.response,))
        for name, one in found.items()
        if (pair := one.found) is not None
    ]


def _prompt() -> Mapping[str, Any]:
    prompt: Mapping[str, Any] = load(__package__)["synthesis"]
    return prompt


def _wanted(job: SynthesisJob, client: ModelClient) -> ReplyRequests[InstructionPair]:
    def ask(name: str, draw: int) -> KeyedRequest:
        images = [*job.examples, job.images[name]]
        return client.keyed(request(images), draw, images)

    def reading(name: str, answer: Answer) -> tuple[InstructionPair | None, str]:
        return read(answer.text, cut=answer.truncated)

    return ReplyRequests(list(job.images), ask, reading)


def _place(name: str, file: ImageFile) -> str:
    return f"{IMAGES}/{name}{ENDINGS[file.format][0]}"
