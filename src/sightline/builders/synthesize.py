"""Synthetic instructions (ConTextual, Appendix H): a model writes an instruction and its response per image.

The prompt shows the two examples of Figure 22, with good and bad instructions and the reasons, and then the
image. Humans accept or reject the result with `annotate new verify`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.benchmarks.contextual.data import (
    COLUMNS,
    MISCELLANEOUS,
    NAME,
    SYNTHETIC,
    image_path,
    table_name,
)
from sightline.builders.folder import (
    BuildIdentity,
    BuildManifest,
    Contents,
    build_identity,
    built_image_path,
    everything_dropped,
    write_folder,
)
from sightline.builders.replies import (
    MAX_ATTEMPTS,
    ReplyRequests,
    ReplyResult,
    collect_replies,
    dropped_reasons,
    given_away,
    unanswered_reasons,
)
from sightline.builders.sources import CheckedImages, ids_of
from sightline.engine.client import ModelClient
from sightline.errors import UserError
from sightline.formats.tables import csv_bytes
from sightline.images import BadImage, inspect_image
from sightline.scoring.non_answers import is_refusal
from sightline.scoring.text import words
from sightline.store.answers import KeyedRequest
from sightline.store.store import Store
from sightline.text import load
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


def _prompt() -> Mapping[str, Any]:
    prompt: Mapping[str, Any] = load(__package__)["synthesis"]
    return prompt


# -- Reads an instruction and its response from a model's reply, or finds out what is wrong with it

NO_PAIR = "no instruction with a response"
CUT = "the response is truncated"
CONDITION = "the instruction has a condition"
COPIED = "the instruction is one of the examples"
GIVEN_AWAY = "the instruction contains the response"
DECLINED = "the response declines to answer"
"""Reasons for which a reply is unusable, as they are counted."""


class InstructionPair(Struct, frozen=True):
    """An instruction about an image and its response, each in one line."""

    instruction: str
    response: str


class _Piece(Struct, frozen=True):
    """The text between a label and the next one."""

    label: str
    text: str
    last: bool


def read_instruction(reply: str, *, cut: bool = False) -> tuple[InstructionPair | None, str]:
    """Read the last pair of instruction and response in a reply; None with the reason if it is unusable.

    >>> read_instruction("Good Instruction: Name the red shop.\\nResponse: Variety Store")
    (InstructionPair(instruction='Name the red shop.', response='Variety Store'), '')
    >>> read_instruction("Instruction: Count the boats if it rains.  Response: 3")
    (None, 'the instruction has a condition')
    """
    pieces = _pieces(reply)
    pairs = [
        (InstructionPair(instruction.text, response.text), response.last)
        for instruction, response in pairwise(pieces)
        if instruction.label == "instruction"
        and response.label == "response"
        and words(instruction.text)
        and response.text
    ]
    if not pairs:
        return None, DECLINED if is_refusal(reply) else NO_PAIR
    pair, last = pairs[-1]
    objection = CUT if cut and last else _objection(pair)
    return (None, objection) if objection else (pair, "")


def _objection(pair: InstructionPair) -> str:
    if _CONDITION.search(pair.instruction):
        return CONDITION
    if words(pair.instruction) in {words(example) for example in _examples()}:
        return COPIED
    if is_refusal(pair.response):
        return DECLINED
    if given_away(pair.instruction, "", [pair.response]):
        return GIVEN_AWAY
    return ""


_CONDITION = re.compile(r"\b(?:if|unless|in case|provided that)\b", re.IGNORECASE)

# A label begins a line, or follows the end of a sentence: 'Name the shop. Response: ...'.
_LABEL = re.compile(
    r"(?:^[\s>#*_`-]*(?:\d+[.)]\s*)?|(?<=[.?!\"”’'*])[ \t]+[*_]*)"
    r"(?P<label>(?:good|bad)?[ ]?instruction|(?:good[ ])?(?:instruction[ ])?response|reason(?:ing)?"
    r"|(?:uploaded[ ])?image)"
    r"(?:[ ]\d+)?[*_]*[ ]*:[*_]*",
    re.IGNORECASE | re.MULTILINE,
)


def _pieces(reply: str) -> list[_Piece]:
    """Split a reply at its labels.

    A single line before a first label `Response` is the instruction: the prompt ends with 'Good
    Instruction:', and a model may continue from there.
    """
    found = list(_LABEL.finditer(reply))
    if not found:
        return []
    ends = [*(label.start() for label in found[1:]), len(reply)]
    pieces = [
        _Piece(_kind(label["label"]), _line(reply[label.end() : end]), label is found[-1])
        for label, end in zip(found, ends, strict=True)
    ]
    before = reply[: found[0].start()].strip()
    if pieces[0].label == "response" and before and "\n" not in before:
        pieces.insert(0, _Piece("instruction", _line(before), False))
    return pieces


def _kind(label: str) -> str:
    """'instruction', 'response', or '' for other labels: reasons, images, bad instructions."""
    name = label.lower()
    if name.endswith("response"):
        return "response"
    return "instruction" if name.endswith("instruction") and "bad" not in name else ""


def _line(text: str) -> str:
    """A text in one line, without fences, emphasis and surrounding quotes."""
    plain = " ".join(text.replace("```", " ").split()).strip("*_ ")
    quoted = re.fullmatch(r"[\"“](?P<inside>[^\"“”]+)[\"”]", plain)
    return quoted["inside"].strip() if quoted else plain


def _examples() -> list[str]:
    """The instructions of the prompt's own examples, good and bad."""
    prompt: str = load(__package__)["synthesis"]["text"]
    return re.findall(r"^(?:Good|Bad) Instruction(?: \d)?: (.+)$", prompt, re.MULTILINE)
