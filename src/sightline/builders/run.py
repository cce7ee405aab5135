"""Runs a builder over its sources, journalled, so that an interruption costs next to nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct, structs

from sightline.builders.built_folder import (
    GROUPS,
    IMAGES,
    BuildIdentity,
    begin,
    finish,
    held,
    nothing_half_written,
    nothing_left,
    sweep,
)
from sightline.builders.image_io import ENDINGS
from sightline.builders.manifest import (
    MANIFEST,
    BuildManifest,
    ExcludedFolder,
    fingerprint,
    held_against,
    read_manifest,
    versions,
)
from sightline.builders.process_pool import spread
from sightline.builders.sources import SourceItem, drop_reason, refuse_twins
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.digests import READERS, changed_files, file_digest
from sightline.formats.groups import GroupLine, write_groups
from sightline.formats.journal import FinishedSource, Journal
from sightline.images import BadImage, inspect_image
from sightline.progress import progress
from sightline.types import ImageFile, ImageRef


class SourceResult(Struct, frozen=True):
    """What became of a source: the lines of its group (files written already), or why it was dropped."""

    lines: tuple[GroupLine, ...] = ()
    dropped: str = ""


class GroupMaker(Protocol):
    """Makes the groups of a source; picklable: a frozen Struct at module level with `__call__`.

    It writes its images into `out`/images, atomically, and names them relative to `out` in the lines that
    it returns. Random choices come only from `random.Random(f"{kind} {seed} {source.id}")`. A line's
    `cluster` may stay empty: it becomes the SHA-256 of the source's image. BadImage drops the source, the
    text being the reason.
    """

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        """Make the groups of this source."""
        ...


class _BuildPlan(Struct, frozen=True, dict=True):
    """What is to be built: the sources that are left, the digests of their images, what was dropped."""

    kind: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    sources: Sequence[SourceItem]
    digests: Mapping[str, str]
    dropped: Mapping[str, str]
    passed_over: Mapping[str, int]
    apart: tuple[ExcludedFolder, ...]

    @property
    def header(self) -> dict[str, Any]:
        """What a journal must say for its lines to be of use."""
        return {"kind": self.kind, "settings": self.settings, "versions": self.versions}

    @cached_property
    def build(self) -> BuildIdentity:
        """The whole; equal fingerprints mean equal bytes."""
        each = [self.fingerprint_of(source) for source in self.sources]
        return BuildIdentity(self.header, fingerprint([self.header, self.dropped, self.apart, each]))

    def fingerprint_of(self, source: SourceItem) -> str:
        """Of one source: where its image lies does not matter, its content does."""
        return fingerprint([self.header, structs.replace(source, image=self.digests[source.id], root="")])


class _SourceTask(Struct, frozen=True):
    """What a worker process is given: a source with its image's digest and its fingerprint."""

    work: GroupMaker
    out: Path
    source: SourceItem
    digest: str
    fingerprint: str


def build(
    sources: Sequence[SourceItem],
    work: GroupMaker,
    out: Path,
    *,
    kind: str,
    settings: Mapping[str, Any],
    processes: int = 1,
    apart_from: Sequence[Path] = (),
    show_progress: bool = False,
    force: bool = False,
    each: int = 0,
    passed_over: Mapping[str, int] | None = None,
) -> BuildManifest:
    """Make the groups of all sources in the folder `out`: images/, groups.jsonl and, last, manifest.json.

    The same bytes come about for every number of `processes` and after every interruption: what a killed
    run had finished is not made again. A folder that is finished is only checked. `settings` (with the
    seed) are all that decides what `work` makes; a folder built with others, or from other sources, is
    refused unless `force`. Sources whose image leads out of their folder, or was used by a folder of
    `apart_from` (compared by content), are dropped. `each` is how many images a source gives, for the
    estimate that is printed with `show_progress`. `passed_over` goes into the manifest as it is.

    Raises UserError where the call is wrong (before anything is written) or every source was dropped;
    EnvironmentFailedError where the disk refuses or a process dies: the same call then goes on.
    """
    refuse_twins(sources)
    apart, used = held_against(apart_from)
    digests, dropped = _look_at_sources(sources, used, show_progress)
    plan = _BuildPlan(
        kind=kind,
        settings=msgspec.json.decode(msgspec.json.encode(settings)),
        versions=versions(),
        sources=[source for source in sources if source.id in digests],
        digests=digests,
        dropped=dropped,
        passed_over=passed_over or {},
        apart=apart,
    )
    if not plan.sources:
        raise nothing_left(dropped, "sources")
    with held(out, plan.build, force=force) as journal:
        if (out / MANIFEST).exists() and not force:
            return _finished(out, journal)
        begin(out, plan.build, journal)
        tasks, done = _outstanding(plan, work, out, journal)
        if show_progress:
            _estimate(plan, len(done), each)
        with (
            nothing_half_written(out),
            contextlib.closing(spread(_do, tasks, processes)) as entries,
            progress(
                "building", len(plan.sources), "images", done=len(done), show_progress=show_progress
            ) as advance,
        ):
            for entry in entries:
                journal.add([entry])
                advance(1)
        return _conclude(plan, [source.id for source in sources], out, journal)


def image_name(source: SourceItem, variant: str, form: str) -> str:
    """Where a builder puts an image, relative to its folder: 'images/ID_VARIANT.png' or '.jpg'."""
    return f"{IMAGES}/{source.id}_{variant}{ENDINGS[form.upper()][0]}"


def _look_at_sources(
    sources: Sequence[SourceItem], used: Mapping[str, str], show_progress: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """The digest of each source's image, and the sources that are dropped before any work, with why."""
    digests: dict[str, str] = {}
    dropped: dict[str, str] = {}
    with (
        ThreadPoolExecutor(READERS) as pool,
        progress("looking at images", len(sources), "images", show_progress=show_progress) as advance,
    ):
        for source, found in zip(sources, pool.map(_look_at, sources), strict=True):
            if isinstance(found, BadImage):
                dropped[source.id] = drop_reason(found, source)
            elif found.digest in used:
                dropped[source.id] = f"its image is in {used[found.digest]}"
            else:
                digests[source.id] = found.digest
            advance(1)
    return digests, dropped


def _look_at(source: SourceItem) -> ImageFile | BadImage:
    try:
        return inspect_image(ImageRef(source.image, source.root), {})
    except BadImage as error:
        return error


def _finished(out: Path, journal: Journal) -> BuildManifest:
    """The manifest of a folder that holds this very work; UserError where a file of it was changed."""
    manifest = read_manifest(out)
    others = changed_files(out, manifest.made)
    if others:
        raise UserError(
            f"{len(others):,} of the files built there are gone or changed, first {others[0]}",
            file=out,
            expected="the folder as it was built, or --force to build it anew",
        )
    journal.discard()
    return manifest


def _outstanding(
    plan: _BuildPlan, work: GroupMaker, out: Path, journal: Journal
) -> tuple[list[_SourceTask], dict[str, FinishedSource]]:
    """What is left to do, and what is done."""
    prints = {source.id: plan.fingerprint_of(source) for source in plan.sources}
    known = {name: done for name, done in journal.read().items() if done.fingerprint == prints.get(name)}
    spoilt = set(
        changed_files(out, {name: digest for done in known.values() for name, digest in done.files.items()})
    )
    done = {name: entry for name, entry in known.items() if spoilt.isdisjoint(entry.files)}
    tasks = [
        _SourceTask(work, out, source, plan.digests[source.id], prints[source.id])
        for source in plan.sources
        if source.id not in done
    ]
    return tasks, done


def _estimate(plan: _BuildPlan, done: int, each: int) -> None:
    images = f", up to {len(plan.sources) * each:,} images to make" if each else ""
    before = f", {done:,} sources done already" if done else ""
    dropped = f", {len(plan.dropped):,} dropped" if plan.dropped else ""
    print(f"{plan.kind}: {len(plan.sources):,} sources{dropped}{images}{before}", file=sys.stderr, flush=True)


def _do(task: _SourceTask) -> FinishedSource:
    source, out = task.source, task.out
    try:
        made = task.work(source, out)
    except BadImage as error:
        made = SourceResult(dropped=drop_reason(error, source))
    except MemoryError:
        raise EnvironmentFailedError(
            f"{source.image}: there is too little memory to work on it; fewer --processes need less; "
            "what is finished is kept, the same command goes on"
        ) from None
    lines = tuple(line if line.cluster else structs.replace(line, cluster=task.digest) for line in made.lines)
    files = {name: file_digest(out / name) for line in lines for name in line.images}
    return FinishedSource(source.id, task.fingerprint, lines, made.dropped, files)


def _conclude(plan: _BuildPlan, order: Sequence[str], out: Path, journal: Journal) -> BuildManifest:
    """Write groups.jsonl and the manifest from the journal alone, so that a resumed run writes the same."""
    entries = journal.read()
    done = [entries[source.id] for source in plan.sources]
    reasons = {**plan.dropped, **{entry.id: entry.dropped for entry in done if entry.dropped}}
    dropped = {name: reasons[name] for name in order if name in reasons}
    lines = [line for entry in done for line in entry.lines]
    images = {name: digest for entry in done for name, digest in entry.files.items()}
    sweep(out, images)
    if not lines:
        journal.discard()
        with contextlib.suppress(OSError):
            (out / IMAGES).rmdir()
            out.rmdir()
        raise nothing_left(dropped, "sources")
    write_groups(lines, out / GROUPS)
    manifest = BuildManifest(
        **plan.header,
        groups=len({line.group for line in lines}),
        probes=len(lines),
        images=len(images),
        fingerprint=plan.build.fingerprint,
        apart_from=plan.apart,
        dropped=dropped,
        passed_over=plan.passed_over,
        sources={entry.id: plan.digests[entry.id] for entry in done if not entry.dropped},
        made={GROUPS: file_digest(out / GROUPS), **images},
    )
    finish(out, manifest, journal)
    return manifest
