"""Runs a builder over its sources; a journal keeps the finished ones, so that a killed run can be resumed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, field, structs

from sightline.builders.folder import (
    IMAGES,
    BuildIdentity,
    BuildManifest,
    BuiltFolder,
    Contents,
    ExcludedFolder,
    build_identity,
    built_image_path,
    everything_dropped,
    image_versions,
    open_folder,
    read_excluded,
    read_manifest,
    refuse_changed_files,
)
from sightline.builders.sources import SourceItem, check_sources, drop_reason
from sightline.errors import EnvironmentFailedError
from sightline.formats.files import changed_files, file_digest, json_digest
from sightline.formats.groups import GroupLine
from sightline.formats.journal import FinishedSource
from sightline.images import BadImage, read_original
from sightline.progress import progress
from sightline.text import print_note


class SourceResult(Struct, frozen=True):
    """The result of one source: the lines of its groups (their files are written), or why it is dropped."""

    lines: tuple[GroupLine, ...] = ()
    dropped: str = ""


class GroupMaker(Protocol):
    """Makes the groups of a source. It must be picklable: a frozen Struct at module level with `__call__`."""

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        """Make the groups of a source.

        Write images atomically into `out`/images and name them relative to `out` in the lines. Take random
        choices only from `random.Random(f"{kind} {seed} {source.id}")`.
        """
        ...


class BuildSpec(Struct, frozen=True, kw_only=True):
    """What is to be built. `images_per_source`: for the printed estimate; 0 prints none."""

    kind: str
    settings: Mapping[str, Any]
    apart_from: tuple[Path, ...] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    images_per_source: int = 0


class _CheckedSources(Struct, frozen=True, dict=True):
    """The usable sources with the digests of their images, the dropped ones, and the order of all."""

    spec: BuildSpec
    sources: Sequence[SourceItem]
    digests: Mapping[str, str]
    dropped: Mapping[str, str]
    excluded: tuple[ExcludedFolder, ...]
    order: Sequence[str]

    @cached_property
    def _header(self) -> Mapping[str, Any]:
        settings = msgspec.json.decode(msgspec.json.encode(self.spec.settings))
        return build_identity(self.spec.kind, settings, versions=image_versions()).header

    @cached_property
    def identity(self) -> BuildIdentity:
        each = [self.fingerprint_of(source) for source in self.sources]
        return BuildIdentity(self._header, json_digest([self._header, self.dropped, self.excluded, each]))

    def fingerprint_of(self, source: SourceItem) -> str:
        """The fingerprint of one source: the content of its image counts, its path does not."""
        plain = msgspec.to_builtins(structs.replace(source, image=self.digests[source.id], root=""))
        return json_digest([self._header, plain])


class _SourceTask(Struct, frozen=True):
    """What a worker process receives: a source with the digest of its image and its fingerprint."""

    maker: GroupMaker
    out: Path
    source: SourceItem
    digest: str
    fingerprint: str


def build(
    sources: Sequence[SourceItem],
    maker: GroupMaker,
    out: Path,
    spec: BuildSpec,
    *,
    processes: int = 1,
    force: bool = False,
    show_progress: bool = False,
) -> BuildManifest:
    """Build a folder: images/, groups.jsonl and, last, manifest.json.

    The bytes are the same for any number of processes and after any interruption. A resumed build skips the
    finished sources; a finished folder is only checked. A source is dropped if its image is unusable, leads
    out of its folder, or is used by a folder of `spec.apart_from` (compared by content).
    """
    checked = _check(sources, spec, show_progress=show_progress)
    with open_folder(out, checked.identity, force=force) as folder:
        if folder.finished and not force:
            return _check_finished(folder)
        folder.begin()
        tasks, done = _outstanding(checked, maker, folder)
        if show_progress:
            _print_estimate(checked, len(done))
        with (
            folder.remove_partial_images_on_error(),
            contextlib.closing(map_in_processes(_make, tasks, processes)) as entries,
            progress(
                "building",
                len(checked.sources),
                "images",
                done=len(done),
                show_progress=show_progress,
            ) as advance,
        ):
            for entry in entries:
                folder.journal.add([entry])
                advance(1)
        return _finish(checked, folder)


def image_name(source: SourceItem, variant: str, form: str) -> str:
    return built_image_path(f"{source.id}_{variant}", form.upper())


def _check(sources: Sequence[SourceItem], spec: BuildSpec, *, show_progress: bool) -> _CheckedSources:
    """Compute the digest of each source's image, and drop unusable sources before any work."""
    excluded, folder_of = read_excluded(spec.apart_from)
    files, dropped = check_sources(sources, folder_of, show_progress=show_progress)
    if not files:
        raise everything_dropped(dropped, "sources")
    digests = {name: file.digest for name, file in files.items()}
    usable = [source for source in sources if source.id in digests]
    return _CheckedSources(spec, usable, digests, dropped, excluded, [source.id for source in sources])


def _check_finished(folder: BuiltFolder) -> BuildManifest:
    """The manifest of a folder that holds this very build; UserError if one of its files was changed."""
    manifest = read_manifest(folder.path)
    refuse_changed_files(folder.path, manifest)
    folder.journal.discard()
    return manifest


def _outstanding(
    checked: _CheckedSources, maker: GroupMaker, folder: BuiltFolder
) -> tuple[list[_SourceTask], dict[str, FinishedSource]]:
    """The remaining tasks, and the finished sources whose files are intact."""
    fingerprints = {source.id: checked.fingerprint_of(source) for source in checked.sources}
    entries = folder.journal.read()
    current = {name: done for name, done in entries.items() if done.fingerprint == fingerprints.get(name)}
    files = {name: digest for done in current.values() for name, digest in done.files.items()}
    damaged = set(changed_files(folder.path, files))
    done = {name: entry for name, entry in current.items() if damaged.isdisjoint(entry.files)}
    tasks = [
        _SourceTask(maker, folder.path, source, checked.digests[source.id], fingerprints[source.id])
        for source in checked.sources
        if source.id not in done
    ]
    return tasks, done


def _print_estimate(checked: _CheckedSources, done: int) -> None:
    spec, sources = checked.spec, len(checked.sources)
    images = f", up to {sources * spec.images_per_source:,} images to make" if spec.images_per_source else ""
    before = f", {done:,} sources done already" if done else ""
    dropped = f", {len(checked.dropped):,} dropped" if checked.dropped else ""
    print_note(f"{spec.kind}: {sources:,} sources{dropped}{images}{before}")


def _make(task: _SourceTask) -> FinishedSource:
    source, out = task.source, task.out
    try:
        read_original(source.image, task.digest)
        result = task.maker(source, out)
    except BadImage as error:
        result = SourceResult(dropped=drop_reason(error, source))
    except MemoryError:
        raise EnvironmentFailedError(
            f"{source.image}: not enough memory to process it; fewer --processes need less memory; "
            "finished work is kept, run the same command again to continue"
        ) from None
    lines = tuple(
        line if line.cluster else structs.replace(line, cluster=task.digest) for line in result.lines
    )
    files = {name: file_digest(out / name) for line in lines for name in line.images}
    return FinishedSource(source.id, task.fingerprint, lines, result.dropped, files)


def _finish(checked: _CheckedSources, folder: BuiltFolder) -> BuildManifest:
    """Write groups.jsonl and the manifest from the journal alone, so that a resumed run writes the same."""
    entries = folder.journal.read()
    done = [entries[source.id] for source in checked.sources]
    reasons = {**checked.dropped, **{entry.id: entry.dropped for entry in done if entry.dropped}}
    dropped = {name: reasons[name] for name in checked.order if name in reasons} | dict(checked.spec.absent)
    lines = [line for entry in done for line in entry.lines]
    images = {name: digest for entry in done for name, digest in entry.files.items()}
    folder.remove_images_except(images)
    if not lines:
        folder.journal.discard()
        with contextlib.suppress(OSError):
            (folder.path / IMAGES).rmdir()
            folder.path.rmdir()
        raise everything_dropped(dropped, "sources")
    contents = Contents(
        groups=len({line.group for line in lines}),
        probes=len(lines),
        lines=lines,
        sources={entry.id: checked.digests[entry.id] for entry in done if not entry.dropped},
        dropped=dropped,
        passed_over=checked.spec.passed_over,
        excluded=checked.excluded,
    )
    return folder.finish(contents, images, BuildManifest)


# -- Worker processes that end with their parent; a process that dies is an error, not an endless wait

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def map_in_processes(
    function: Callable[[ItemT], ResultT], items: Sequence[ItemT], processes: int
) -> Generator[ResultT]:
    """Apply a function to items in this process, or in several fresh (spawned) ones."""
    if processes == 1 or len(items) < 2:
        yield from map(function, items)
        return
    spawn = multiprocessing.get_context("spawn")
    lifeline, parent_end = spawn.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(processes, len(items)), spawn, _exit_with_parent, (lifeline,))
    waiting: set[Future[ResultT]] = set()
    try:
        for item in items:
            if len(waiting) >= 2 * processes:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from _results(ready)
            with _sigint_blocked():
                waiting.add(pool.submit(function, item))
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from _results(ready)
    except BrokenProcessPool:
        raise EnvironmentFailedError(
            "a worker process has died (killed, or out of memory: fewer --processes need less memory); "
            "finished work is kept, run the same command again to continue"
        ) from None
    finally:
        parent_end.close()
        pool.shutdown(cancel_futures=True)
        lifeline.close()


def _results(ready: set[Future[ResultT]]) -> Iterator[ResultT]:
    """Results before errors: if one process died, the results of the others are not lost."""
    yield from (future.result() for future in ready if future.exception() is None)
    for future in ready:
        future.result()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Delay Ctrl-C until the block ends; processes that start inside the block never receive it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_with_parent(lifeline: Connection) -> None:
    """In a worker: exit when the parent closes its end of the pipe or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        lifeline.poll(None)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
