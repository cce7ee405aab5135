"""Question rephrasing (MM-R3, section 3.2): a chat model writes three rephrasings of each long question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.builders.built_folder import Contents, built_image_path, everything_dropped, write_folder
from sightline.builders.checked_images import check_sources
from sightline.builders.manifest import (
    BuildIdentity,
    BuildManifest,
    ExcludedFolder,
    build_identity,
    read_excluded,
)
from sightline.builders.rephrasing_replies import read_rephrasings
from sightline.builders.reply_retries import (
    MAX_ATTEMPTS,
    ReplyRequests,
    ReplyResult,
    collect_replies,
    dropped_reasons,
    unanswered_reasons,
)
from sightline.builders.sources import SourceItem
from sightline.engine.client import ModelClient
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.formats.digests import json_digest
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.prompts import fill, load
from sightline.types import Answer, ImageFile, Message, user

KIND = "rephrase"
SAMPLING: Mapping[str, Any] = {"temperature": 1, "max_tokens": 1024}
"""Unpublished in the paper. A second attempt needs a temperature: at 0 the reply would be the same."""

Rephrasings = tuple[str, ...]


class RephraseJob(Struct, frozen=True):
    """What to rephrase, checked before anything is asked."""

    sources: tuple[SourceItem, ...]
    files: Mapping[str, ImageFile]
    settings: Mapping[str, Any]
    excluded: tuple[ExcludedFolder, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, int] = field(default_factory=dict)

    @property
    def identity(self) -> BuildIdentity:
        """The identity of the build. Replies are not part of it: later ones complete the same folder."""
        digests = {name: file.digest for name, file in self.files.items()}
        return build_identity(KIND, self.settings, self.excluded, self.dropped, digests)


class RephraseManifest(BuildManifest, frozen=True):
    """The manifest of rephrasings, with the questions whose request failed and the reason."""

    unanswered: Mapping[str, str] = field(default_factory=dict)


def prepare_rephrasing(
    sources: Sequence[SourceItem],
    client: ModelClient,
    *,
    seed: int = 0,
    min_words: int = 0,
    passed_over: Mapping[str, int] | None = None,
    apart_from: Sequence[Path] = (),
) -> RephraseJob:
    """Check the images, and drop unusable ones and those that a folder of `apart_from` uses."""
    excluded, folder_of = read_excluded(apart_from)
    files, dropped = check_sources(sources, folder_of)
    usable = tuple(source for source in sources if source.id in files)
    if not usable:
        raise everything_dropped(dropped, "questions")
    settings = {
        **client.description,
        "request": _prompts()["request"],
        "prompt": _prompts()["prompt"],
        "asks": MAX_ATTEMPTS,
        "min_words": min_words,
        "seed": seed,
        "questions": json_digest([[source.id, source.question, source.references] for source in sources]),
    }
    plain = msgspec.json.decode(msgspec.json.encode(settings))
    return RephraseJob(usable, files, plain, excluded, dropped, passed_over or {})


def rephrasing_request(source: SourceItem) -> tuple[Message, ...]:
    """The request for a question: the paper's prompt with the first reference, without the image."""
    text = fill(_prompts()["request"], question=source.question, answer=source.references[0])
    return (user(text),)


def rephrasing_requests(job: RephraseJob, client: ModelClient) -> ReplyRequests[Rephrasings]:
    """The requests of a job, and how their replies are read."""
    sources = {source.id: source for source in job.sources}

    def ask(name: str, draw: int) -> KeyedRequest:
        return client.keyed(rephrasing_request(sources[name]), draw)

    def read_answer(name: str, answer: Answer) -> tuple[Rephrasings | None, str]:
        source = sources[name]
        parsed = read_rephrasings(answer.text, source.question, source.references, cut=answer.truncated)
        return parsed.rephrasings or None, parsed.objection

    return ReplyRequests(list(sources), ask, read_answer)


async def rephrase(
    job: RephraseJob, client: ModelClient, store: Store, *, show_progress: bool = False
) -> dict[str, ReplyResult[Rephrasings]]:
    """Ask for the rephrasings that the store does not hold."""
    return await collect_replies(
        rephrasing_requests(job, client), client, store, "rephrasing", show_progress=show_progress
    )


def write_rephrasings(
    job: RephraseJob, results: Mapping[str, ReplyResult[Rephrasings]], out: Path, *, force: bool = False
) -> RephraseManifest:
    """Write images/, groups.jsonl and, last, manifest.json: the same bytes for the same replies."""
    done = [source for source in job.sources if results[source.id].value]
    dropped = {**job.dropped, **dropped_reasons(results)}
    if not done:
        raise everything_dropped(dropped, "questions")
    lines = [line for source in done for line in _lines(source, job.files[source.id], results[source.id])]
    contents = Contents(
        groups=len(done),
        probes=len(lines),
        lines=lines,
        sources={source.id: job.files[source.id].digest for source in done},
        dropped=dropped,
        passed_over=job.passed_over,
        excluded=job.excluded,
    )
    unanswered = unanswered_reasons(results)
    images = {_image_path(file): file for file in (job.files[source.id] for source in done)}
    manifest = partial(RephraseManifest, unanswered=unanswered)
    return write_folder(out, job.identity, contents, images, manifest=manifest, force=force)


def _prompts() -> Mapping[str, str]:
    prompts: Mapping[str, str] = load("sightline.benchmarks.mmr3")["rephrasing"]
    return prompts


def _lines(source: SourceItem, file: ImageFile, result: ReplyResult[Rephrasings]) -> list[GroupLine]:
    questions = {ORIGINAL: source.question}
    questions |= {f"r{number}": text for number, text in enumerate(result.value or (), 1)}
    return [
        GroupLine(
            group=source.id,
            variant=variant,
            images=(_image_path(file),),
            prompt=fill(_prompts()["prompt"], question=question),
            question=question,
            references=source.references,
            labels=source.labels,
            cluster=file.digest,
            facts={} if variant == ORIGINAL else {"reply": result.key, "draw": result.draw},
        )
        for variant, question in questions.items()
    ]


def _image_path(file: ImageFile) -> str:
    """An image's path in the folder, named by its content: two sources with the same image share one file."""
    return built_image_path(file.digest[:16], file.format)
