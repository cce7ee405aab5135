"""Synthetic instructions (ConTextual, Appendix H): a model writes an instruction and its response per image.

The prompt shows the two examples of Figure 22, with good and bad instructions and the reasons, and then the
image. Humans accept or reject the result with `annotate new verify`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.benchmarks.contextual.data import MISCELLANEOUS
from sightline.benchmarks.contextual.folder import COLUMNS, NAME, SYNTHETIC, image_path, table_name
from sightline.builders.built_folder import Contents, built_image_path, everything_dropped, write_folder
from sightline.builders.checked_images import CheckedImages
from sightline.builders.instruction_replies import InstructionPair, read_instruction
from sightline.builders.manifest import BuildIdentity, BuildManifest, build_identity
from sightline.builders.reply_retries import (
    MAX_ATTEMPTS,
    ReplyRequests,
    ReplyResult,
    collect_replies,
    dropped_reasons,
    unanswered_reasons,
)
from sightline.builders.source_ids import ids_of
from sightline.engine.client import ModelClient
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.formats.groups import GroupLine
from sightline.formats.tables import csv_bytes
from sightline.images import BadImage, inspect_image
from sightline.prompts import load
from sightline.scoring.text import words
from sightline.types import Answer, ImageFile, ImageRef, Message, Part, Text, user

KIND = "synthesize"
TABLE = table_name(SYNTHETIC)
CATEGORY = MISCELLANEOUS
"""The category for which the paper writes instructions (Table 7)."""
SAMPLING: Mapping[str, Any] = {"temperature": 1, "max_tokens": 1024}
"""Unpublished in the paper. A second attempt needs a temperature: at 0 the reply would be the same."""


class SynthesisJob(Struct, frozen=True):
    """What to write about, checked before anything is asked."""

    images: Mapping[str, ImageFile]
    examples: tuple[ImageFile, ...]
    category: str
    settings: Mapping[str, Any]
    dropped: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> BuildIdentity:
        """The identity of the build. Replies are not part of it: later ones complete the same folder."""
        digests = {name: file.digest for name, file in self.images.items()}
        return build_identity(KIND, self.settings, self.dropped, digests)


class SynthesisManifest(BuildManifest, frozen=True):
    """The manifest of synthetic instructions.

    `replies` holds the store's key of each reply, `unanswered` the images whose request failed and the
    reason.
    """

    replies: Mapping[str, str] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)


def example_images(folder: Path | None) -> tuple[ImageFile, ...]:
    """Find the images of Figure 22's two examples; they are not part of this package."""
    paths = [image_path(url) for url in _prompt()["images"]]
    expected = f"--examples DIR with {' and '.join(paths)}, or `sightline data pull contextual`"
    if folder is None:
        raise UserError("there is no folder for the two examples of the prompt", expected=expected)
    root = folder / NAME if (folder / NAME / paths[0]).is_file() else folder
    try:
        return tuple(inspect_image(ImageRef(str(root / path), str(root)), {}) for path in paths)
    except BadImage as error:
        raise UserError(f"an example of the prompt cannot be read: {error}", expected=expected) from None


def prepare_synthesis(
    gallery: CheckedImages, examples: tuple[ImageFile, ...], client: ModelClient, *, category: str = CATEGORY
) -> SynthesisJob:
    """Leave out broken images, copies of another candidate, and the examples themselves."""
    if not category.strip():
        raise UserError("--category is empty", expected="a category for every image")
    if not (client.capabilities.images and client.capabilities.several_images):
        raise UserError(
            "this model does not accept three images", expected="a --model that accepts three images"
        )
    names = [*gallery.files, *gallery.broken]
    ids = dict(zip(names, ids_of(names), strict=True))
    duplicate_of = {file.digest: "it is an example of the prompt" for file in examples}
    images, dropped = {}, {ids[name]: why for name, why in gallery.broken.items()}
    for name, file in gallery.files.items():
        if file.digest in duplicate_of:
            dropped[ids[name]] = duplicate_of[file.digest]
        else:
            images[ids[name]] = file
            duplicate_of[file.digest] = f"the same file as {ids[name]}"
    if not images:
        raise everything_dropped(dropped, "images")
    settings = {
        **client.description,
        "prompt": _prompt()["text"],
        "examples": [file.digest for file in examples],
        "asks": MAX_ATTEMPTS,
        "category": category,
    }
    plain = msgspec.json.decode(msgspec.json.encode(settings))
    return SynthesisJob(images, examples, category, plain, dropped)


def instruction_request(images: Sequence[ImageFile]) -> tuple[Message, ...]:
    """The request for an image: Figure 22 with three images."""
    first, *others = _prompt()["text"].split("{picture}")
    parts: list[Part] = [Text(first)]
    for file, text in zip(images, others, strict=True):
        parts += [ImageRef(file.path), Text(text)]
    return (user(*parts),)


def instruction_requests(job: SynthesisJob, client: ModelClient) -> ReplyRequests[InstructionPair]:
    """The requests of a job, and how their replies are read."""

    def ask(name: str, draw: int) -> KeyedRequest:
        images = [*job.examples, job.images[name]]
        return client.keyed(instruction_request(images), draw, images)

    def read_answer(name: str, answer: Answer) -> tuple[InstructionPair | None, str]:
        return read_instruction(answer.text, cut=answer.truncated)

    return ReplyRequests(list(job.images), ask, read_answer)


async def synthesize(
    job: SynthesisJob, client: ModelClient, store: Store, *, show_progress: bool = False
) -> dict[str, ReplyResult[InstructionPair]]:
    """Ask for the instructions that the store does not hold; drop an instruction that occurred before."""
    results = await collect_replies(
        instruction_requests(job, client), client, store, "writing instructions", show_progress=show_progress
    )
    first: dict[tuple[str, ...], str] = {}
    for name in job.images:
        pair = results[name].value
        if pair is not None and first.setdefault(words(pair.instruction), name) != name:
            other = first[words(pair.instruction)]
            why = f"the instruction was written for another image too ({other})"
            results[name] = msgspec.structs.replace(results[name], value=None, dropped=why)
    return results


def write_instructions(
    job: SynthesisJob, results: Mapping[str, ReplyResult[InstructionPair]], out: Path, *, force: bool = False
) -> SynthesisManifest:
    """Write images/, TABLE and, last, manifest.json: the same bytes for the same replies."""
    pairs = {name: one.value for name, one in results.items() if one.value is not None}
    dropped = {**job.dropped, **dropped_reasons(results)}
    if not pairs:
        raise everything_dropped(dropped, "images")
    paths = {name: built_image_path(name, job.images[name].format) for name in pairs}
    rows = [(paths[name], pair.instruction, pair.response, job.category) for name, pair in pairs.items()]
    contents = Contents(
        groups=len(pairs),
        probes=len(pairs),
        files={TABLE: csv_bytes([COLUMNS, *rows])},
        sources={name: job.images[name].digest for name in pairs},
        dropped=dropped,
    )
    manifest = partial(
        SynthesisManifest,
        replies={name: results[name].key for name in pairs},
        unanswered=unanswered_reasons(results),
    )
    images = {paths[name]: job.images[name] for name in pairs}
    return write_folder(out, job.identity, contents, images, manifest=manifest, force=force)


def preview_lines(job: SynthesisJob, results: Mapping[str, ReplyResult[InstructionPair]]) -> list[GroupLine]:
    """The instructions with their images, for a preview sheet."""
    return [
        GroupLine(name, "synthetic", (job.images[name].path,), pair.instruction, references=(pair.response,))
        for name, result in results.items()
        if (pair := result.value) is not None
    ]


def _prompt() -> Mapping[str, Any]:
    prompt: Mapping[str, Any] = load(__package__)["synthesis"]
    return prompt
