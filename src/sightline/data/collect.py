"""Fetches the images that a data set names by url: a few at a time, each once, none without a trace.

An image appears under its name when it is whole and was decoded to its last pixel. While the work goes on
the folder's journal holds what is done, a line an image; in the end `image_manifest.json` lists every image with
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

from sightline.data import destinations, image_manifest
from sightline.data.errors import DownloadError
from sightline.data.fetch import Fetcher, Limits
from sightline.data.image_manifest import Kept, Lost, Manifest
from sightline.formats.journal import Journal
from sightline.images import BadImage, decode, look
from sightline.progress import Advance, progress
from sightline.types import ImageRef


class Collection(Struct, frozen=True):
    """How many images were wanted, were there before and were fetched, the urls that gave none, and what is
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
    show_progress: bool = False,
) -> Collection:
    """Put the image of each url where `wanted` says, a path in `folder`; a dead link ends nothing.

    `beside` is another folder in the same layout, whose images are taken before any is fetched. `private`
    allows addresses that are not public. Raises UserError where another process fetches into the folder,
    EnvironmentFailedError where the disk refuses: all images so far are kept then.
    """
    with (
        warnings.catch_warnings(),
        Journal(folder, "--to") as journal,
        # One thread, so that no more than one image is decoded at any time.
        ThreadPoolExecutor(1) as decoder,
    ):
        # Pillow warns of images that are large and still within our limits.
        warnings.simplefilter("ignore")
        work = _Work(wanted, folder, beside, journal, decoder)
        with progress(
            "images", len(wanted), "images", done=work.settled, show_progress=show_progress
        ) as advance:
            asyncio.run(work.run(limits or Limits(), private, advance))
        return work.finish()


class _Work:
    """The images of one call: what is there, what is missing, what is still to be settled."""

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
        image_manifest.begin(journal)
        self._known = image_manifest.read(folder, journal)
        self._missing = dict(destinations.unusable(wanted))
        self._left = {url: path for url, path in wanted.items() if url not in self._missing}
        destinations.sweep(folder / path for path in self._left.values())
        self._kept = image_manifest.unchanged(self._left, folder, self._known.images)
        self._unusable: list[str] = []
        self._fetched = 0

    @property
    def settled(self) -> int:
        """How many urls need nothing more."""
        return len(self._kept) + len(self._missing)

    async def run(self, limits: Limits, private: bool, advance: Advance) -> None:
        """Settle all that is left, a few at a time; EnvironmentFailedError where the disk refuses."""
        urls = iter([url for url in self._left if url not in self._kept])
        try:
            async with Fetcher(limits, private=private) as fetcher, asyncio.TaskGroup() as tasks:
                for _ in range(limits.at_once):
                    tasks.create_task(self._settle(urls, fetcher, advance))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    def finish(self) -> Collection:
        """Write the manifest, what is known of other urls in it too, and let go of the journal."""
        kept = {url: one for url, one in self._known.images.items() if url not in self._wanted}
        lost = {url: one for url, one in self._known.missing.items() if url not in self._wanted}
        image_manifest.write(Manifest({**kept, **self._kept}, {**lost, **self._missing}), self._folder)
        self._journal.discard()
        there = len(self._kept) - self._fetched
        return Collection(len(self._wanted), there, self._fetched, self._missing, tuple(self._unusable))

    async def _settle(self, urls: Iterator[str], fetcher: Fetcher, advance: Advance) -> None:
        """Take urls until none is left, each to its image or to the reason why there is none."""
        for url in urls:
            path = self._left[url]
            try:
                kept = Kept(path, await self._obtain(url, path, fetcher))
            except DownloadError as missed:
                self._missing[url] = Lost(path, missed.reason, missed.detail)
            else:
                image_manifest.note(self._journal, url, kept)
                self._kept[url] = kept
            advance(1)

    async def _obtain(self, url: str, path: str, fetcher: Fetcher) -> str:
        """The SHA-256 of the image, which lies under its name then; Missed where it is not to be had."""
        final = self._folder / path
        # One that was noted with another content was changed by somebody, or by a disk.
        if url not in self._known.images and (digest := await self._sound(self._folder, path)):
            return digest
        part = destinations.part_of(final, url)
        destinations.make_room(final, self._folder)
        try:
            if digest := await self._copied(path, part):
                destinations.rename(part, final)
            else:
                digest = await self._fetched_whole(url, part, fetcher)
                destinations.rename(part, final)
                self._fetched += 1
        finally:
            part.unlink(missing_ok=True)
        return digest

    async def _copied(self, path: str, part: Path) -> str:
        """The SHA-256 of the copy of an image that lies beside; '' where none does, or the copy is none."""
        if self._beside is None or not os.path.lexists(self._beside / path):
            return ""
        try:
            await self._inspected(self._beside / path, self._beside)
        except BadImage as error:
            self._unusable.append(str(error))
            return ""
        await asyncio.to_thread(destinations.copy, self._beside / path, part)
        return await self._sound(self._folder, str(part.relative_to(self._folder)))

    async def _sound(self, folder: Path, path: str) -> str:
        """The SHA-256 of an image that lies in a folder; '' where it does not, or is none."""
        if not os.path.lexists(folder / path):
            return ""
        try:
            return await self._inspected(folder / path, folder)
        except BadImage:
            return ""

    async def _fetched_whole(self, url: str, part: Path, fetcher: Fetcher) -> str:
        media = await fetcher.fetch(url, part)
        try:
            return await self._inspected(part, self._folder)
        except BadImage as error:
            problem = str(error).removeprefix(f"{part}: ")
            raise DownloadError("no image", f"{problem}; the server calls it {media}") from None

    async def _inspected(self, path: Path, root: Path) -> str:
        """The SHA-256 of an image that was decoded to its last pixel; BadImage where that fails."""
        return await asyncio.get_running_loop().run_in_executor(self._decoder, _inspect, path, root)


def _inspect(path: Path, root: Path) -> str:
    file = look(ImageRef(str(path), str(root)), {})
    decode(file)
    return file.digest
