"""Question rephrasing (MM-R3, section 3.2): a chat model says each long question in three other ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

import sightline
from sightline.builders.built_folder import (
    GROUPS,
    IMAGES,
    BuildIdentity,
    begin,
    copy_images,
    finish,
    held,
    nothing_left,
)
from sightline.builders.image_io import ENDINGS
from sightline.builders.manifest import BuildManifest, ExcludedFolder, fingerprint, held_against
from sightline.builders.rephrasing_replies import read
from sightline.builders.reply_retries import ASKS, ReplyRequests, collect_replies, count_requests
from sightline.builders.sources import SourceItem, drop_reason, refuse_twins
from sightline.engine.client import ModelClient
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.formats.digests import file_digest
from sightline.formats.groups import ORIGINAL, GroupLine, write_groups
from sightline.images import BadImage, inspect_image
from sightline.prompts import fill, load
from sightline.types import Answer, ImageFile, ImageRef, Message, user

KIND = "rephrase"
SAMPLING: Mapping[str, Any] = {"temperature": 1, "max_tokens": 1024}
"""Unpublished in the paper. A second chance needs a temperature: at 0 it would be the same reply again."""


class RephraseJob(Struct, frozen=True):
    """What is to be rephrased, looked at before anything is asked.

    `files` holds what is known of each source's image, by source. `dropped` are the sources left out, with
    why, `passed_over` how many questions never came into question.
    """

    sources: tuple[SourceItem, ...]
    files: Mapping[str, ImageFile]
    settings: Mapping[str, Any]
    apart_from: tuple[ExcludedFolder, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, int] = field(default_factory=dict)

    @property
    def build(self) -> BuildIdentity:
        """What a folder must have been built from to be built on; replies that come later join it."""
        header = {"kind": KIND, "settings": self.settings, "versions": {"sightline": sightline.__version__}}
        digests = {name: file.digest for name, file in self.files.items()}
        return BuildIdentity(header, fingerprint([header, self.apart_from, self.dropped, digests]))


class ReplyResult(Struct, frozen=True):
    """What became of a question: three rephrasings, or why it was dropped, or why it has no answer yet.

    `draw` says which chance gave the reply (0 for the first), `key` is the reply's address in the store.
    """

    rephrasings: tuple[str, ...] = ()
    draw: int = 0
    key: str = ""
    dropped: str = ""
    unanswered: str = ""


class RephraseManifest(BuildManifest, frozen=True):
    """The manifest of rephrasings, with the questions whose call failed: the same command asks them again."""

    unanswered: Mapping[str, str] = field(default_factory=dict)


class Estimate(Struct, frozen=True):
    """What a run would ask. How many second chances there will be depends on the replies."""

    questions: int
    dropped: int
    known: int
    to_ask_at_least: int
    to_ask_at_most: int


def prepare(
    sources: Sequence[SourceItem],
    client: ModelClient,
    *,
    seed: int = 0,
    min_words: int = 0,
    passed_over: Mapping[str, int] | None = None,
    apart_from: Sequence[Path] = (),
) -> RephraseJob:
    """Look at the images, and drop what cannot be shown or is held by a folder of `apart_from`.

    Raises UserError where nothing is left, an id occurs twice, or a folder of `apart_from` is none of a
    builder.
    """
    refuse_twins(sources)
    apart, used = held_against(apart_from)
    files: dict[str, ImageFile] = {}
    dropped: dict[str, str] = {}
    seen: dict[str, ImageFile] = {}
    for source in sources:
        try:
            file = seen[source.image] = inspect_image(ImageRef(source.image, source.root), seen)
        except BadImage as error:
            dropped[source.id] = drop_reason(error, source)
            continue
        if file.digest in used:
            dropped[source.id] = f"its image is in {used[file.digest]}"
        else:
            files[source.id] = file
    kept = tuple(source for source in sources if source.id in files)
    if not kept:
        raise nothing_left(dropped, "questions")
    settings = {
        **client.description,
        "request": _prompts()["request"],
        "prompt": _prompts()["prompt"],
        "asks": ASKS,
        "min_words": min_words,
        "seed": seed,
        "questions": fingerprint([[source.id, source.question, source.references] for source in sources]),
    }
    plain = msgspec.json.decode(msgspec.json.encode(settings))
    return RephraseJob(kept, files, plain, apart, dropped, passed_over or {})


def request(source: SourceItem) -> tuple[Message, ...]:
    """What a chat model is asked: the paper's words, with the first known answer and without the image."""
    words = fill(_prompts()["request"], question=source.question, answer=source.references[0])
    return (user(words),)


async def rephrase(
    job: RephraseJob, client: ModelClient, store: Store, *, show_progress: bool = False
) -> dict[str, ReplyResult]:
    """Ask about every question what the store does not hold, up to ASKS times; what became of each, by id.

    Raises UserError where the model cannot be used at all, EnvironmentFailedError where the store fails.
    Cancelled, it keeps everything answered so far.
    """
    found = await collect_replies(
        _wanted(job, client), client, store, "rephrasing", show_progress=show_progress
    )
    return {
        name: ReplyResult(one.found or (), one.draw, one.key, one.dropped, one.unanswered)
        for name, one in found.items()
    }


def estimate(job: RephraseJob, client: ModelClient, store: Store) -> Estimate:
    """What `rephrase` would ask, by what the store holds; nothing is asked or written."""
    return Estimate(len(job.sources), len(job.dropped), *count_requests(_wanted(job, client), client, store))


def write(
    job: RephraseJob, found: Mapping[str, ReplyResult], out: Path, *, force: bool = False
) -> RephraseManifest:
    """Write images/, groups.jsonl and, last, manifest.json: the same bytes for the same replies.

    QuestionSet without an answer are left out and listed in the manifest. Raises UserError, with nothing
    written, where no question was rephrased, and where the folder holds something else by now unless `force`
    replaces it; EnvironmentFailedError where the disk refuses.
    """
    done = [source for source in job.sources if found[source.id].rephrasings]
    replies = {name: one.dropped for name, one in found.items() if one.dropped}
    if not done:
        raise nothing_left({**job.dropped, **replies}, "questions")
    images = {_name(file): file for file in (job.files[source.id] for source in done)}
    lines = [line for source in done for line in _lines(source, job.files[source.id], found[source.id])]
    with held(out, job.build, force=force) as journal:
        begin(out, job.build, journal)
        made = copy_images(images, out)
        write_groups(lines, out / GROUPS)
        made = {GROUPS: file_digest(out / GROUPS), **made}
        manifest = RephraseManifest(
            **job.build.header,
            groups=len(done),
            probes=len(lines),
            images=len(images),
            fingerprint=job.build.fingerprint,
            apart_from=job.apart_from,
            dropped={**job.dropped, **replies},
            sources={source.id: job.files[source.id].digest for source in done},
            made=made,
            unanswered={name: one.unanswered for name, one in found.items() if one.unanswered},
            passed_over=job.passed_over,
        )
        finish(out, manifest, journal)
    return manifest


def _prompts() -> Mapping[str, str]:
    prompts: Mapping[str, str] = load("sightline.benchmarks.mmr3")["rephrasing"]
    return prompts


def _wanted(job: RephraseJob, client: ModelClient) -> ReplyRequests[tuple[str, ...]]:
    sources = {source.id: source for source in job.sources}

    def ask(name: str, draw: int) -> KeyedRequest:
        return client.keyed(request(sources[name]), draw)

    def reading(name: str, answer: Answer) -> tuple[tuple[str, ...] | None, str]:
        source = sources[name]
        found = read(answer.text, source.question, source.references, cut=answer.truncated)
        return found.rephrasings or None, found.objection

    return ReplyRequests(list(sources), ask, reading)


def _lines(source: SourceItem, file: ImageFile, one: ReplyResult) -> list[GroupLine]:
    questions = {ORIGINAL: source.question}
    questions |= {f"r{number}": text for number, text in enumerate(one.rephrasings, 1)}
    return [
        GroupLine(
            group=source.id,
            variant=variant,
            images=(_name(file),),
            prompt=fill(_prompts()["prompt"], question=question),
            question=question,
            references=source.references,
            labels=source.labels,
            cluster=file.digest,
            facts={} if variant == ORIGINAL else {"reply": one.key, "draw": one.draw},
        )
        for variant, question in questions.items()
    ]


def _name(file: ImageFile) -> str:
    """An image's place in the folder, by its content: two sources that show the same one share it."""
    return f"{IMAGES}/{file.digest[:16]}{ENDINGS[file.format][0]}"
