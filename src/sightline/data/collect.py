"""Fetches the pictures that a data set names by url: a few at a time, each once, none without a trace.

A picture appears under its name when it is whole and was decoded to its last pixel. While the work goes on
the folder's journal holds what is done, a line a picture; in the end `pictures.json` lists every picture with
its SHA-256, and every url that gave none with the reason. The same call goes on after a kill: what is there
unchanged is not asked for again, and what was fetched in part is fetched anew.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from sightline.data import noted, put
from sightline.data.fetch import Fetcher, Limits
from sightline.data.missed import Missed
from sightline.data.noted import Kept, Lost, Manifest
from sightline.formats.journal import Journal
from sightline.pictures import BadPicture, decode, look
from sightline.progress import Advance, progress
from sightline.types import Picture


class Collection(Struct, frozen=True):
    """How many pictures were wanted, were there before and were fetched, the urls that gave none, and what is
    wrong with the files beside that were not taken."""

    wanted: int
    there: int
    fetched: int
    missing: Mapping[str, Lost]
    unusable: tuple[str, ...] = ()


def collect(
    wanted: Mapping[str, str],
    folder: Path,
    *,
    beside: Path | None = None,
    private: bool = False,
    limits: Limits | None = None,
    shown: bool = False,
) -> Collection:
    """Put the picture of each url where `wanted` says, a path in `folder`; a dead link ends nothing.

    `beside` is another folder in the same layout, whose pictures are taken before any is fetched. `private`
    allows addresses that are not public. Raises UserError where another process fetches into the folder,
    SurroundingsError where the disk refuses: all pictures so far are kept then.
    """
    with (
        warnings.catch_warnings(),
        Journal(folder, "--to") as journal,
        # One thread, so that no more than one picture is decoded at any time.
        ThreadPoolExecutor(1) as decoder,
    ):
        # Pillow warns of pictures that are large and still within our limits.
        warnings.simplefilter("ignore")
        work = _Work(wanted, folder, beside, journal, decoder)
        with progress("pictures", len(wanted), "pictures", done=work.settled, shown=shown) as advance:
            asyncio.run(work.run(limits or Limits(), private, advance))
        return work.finish()


class _Work:
    """The pictures of one call: what is there, what is missing, what is still to be settled."""

    def __init__(
        self,
        wanted: Mapping[str, str],
        folder: Path,
        beside: Path | None,
        journal: Journal,
        decoder: ThreadPoolExecutor,
    ) -> None:
        self._wanted, self._folder, self._beside = wanted, folder, beside
        self._journal, self._decoder = journal, decoder
        noted.begin(journal)
        self._known = noted.read(folder, journal)
        self._missing = dict(put.unusable(wanted))
        self._left = {url: path for url, path in wanted.items() if url not in self._missing}
        put.sweep(folder / path for path in self._left.values())
        self._kept = noted.unchanged(self._left, folder, self._known.pictures)
        self._unusable: list[str] = []
        self._fetched = 0

    @property
    def settled(self) -> int:
        """How many urls need nothing more."""
        return len(self._kept) + len(self._missing)

    async def run(self, limits: Limits, private: bool, advance: Advance) -> None:
        """Settle all that is left, a few at a time; SurroundingsError where the disk refuses."""
        urls = iter([url for url in self._left if url not in self._kept])
        try:
            async with Fetcher(limits, private=private) as fetcher, asyncio.TaskGroup() as tasks:
                for _ in range(limits.at_once):
                    tasks.create_task(self._settle(urls, fetcher, advance))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    def finish(self) -> Collection:
        """Write the manifest, what is known of other urls in it too, and let go of the journal."""
        kept = {url: one for url, one in self._known.pictures.items() if url not in self._wanted}
        lost = {url: one for url, one in self._known.missing.items() if url not in self._wanted}
        noted.write(Manifest({**kept, **self._kept}, {**lost, **self._missing}), self._folder)
        self._journal.discard()
        there = len(self._kept) - self._fetched
        return Collection(len(self._wanted), there, self._fetched, self._missing, tuple(self._unusable))

    async def _settle(self, urls: Iterator[str], fetcher: Fetcher, advance: Advance) -> None:
        """Take urls until none is left, each to its picture or to the reason why there is none."""
        for url in urls:
            path = self._left[url]
            try:
                kept = Kept(path, await self._obtain(url, path, fetcher))
            except Missed as missed:
                self._missing[url] = Lost(path, missed.reason, missed.detail)
            else:
                noted.note(self._journal, url, kept)
                self._kept[url] = kept
            advance(1)

    async def _obtain(self, url: str, path: str, fetcher: Fetcher) -> str:
        """The SHA-256 of the picture, which lies under its name then; Missed where it is not to be had."""
        final = self._folder / path
        # One that was noted with another content was changed by somebody, or by a disk.
        if url not in self._known.pictures and (digest := await self._sound(self._folder, path)):
            return digest
        part = put.part_of(final, url)
        put.make_room(final, self._folder)
        try:
            if digest := await self._copied(path, part):
                put.rename(part, final)
            else:
                digest = await self._fetched_whole(url, part, fetcher)
                put.rename(part, final)
                self._fetched += 1
        finally:
            part.unlink(missing_ok=True)
        return digest

    async def _copied(self, path: str, part: Path) -> str:
        """The SHA-256 of the copy of a picture that lies beside; '' where none does, or the copy is none."""
        if self._beside is None or not os.path.lexists(self._beside / path):
            return ""
        try:
            await self._inspected(self._beside / path, self._beside)
        except BadPicture as error:
            self._unusable.append(str(error))
            return ""
        await asyncio.to_thread(put.copy, self._beside / path, part)
        return await self._sound(self._folder, str(part.relative_to(self._folder)))

    async def _sound(self, folder: Path, path: str) -> str:
        """The SHA-256 of a picture that lies in a folder; '' where it does not, or is none."""
        if not os.path.lexists(folder / path):
            return ""
        try:
            return await self._inspected(folder / path, folder)
        except BadPicture:
            return ""

    async def _fetched_whole(self, url: str, part: Path, fetcher: Fetcher) -> str:
        media = await fetcher.fetch(url, part)
        try:
            return await self._inspected(part, self._folder)
        except BadPicture as error:
            problem = str(error).removeprefix(f"{part}: ")
            raise Missed("no picture", f"{problem}; the server calls it {media}") from None

    async def _inspected(self, path: Path, root: Path) -> str:
        """The SHA-256 of a picture that was decoded to its last pixel; BadPicture where that fails."""
        return await asyncio.get_running_loop().run_in_executor(self._decoder, _inspect, path, root)


def _inspect(path: Path, root: Path) -> str:
    file = look(Picture(str(path), str(root)), {})
    decode(file)
    return file.digest
