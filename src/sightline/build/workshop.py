"""Runs a builder over its sources, journalled, so that an interruption costs next to nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct, structs

from sightline.build.journal import JOURNAL, Done, Journal, discard, header_of
from sightline.build.manifest import (
    MANIFEST,
    READERS,
    Apart,
    Manifest,
    changed,
    difference,
    digest_of,
    digest_or_error,
    fingerprint,
    held_against,
    read_manifest,
    versions,
    write_manifest,
)
from sightline.build.processes import spread
from sightline.build.sources import Source
from sightline.errors import SurroundingsError, UserError
from sightline.formats.groups import GroupLine, write_groups
from sightline.pictures import BadPicture
from sightline.progress import progress

GROUPS, IMAGES = "groups.jsonl", "images"


class Made(Struct, frozen=True):
    """What became of a source: the lines of its group (files written already), or why it was dropped."""

    lines: tuple[GroupLine, ...] = ()
    dropped: str = ""


class Work(Protocol):
    """Makes the groups of some sources; picklable: a frozen Struct at module level with `__call__`.

    It writes its pictures into `out`/images, atomically, and names them relative to `out` in the lines that
    it returns, one `Made` a source in their order. Random choices come only from
    `random.Random(f"{kind} {seed} {source.id}")`. A line's `cluster` may stay empty: it becomes the SHA-256
    of the source's picture. BadPicture drops its source, the text being the reason.
    """

    def __call__(self, sources: Sequence[Source], out: Path) -> list[Made]:
        """Make the groups of these sources."""
        ...


class _Plan(Struct, frozen=True):
    """What is to be built: the sources that are left, the digests of their pictures, what was dropped."""

    kind: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    sources: Sequence[Source]
    digests: Mapping[str, str]
    dropped: Mapping[str, str]
    passed_over: Mapping[str, int]
    apart: tuple[Apart, ...]

    @property
    def header(self) -> dict[str, Any]:
        """What a journal must say for its lines to be of use."""
        return {"kind": self.kind, "settings": self.settings, "versions": self.versions}

    @property
    def fingerprint(self) -> str:
        """Of the whole: equal ones mean equal bytes."""
        each = [self.fingerprint_of(source) for source in self.sources]
        return fingerprint([self.header, self.dropped, self.apart, each])

    def fingerprint_of(self, source: Source) -> str:
        """Of one source: where its picture lies does not matter, its content does."""
        return fingerprint([self.header, structs.replace(source, picture=self.digests[source.id])])


class _Task(Struct, frozen=True):
    """What a worker process is given: consecutive sources, each with its digest and fingerprint."""

    work: Work
    out: Path
    sources: tuple[Source, ...]
    digests: tuple[str, ...]
    fingerprints: tuple[str, ...]


def build(
    sources: Sequence[Source],
    work: Work,
    out: Path,
    *,
    kind: str,
    settings: Mapping[str, Any],
    processes: int = 1,
    chunk: int = 1,
    apart_from: Sequence[Path] = (),
    shown: bool = False,
    force: bool = False,
    each: int = 0,
    passed_over: Mapping[str, int] | None = None,
) -> Manifest:
    """Make the groups of all sources in the folder `out`: images/, groups.jsonl and, last, manifest.json.

    The same bytes come about for every number of `processes` and after every interruption: what a killed
    run had finished is not made again. A folder that is finished is only checked. `settings` (with the
    seed) are all that decides what `work` makes; a folder built with others, or from other sources, is
    refused unless `force`. `chunk` consecutive sources are worked on in one call, always the same ones.
    Sources whose picture a folder of `apart_from` used are dropped: it is compared by content. `each` is how
    many pictures a source gives, for the estimate that is printed where `shown`. `passed_over` goes into the
    manifest as it is.

    Raises UserError where the call is wrong (before anything is written) or every source was dropped;
    SurroundingsError where the disk refuses or a process dies: the same call then goes on.
    """
    _refuse_twins(sources)
    apart, held = held_against(apart_from)
    digests, dropped = _look_at_sources(sources, held, shown)
    plan = _Plan(
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
        raise _nothing_left(dropped)
    _refuse_other_contents(out, plan, force)
    if (out / MANIFEST).exists() and not force:
        return _finished(out)
    with Journal(out) as journal:
        if (out / MANIFEST).exists() or journal.header() != plan.header:
            _clear(out)
            journal.begin(plan.header)
        tasks, done = _outstanding(plan, work, out, journal, chunk)
        if shown:
            _estimate(plan, len(done), each)
        with progress("building", len(plan.sources), "pictures", done=len(done), shown=shown) as advance:
            for entries in spread(_do, tasks, processes):
                journal.add(entries)
                advance(sum(entry.id not in done for entry in entries))
        manifest = _conclude(plan, [source.id for source in sources], out, journal)
        journal.discard()
    return manifest


def picture_name(source: Source, variant: str, form: str) -> str:
    """Where a builder puts a picture, relative to its folder: 'images/ID_VARIANT.png' or '.jpg'."""
    return f"{IMAGES}/{source.id}_{variant}{'.jpg' if form == 'jpeg' else '.png'}"


def _refuse_twins(sources: Sequence[Source]) -> None:
    seen: dict[str, str] = {}
    for source in sources:
        if source.id in seen:
            raise UserError(
                f"two sources have the id '{source.id}'",
                found=f"{seen[source.id]} and {source.picture}",
                expected="ids that differ",
            )
        seen[source.id] = source.picture


def _look_at_sources(
    sources: Sequence[Source], held: Mapping[str, str], shown: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """The digest of each source's picture, and the sources that are dropped before any work, with why."""
    paths = dict.fromkeys(source.picture for source in sources)
    found: dict[str, str | OSError] = {}
    with (
        ThreadPoolExecutor(READERS) as pool,
        progress("looking at pictures", len(paths), "pictures", shown=shown) as advance,
    ):
        for path, one in zip(paths, pool.map(digest_or_error, paths), strict=True):
            found[path] = one
            advance(1)
    digests: dict[str, str] = {}
    dropped: dict[str, str] = {}
    for source in sources:
        digest = found[source.picture]
        if isinstance(digest, OSError):
            dropped[source.id] = f"cannot be read: {digest.strerror or digest}"
        elif digest in held:
            dropped[source.id] = f"its picture is in {held[digest]}"
        else:
            digests[source.id] = digest
    return digests, dropped


def _nothing_left(dropped: Mapping[str, str]) -> UserError:
    if not dropped:
        return UserError("there is no source to work on", expected="at least one picture")
    name, reason = next(iter(dropped.items()))
    return UserError(
        f"all {len(dropped):,} sources are dropped, {name} because: {reason}", expected="one that can be used"
    )


def _refuse_other_contents(out: Path, plan: _Plan, force: bool) -> None:
    """Raise UserError where the folder holds anything but this work, begun or finished."""
    if out.exists() and not out.is_dir():
        raise UserError("is no folder", file=out, expected="a folder for --out")
    if (out / MANIFEST).exists():
        if force:
            return
        built = read_manifest(out)
        if built.fingerprint == plan.fingerprint:
            return
        differs = difference(structs.asdict(built), plan.header) or "other sources or --apart-from"
    else:
        begun = header_of(out)
        # A run that was killed before it wrote the journal's first line leaves the journal alone.
        if begun is None and any(path.is_file() and path.name != JOURNAL for path in out.rglob("*")):
            raise UserError("holds something else", file=out, expected="an empty or a new folder for --out")
        if begun is None or begun == plan.header or force:
            return
        differs = difference(begun, plan.header)
    raise UserError(
        f"was built from something else: {differs}",
        file=out,
        expected="another --out, or --force to build it anew",
    )


def _finished(out: Path) -> Manifest:
    """The manifest of a folder that holds this very work; UserError where a file of it was changed."""
    manifest = read_manifest(out)
    others = changed(out, manifest.made)
    if others:
        raise UserError(
            f"{len(others):,} of the files built there are gone or changed, first {others[0]}",
            file=out,
            expected="the folder as it was built, or --force to build it anew",
        )
    discard(out)
    return manifest


def _clear(out: Path) -> None:
    """Remove what was built before, its manifest last: after a kill on the way it can be cleared again."""
    _sweep(out, {})
    for name in (GROUPS, MANIFEST):
        (out / name).unlink(missing_ok=True)


def _outstanding(
    plan: _Plan, work: Work, out: Path, journal: Journal, chunk: int
) -> tuple[list[_Task], dict[str, Done]]:
    """What is left to do, in whole chunks so that a source always has the same company, and what is done."""
    prints = {source.id: plan.fingerprint_of(source) for source in plan.sources}
    known = {name: done for name, done in journal.read().items() if done.fingerprint == prints.get(name)}
    spoilt = set(
        changed(out, {name: digest for done in known.values() for name, digest in done.files.items()})
    )
    done = {name: entry for name, entry in known.items() if spoilt.isdisjoint(entry.files)}
    tasks = []
    for first in range(0, len(plan.sources), chunk):
        part = tuple(plan.sources[first : first + chunk])
        if any(source.id not in done for source in part):
            digests = tuple(plan.digests[source.id] for source in part)
            tasks.append(_Task(work, out, part, digests, tuple(prints[source.id] for source in part)))
    return tasks, done


def _estimate(plan: _Plan, done: int, each: int) -> None:
    pictures = f", up to {len(plan.sources) * each:,} pictures to make" if each else ""
    before = f", {done:,} sources done already" if done else ""
    dropped = f", {len(plan.dropped):,} dropped" if plan.dropped else ""
    print(
        f"{plan.kind}: {len(plan.sources):,} sources{dropped}{pictures}{before}", file=sys.stderr, flush=True
    )


def _do(task: _Task) -> list[Done]:
    (task.out / IMAGES).mkdir(exist_ok=True)
    try:
        made = _attempt(task.work, task.sources, task.out)
    except MemoryError:
        raise SurroundingsError(
            f"{task.sources[0].picture}: there is too little memory to work on it; what is finished is kept"
        ) from None
    return [
        _entry(one, source, digest, print_, task.out)
        for one, source, digest, print_ in zip(
            made, task.sources, task.digests, task.fingerprints, strict=True
        )
    ]


def _attempt(work: Work, sources: Sequence[Source], out: Path) -> Sequence[Made]:
    """The work done; a bad picture is looked for by working on each source alone."""
    try:
        return work(sources, out)
    except BadPicture as error:
        if len(sources) == 1:
            return [Made(dropped=str(error).removeprefix(f"{sources[0].picture}: "))]
        return [made for source in sources for made in _attempt(work, [source], out)]


def _entry(made: Made, source: Source, digest: str, print_: str, out: Path) -> Done:
    lines = tuple(line if line.cluster else structs.replace(line, cluster=digest) for line in made.lines)
    files = {name: digest_of(out / name) for line in lines for name in line.images}
    return Done(source.id, print_, lines, made.dropped.removeprefix(f"{source.picture}: "), files)


def _conclude(plan: _Plan, order: Sequence[str], out: Path, journal: Journal) -> Manifest:
    """Write groups.jsonl and the manifest from the journal alone, so that a resumed run writes the same."""
    entries = journal.read()
    done = [entries[source.id] for source in plan.sources]
    reasons = {**plan.dropped, **{entry.id: entry.dropped for entry in done if entry.dropped}}
    dropped = {name: reasons[name] for name in order if name in reasons}
    lines = [line for entry in done for line in entry.lines]
    pictures = {name: digest for entry in done for name, digest in entry.files.items()}
    _sweep(out, pictures)
    if not lines:
        journal.discard()
        with contextlib.suppress(OSError):
            (out / IMAGES).rmdir()
            out.rmdir()
        raise _nothing_left(dropped)
    write_groups(lines, out / GROUPS)
    manifest = Manifest(
        **plan.header,
        groups=len({line.group for line in lines}),
        probes=len(lines),
        pictures=len(pictures),
        fingerprint=plan.fingerprint,
        apart_from=plan.apart,
        dropped=dropped,
        passed_over=plan.passed_over,
        sources={entry.id: plan.digests[entry.id] for entry in done if not entry.dropped},
        made={GROUPS: digest_of(out / GROUPS), **pictures},
    )
    write_manifest(manifest, out)
    return manifest


def _sweep(out: Path, pictures: Mapping[str, str]) -> None:
    """Remove all but these pictures: what killed processes and dropped sources left."""
    for path in (out / IMAGES).rglob("*"):
        if path.is_file() and path.relative_to(out).as_posix() not in pictures:
            path.unlink()
    # What `write_atomically` had begun when it was killed.
    for name in (GROUPS, MANIFEST):
        for path in out.glob(f".{name}.*.tmp"):
            path.unlink()
