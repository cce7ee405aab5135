"""`sightline data pull`: the files of a data set, then the pictures that its records name by url."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from sightline.data.pull import links, pull
from sightline.data.sources import Source

if TYPE_CHECKING:
    from sightline.data.collect import Collection
    from sightline.report.grid import Table


class Pulled(Struct, frozen=True):
    """What was pulled, and where from; `fetched`: not all files were there already.

    `pictures` is what became of those that the records name by url, None where they name none.
    """

    folder: str
    repository: str
    revision: str
    paper: str
    licence: str
    fetched: bool
    pictures: Collection | None


def pull_whole(source: Source, to: Path, origin: str | None, *, private: bool, shown: bool) -> Pulled:
    """Put the data set into `to`, its pictures too; errors as `data.pull.pull` and `data.collect.collect`."""
    folder, fetched = pull(source, to, origin=origin, shown=shown)
    pictures = None
    if source.links:
        from sightline.data.collect import collect

        beside = Path(origin) if origin is not None and Path(origin).is_dir() else None
        pictures = collect(links(source, folder), folder, beside=beside, private=private, shown=shown)
    return Pulled(
        folder=str(folder),
        repository=source.repository,
        revision=source.revision,
        paper=source.paper,
        licence=source.licence,
        fetched=fetched,
        pictures=pictures,
    )


def print_pulled(pulled: Pulled, *, as_json: bool) -> None:
    """Print what was pulled, with a table of what is missing, or as JSON."""
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(pulled), indent=1).decode())
        return
    there = "" if pulled.fetched else ", there already"
    print(f"{pulled.folder}: {pulled.repository} at {pulled.revision}{there}")
    print(f"  paper: {pulled.paper}")
    print(f"  licence: {pulled.licence}")
    if pulled.pictures is not None:
        _print_pictures(pulled.pictures, pulled.folder)


def _print_pictures(pictures: Collection, folder: str) -> None:
    from sightline.report.terminal import show

    print(
        f"  pictures: {pictures.wanted:,}, of which {pictures.there:,} were there, {pictures.fetched:,} were "
        f"fetched, {len(pictures.missing):,} are missing"
    )
    if pictures.missing:
        print()
        show([_missing(pictures, folder)])


def _missing(pictures: Collection, folder: str) -> Table:
    """The missing pictures by the reason, the commonest first, with one url of each."""
    from sightline.report.grid import Column, Table

    by_reason = defaultdict(list)
    for url, lost in pictures.missing.items():
        by_reason[lost.reason].append(f"{url}: {lost.detail}")
    columns = (
        Column("text", "reason", "reason"),
        Column("count", "pictures", "pictures"),
        Column("text", "the first", "first"),
    )
    ordered = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    rows = tuple((reason, len(urls), urls[0]) for reason, urls in ordered)
    notes = (f"every one of them is listed in {folder}/pictures.json; the same command asks for them again",)
    return Table("missing pictures", columns, rows, notes)
