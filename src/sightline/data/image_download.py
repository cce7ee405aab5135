"""Downloads the images that a data set names by URL: a few at a time, each once, every failure recorded.

An image gets its final name only when it is complete and was decoded to its last pixel. During the download
the folder's journal records each finished image. At the end `image_manifest.json` lists every image with its
SHA-256, and every URL that failed with the reason. After a kill the same call continues: unchanged images are
not requested again, and partial downloads start anew.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from sightline.data.download_error import DownloadError
from sightline.data.image_fetcher import FetchLimits, ImageFetcher
from sightline.data.image_files import (
    copy_image,
    create_parent,
    move_to_final,
    partial_path,
    refused_paths,
    remove_partial_files,
)
from sightline.data.image_manifest import (
    ImageManifest,
    MissingImage,
    StoredImage,
    add_to_journal,
    begin_journal,
    read_image_manifest,
    unchanged_images,
    write_image_manifest,
)
from sightline.formats.journal import Journal
from sightline.images import BadImage, decode, inspect_image
from sightline.progress import Advance, progress
from sightline.types import ImageRef


class ImageDownload(Struct, frozen=True):
    """The result of a download.

    `requested` counts URLs, `present` images that were on disk before or were copied from another folder,
    `downloaded` all others. `missing` are the failed URLs; `unusable` says why images of the other folder
    were not copied.
    """

    requested: int
    present: int
    downloaded: int
    missing: Mapping[str, MissingImage]
    unusable: tuple[str, ...] = ()


def download_images(
    requested: Mapping[str, str],
    folder: Path,
    *,
    copy_from: Path | None = None,
    allow_private: bool = False,
    limits: FetchLimits | None = None,
    show_progress: bool = False,
) -> ImageDownload:
    """Download images into a data folder; a failed URL does not stop the others.

    Args:
        limits: Limits on time, size and load; None for the defaults.
    """
    with (
        warnings.catch_warnings(),
        Journal(folder, "--to") as journal,
        # One thread, so that only one image at a time is decoded in memory.
        ThreadPoolExecutor(1) as decoder,
    ):
        # Pillow warns about images that are large but within our limits.
        warnings.simplefilter("ignore")
        downloads = _Downloads(requested, _Folders(folder, copy_from), journal, decoder)
        with progress(
            "images", len(requested), "images", done=downloads.settled, show_progress=show_progress
        ) as advance:
            asyncio.run(downloads.run(limits or FetchLimits(), allow_private, advance))
        return downloads.finish()


class _Folders(NamedTuple):
    """The data folder, and the folder to copy images from."""

    data: Path
    copy_from: Path | None


class _Downloads:
    """The images of one call: those on disk, those that failed, and those still to do."""

    def __init__(
        self,
        requested: Mapping[str, str],
        folders: _Folders,
        journal: Journal,
        decoder: ThreadPoolExecutor,
    ) -> None:
        self._requested, self._folder, self._copy_from = requested, folders.data, folders.copy_from
        self._journal, self._decoder = journal, decoder
        begin_journal(journal)
        self._recorded = read_image_manifest(self._folder, journal)
        self._missing = dict(refused_paths(requested))
        self._paths = {url: path for url, path in requested.items() if url not in self._missing}
        remove_partial_files(self._folder / path for path in self._paths.values())
        self._stored = unchanged_images(self._paths, self._folder, self._recorded.images)
        self._unusable: list[str] = []
        self._downloaded = 0

    @property
    def settled(self) -> int:
        """The number of URLs that need no more work."""
        return len(self._stored) + len(self._missing)

    async def run(self, limits: FetchLimits, allow_private: bool, advance: Advance) -> None:
        """Process all remaining URLs, a few at a time. Raises EnvironmentFailedError if the disk fails."""
        urls = iter([url for url in self._paths if url not in self._stored])
        try:
            async with (
                ImageFetcher(limits, allow_private=allow_private) as fetcher,
                asyncio.TaskGroup() as tasks,
            ):
                for _ in range(limits.concurrency):
                    tasks.create_task(self._process(urls, fetcher, advance))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    def finish(self) -> ImageDownload:
        """Write the manifest, keep its entries of other URLs, and remove the journal."""
        images = {url: result for url, result in self._recorded.images.items() if url not in self._requested}
        missing = {
            url: result for url, result in self._recorded.missing.items() if url not in self._requested
        }
        manifest = ImageManifest({**images, **self._stored}, {**missing, **self._missing})
        write_image_manifest(manifest, self._folder)
        self._journal.discard()
        return ImageDownload(
            requested=len(self._requested),
            present=len(self._stored) - self._downloaded,
            downloaded=self._downloaded,
            missing=self._missing,
            unusable=tuple(self._unusable),
        )

    async def _process(self, urls: Iterator[str], fetcher: ImageFetcher, advance: Advance) -> None:
        """Take URLs until none is left, and get the image or the reason of the failure for each."""
        for url in urls:
            path = self._paths[url]
            try:
                image = StoredImage(path, await self._obtain(url, path, fetcher))
            except DownloadError as error:
                self._missing[url] = MissingImage(path, error.reason, error.detail)
            else:
                add_to_journal(self._journal, url, image)
                self._stored[url] = image
            advance(1)

    async def _obtain(self, url: str, path: str, fetcher: ImageFetcher) -> str:
        """Put an image at its final path; returns its SHA-256. Raises DownloadError."""
        final = self._folder / path
        # An image with another content than the recorded one was changed, by a user or by a disk.
        if url not in self._recorded.images and (digest := await self._digest_if_sound(self._folder, path)):
            return digest
        partial = partial_path(final, url)
        create_parent(final, self._folder)
        try:
            if digest := await self._copy(path, partial):
                move_to_final(partial, final)
            else:
                digest = await self._fetch(url, partial, fetcher)
                move_to_final(partial, final)
                self._downloaded += 1
        finally:
            partial.unlink(missing_ok=True)
        return digest

    async def _copy(self, path: str, partial: Path) -> str:
        """Copy an image of the other folder; returns its SHA-256, or '' if there is no sound one."""
        if self._copy_from is None or not os.path.lexists(self._copy_from / path):
            return ""
        try:
            await self._verified_digest(self._copy_from / path, self._copy_from)
        except BadImage as error:
            self._unusable.append(str(error))
            return ""
        await asyncio.to_thread(copy_image, self._copy_from / path, partial)
        return await self._digest_if_sound(self._folder, str(partial.relative_to(self._folder)))

    async def _digest_if_sound(self, folder: Path, path: str) -> str:
        """The SHA-256 of an image in a folder, or '' if it is missing or broken."""
        if not os.path.lexists(folder / path):
            return ""
        try:
            return await self._verified_digest(folder / path, folder)
        except BadImage:
            return ""

    async def _fetch(self, url: str, partial: Path, fetcher: ImageFetcher) -> str:
        media_type = await fetcher.fetch(url, partial)
        try:
            return await self._verified_digest(partial, self._folder)
        except BadImage as error:
            problem = str(error).removeprefix(f"{partial}: ")
            raise DownloadError("not an image", f"{problem}; the server calls it {media_type}") from None

    async def _verified_digest(self, path: Path, root: Path) -> str:
        """Decode an image to its last pixel; returns its SHA-256. Raises BadImage."""
        return await asyncio.get_running_loop().run_in_executor(self._decoder, _decoded_digest, path, root)


def _decoded_digest(path: Path, root: Path) -> str:
    file = inspect_image(ImageRef(str(path), str(root)), {})
    decode(file)
    return file.digest
