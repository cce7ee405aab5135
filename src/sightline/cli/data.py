"""`sightline data SUBCOMMAND`: download public data sets; check, describe or make data."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.options import add_options, add_plugins, add_quiet
from sightline.cli.printing import by_reason, output_errors, plain_table, print_json
from sightline.errors import UserError, unknown_name
from sightline.text import counted, print_line, print_note

if TYPE_CHECKING:
    from sightline.benchmarks.base import Release
    from sightline.data.check import DataCheck, ImageFault, SplitCheck
    from sightline.data.describe import DataDescription, VerbCounts
    from sightline.data.image_download import ImageDownload
    from sightline.data.pull import PulledData
    from sightline.reporting.table import ReportTable

EXAMPLE = """examples:
  sightline data pull codis                              into ./data/codis
  sightline data check iibench --data data/iibench --split test
  sightline data describe iibench --data data/iibench    labels, lengths (Table 1 of its paper)
"""


# -- `sightline data pull`: download a data set, then the images that its records, or a table, name by URL

PULL_EXAMPLE = """examples:
  sightline data pull codis                              into ./data/codis
  sightline data pull contextual                         the records, then 506 images by their URLs
  sightline data pull mmr3                               the authors' label files; images are elsewhere
  sightline data pull styles                             weights for `build restyle`, into ./data/styles
  sightline data pull embedder                           weights of all-MiniLM-L6-v2, into ./data/embedder
  sightline data pull iibench --to /srv/data --from II-Bench.tar.gz
  sightline data pull photos.csv                         images of your own table, into ./data/photos/images
"""


def register_pull(parser: argparse.ArgumentParser) -> None:
    parser.epilog = PULL_EXAMPLE
    add = parser.add_argument
    add(
        "source",
        metavar="DATA_SET|TABLE",
        help="codis, iibench, ciibench, contextual, dynamath, hallusionbench, styles or embedder; or a CSV, "
        "TSV, xlsx or JSON Lines file with the column url, and optionally image: the path below images/ "
        "(default: host and path of the URL)",
    )
    add("--to", default="data", metavar="DIR", help="parent folder of the data set (default: data)")
    add(
        "--from",
        dest="origin",
        metavar="URL|PATH",
        help="other source of the repository's .tar.gz at the pinned revision (contextual, mmr3, "
        "styles, embedder: or a folder of the files); its checksum is verified too. For a table: a folder of "
        "its images",
    )
    add(
        "--allow-private",
        action="store_true",
        help="also download images from private addresses (this machine and its network), but never from "
        "link-local addresses and metadata services of clouds",
    )
    add("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute_pull)


def execute_pull(options: argparse.Namespace) -> int:
    """Download the data set or the images of the table; returns 1 if an image is missing."""
    from sightline.benchmarks.registry import benchmark_class
    from sightline.data.pull import EMBEDDER_WEIGHTS, MMR3_LABELS, STYLE_WEIGHTS, releases

    others = (MMR3_LABELS, STYLE_WEIGHTS, EMBEDDER_WEIGHTS)
    known = {**releases(), **{release.name: release for release in others}}
    if options.source in known:
        return _pull_release(known[options.source], options)
    if Path(options.source).is_file():
        return _pull_table(Path(options.source), options)
    if elsewhere := benchmark_class(options.source).elsewhere:
        raise UserError(f"the data of {options.source} are not fetched", expected=f"the files of {elsewhere}")
    raise unknown_name("data set or table", options.source, known)


def _pull_release(release: Release, options: argparse.Namespace) -> int:
    from sightline.data.pull import pull_with_images

    if options.allow_private and not release.image_urls:
        raise UserError(
            f"--allow-private has no effect: {release.name} has no images by URL",
            expected="no --allow-private",
        )
    pulled = pull_with_images(
        release,
        Path(options.to),
        options.origin,
        allow_private=options.allow_private,
        show_progress=not options.quiet,
    )
    if options.json:
        print_json(pulled)
    else:
        _print_pulled(pulled)
    return 1 if pulled.images and pulled.images.missing else 0


def _pull_table(table: Path, options: argparse.Namespace) -> int:
    from sightline.data.image_download import pull_table

    origin = Path(options.origin) if options.origin is not None else None
    if origin is not None and not origin.is_dir():
        raise UserError("is not a folder", file=origin, expected="--from FOLDER with images of the table")
    pulled = pull_table(
        table,
        Path(options.to),
        origin,
        allow_private=options.allow_private,
        show_progress=not options.quiet,
    )
    if options.json:
        print_json(pulled)
    else:
        with output_errors():
            print_line(f"{pulled.folder}: images of {pulled.table}")
            _print_images(pulled.images, pulled.folder)
        _print_unusable(pulled.images)
    return 1 if pulled.images.missing else 0


def _print_pulled(pulled: PulledData) -> None:
    present = "" if pulled.fetched else ", already present"
    with output_errors():
        print_line(f"{pulled.folder}: {pulled.repository} at {pulled.revision}{present}")
        print_line(f"  paper: {pulled.paper}")
        print_line(f"  licence: {pulled.licence}")
        for line in pulled.elsewhere:
            print_line(f"  not in it: {line}")
        if pulled.images is not None:
            _print_images(pulled.images, pulled.folder)
    if pulled.images is not None:
        _print_unusable(pulled.images)


def _print_unusable(images: ImageDownload) -> None:
    for problem in images.unusable:
        print_note(f"not usable: {problem}")


def _print_images(images: ImageDownload, folder: str) -> None:
    from sightline.reporting.table import show

    print_line(
        f"  images: {images.requested:,}; present {images.present:,}, downloaded {images.downloaded:,}, "
        f"missing {len(images.missing):,}"
    )
    if images.missing:
        print_line()
        show([_missing(images, folder)])


def _missing(images: ImageDownload, folder: str) -> ReportTable:
    """The missing images by reason, the most frequent first, with one URL each."""
    named = ((f"{url}: {failure.detail}", failure.reason) for url, failure in images.missing.items())
    ordered = sorted(by_reason(named).items(), key=lambda item: -len(item[1]))
    rows = ((reason, len(urls), urls[0]) for reason, urls in ordered)
    note = f"{folder}/image_manifest.json lists all of them; run the same command to try again"
    return plain_table("missing images", ("reason", "#images", "the first"), rows, [note])


# -- `sightline data check`: verify the records and images of a data folder

CHECK_EXAMPLE = """examples:
  sightline data check codis --data data/codis
  sightline data check iibench --data data/iibench --split test
  sightline data check groups:mine.jsonl
"""

MOST_PRINTED = 10
"""How many faults of a kind are printed."""


def register_check(parser: argparse.ArgumentParser) -> None:
    parser.epilog = CHECK_EXAMPLE
    add_folder(parser)
    parser.set_defaults(execute=execute_check)


def execute_check(options: argparse.Namespace) -> int:
    """Check the folder; returns 1 if an image is missing or broken."""
    from sightline.cli.printing import print_json, print_tables
    from sightline.data.check import check_data

    release, folder = release_of(options)
    found = check_data(release, folder, options.split, show_progress=not options.quiet)
    if options.json:
        print_json(found)
    else:
        print_tables([_table(found, split) for split in found.splits], "table")
    _list_faults(found)
    return 0 if found.sound else 1


def _table(found: DataCheck, split: SplitCheck) -> ReportTable:
    labels = split.labels.items()
    rows = ((label, value, count) for label, values in labels for value, count in values.items())
    title = f"{found.benchmark} {split.split}, {found.folder}"
    noun = "samples" if split.group_sizes is None else "lines"
    return plain_table(title, ("label", "value", f"#{noun}"), rows, [*_notes(split, noun)])


def _without_consistency(single: int) -> str:
    return f"no consistency, which compares the lines of a group: {counted(single, 'group')} of one line"


def _notes(split: SplitCheck, noun: str) -> Iterator[str]:
    yield (f"{split.samples:,} {noun}, {split.images:,} image files, {split.clusters:,} distinct images")
    if split.cluster_sizes:
        sizes = ", ".join(f"{size} ({count:,} images)" for size, count in split.cluster_sizes.items())
        yield f"{noun} by cluster size ({noun} with the same image): {sizes}"
    if split.group_sizes is None:
        yield from _against_release(split)
    else:
        sizes = ", ".join(f"{size} ({count:,})" for size, count in split.group_sizes.items())
        yield f"{sum(split.group_sizes.values()):,} groups, by their number of lines: {sizes}"
    if split.group_sizes and 1 in split.group_sizes:
        yield _without_consistency(split.group_sizes[1])
    if split.group_sizes and split.without_reference:
        yield f"neither right nor wrong, without a reference: {counted(split.without_reference, 'line')}"
    yield (
        f"{len(split.missing):,} images missing, {len(split.broken):,} broken, "
        f"{sum(len(paths) for paths in split.duplicates):,} files with the content of another"
    )


def _against_release(split: SplitCheck) -> list[str]:
    if split.published_samples is None:
        return [f"{split.file} is not part of the release, there is nothing to compare it with"]
    equal = "equal" if split.as_published else "different"
    if split.published_clusters is None:
        return [f"the release has {split.published_samples:,} samples: {equal}; its digests are not known"]
    return [
        f"the paper counts {split.published_samples:,} samples and {split.published_clusters:,} distinct "
        f"images: {equal}",
        f"{split.file} {'is' if split.released else 'differs from'} the pinned release",
    ]


def _list_faults(found: DataCheck) -> None:
    for split in found.splits:
        _print_faults("missing", split.missing)
        _print_faults("broken", split.broken)
    if found.unreferenced:
        names = ", ".join(found.unreferenced[:MOST_PRINTED])
        more = (
            f" and {len(found.unreferenced) - MOST_PRINTED:,} more"
            if len(found.unreferenced) > MOST_PRINTED
            else ""
        )
        print_note(f"{len(found.unreferenced):,} files without a record: {names}{more}")


def _print_faults(kind: str, faults: list[ImageFault]) -> None:
    for fault in faults[:MOST_PRINTED]:
        print_note(f"{kind}: {fault.image} ({', '.join(fault.samples)}): {fault.problem}")
    if len(faults) > MOST_PRINTED:
        print_note(f"{kind}: and {len(faults) - MOST_PRINTED:,} more")


# -- `sightline data describe`: print tables of the samples, labels, texts and verbs of a data set

DESCRIBE_EXAMPLE = """examples:
  sightline data describe iibench --data data/iibench    labels, lengths (Table 1 of its paper)
  sightline data describe contextual --data data/contextual --split val --json
  sightline data describe groups:mine.jsonl
  sightline data describe groups:data/mmr3               its tasks (Table 1 of MM-R3), masks and styles
"""

MOST_VALUES = 30
"""Of a label with more values only the number of values is printed."""


def register_describe(parser: argparse.ArgumentParser) -> None:
    parser.epilog = DESCRIBE_EXAMPLE
    add_folder(parser)
    parser.set_defaults(execute=execute_describe)


def execute_describe(options: argparse.Namespace) -> int:
    from sightline.data.describe import describe_data
    from sightline.reporting.table import show

    release, folder = release_of(options)
    found = describe_data(release, folder, options.split, show_progress=not options.quiet)
    if options.json:
        print_json(found)
    else:
        show([_labels(found), _lengths(found), *([_verbs(found.verbs)] if found.verbs else [])])
    return 0


def _labels(found: DataDescription) -> ReportTable:
    from sightline.reporting.table import Column, ReportTable, Value

    columns = (
        Column("text", "label", "label"),
        Column("text", "value", "value"),
        Column("count", "samples", "samples"),
        Column("count", "images", "images"),
        Column("value", "% of the\nlabel's", "percent"),
    )
    listed = {label: values for label, values in found.labels.items() if len(values) <= MOST_VALUES}
    rows = tuple(
        (label, value, share.samples, share.images, Value(share.percent))
        for label, values in listed.items()
        for value, share in values.items()
    )
    splits = ", ".join(f"{name} {samples:,}" for name, samples in found.splits.items())
    groups = ", ".join(f"{name} {number:,}" for name, number in found.groups.items())
    notes = [
        *([f"{sum(found.groups.values()):,} groups ({groups})"] if groups else []),
        f"{found.samples:,} samples ({splits}), {found.images:,} different images",
        *(
            [f"{found.unreadable_images:,} images could not be read and are counted by name"]
            if found.unreadable_images
            else []
        ),
        *(
            f"not shown: {label} with {len(values):,} values"
            for label, values in found.labels.items()
            if label not in listed
        ),
    ]
    return ReportTable(f"{found.benchmark}, {found.folder}", columns, rows, tuple(notes))


def _lengths(found: DataDescription) -> ReportTable:
    from sightline.reporting.table import Column, ReportTable, Value

    columns = (
        Column("text", "text", "text"),
        Column("count", "number", "number"),
        Column("value", "words,\non average", "words"),
        Column("value", "characters,\non average", "characters"),
    )
    rows = tuple(
        (kind, length.texts, Value(length.words), Value(length.characters))
        for kind, length in found.lengths.items()
    )
    return ReportTable("lengths", columns, rows)


def _verbs(verbs: VerbCounts) -> ReportTable:
    rows = (
        (verb, times, ", ".join(f"{noun} {often}" for noun, often in nouns))
        for verb, times, nouns in verbs.top
    )
    notes = (
        f"{verbs.different:,} different verbs in {verbs.commands:,} commands; {verbs.others:,} other "
        "instructions, mostly questions, have none",
        "verbs are found by closed word classes, without a parser",
    )
    return plain_table("the most frequent verbs", ("verb", "#times", "its nouns"), rows, notes)


# -- `sightline data groups`: make a groups file of a table

GROUPS_EXAMPLE = """examples:
  sightline data groups questions.csv --group scene --prompt question --image file --references answer
  sightline data groups MMBench_DEV_EN.tsv               a table of VLMEvalKit, whose columns are known
  sightline data groups hub.parquet --group id --variant style --prompt question --image image
"""


def register_groups(parser: argparse.ArgumentParser) -> None:
    parser.epilog = GROUPS_EXAMPLE
    add = parser.add_argument
    add("table", metavar="TABLE", help="CSV, TSV, xlsx, JSON, JSON Lines or Parquet file")
    add(
        "--group",
        default="",
        metavar="COLUMN",
        help="rows with the same cell are one group (in a table of VLMEvalKit, default: index)",
    )
    add(
        "--prompt",
        default="",
        metavar="COLUMN",
        help="the text that is sent after the images (in a table of VLMEvalKit, default: its prompt, of "
        "hint, question and options)",
    )
    add(
        "--image",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="the images: paths, base64, or the images of a Parquet file; a cell may hold a list",
    )
    add("--variant", default="", metavar="COLUMN", help="name of the row in its group (default: its number)")
    add(
        "--options",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="the options: a column each, or one column of lists",
    )
    add(
        "--references",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="right answers: texts, lists of texts, or letters of the options",
    )
    add("--labels", nargs="+", default=[], metavar="COLUMN", help="labels that break results down")
    add("--images", metavar="DIR", help="folder to which paths of images are relative (default: the table's)")
    add("--to", default="data", metavar="DIR", help="parent folder of the new folder (default: data)")
    add("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute_groups)


def execute_groups(options: argparse.Namespace) -> int:
    """Make the groups file; returns 1 if a row is left out."""
    from sightline.data.groups_table import Columns, make_groups, reasons_of
    from sightline.reporting.table import show

    table = Path(options.table)
    made = make_groups(
        table,
        Columns(
            options.group,
            options.prompt,
            tuple(options.image),
            options.variant,
            tuple(options.options),
            tuple(options.references),
            tuple(options.labels),
        ),
        Path(options.to) / table.name.partition(".")[0],
        Path(options.images) if options.images is not None else None,
        show_progress=not options.quiet,
    )
    if options.json:
        print_json(made)
        return 1 if made.left_out else 0
    with output_errors():
        print_line(
            f"{made.file}: {counted(made.groups, 'group')}, {counted(made.lines, 'line')}, "
            f"{counted(made.images, 'image')} of {counted(made.rows, 'row')}"
        )
        if made.left_out:
            print_line()
            title = f"{counted(len(made.left_out), 'row')} left out"
            show([plain_table(title, ("reason", "#rows", "the first"), reasons_of(made.left_out), [])])
    if made.single:
        print_note(_without_consistency(made.single))
    print_note(f"next: sightline run groups:{made.file} --model MODEL --dry-run")
    return 1 if made.left_out else 0


# -- `sightline data unpack`: make records and images of Parquet files

UNPACK_EXAMPLE = """examples:
  sightline data unpack test-*.parquet --name bivlc      into ./data/bivlc
  sightline data unpack hub.parquet && sightline data groups data/hub/records.jsonl --group id \\
      --prompt question --image image --to made
"""


def register_unpack(parser: argparse.ArgumentParser) -> None:
    parser.epilog = UNPACK_EXAMPLE
    add = parser.add_argument
    add("tables", nargs="+", metavar="FILE", help="Parquet files, the parts of one data set in their order")
    add("--name", metavar="NAME", help="name of the new folder (default: that of the first file)")
    add("--to", default="data", metavar="DIR", help="parent folder of the new folder (default: data)")
    add("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute_unpack)


def execute_unpack(options: argparse.Namespace) -> int:
    from sightline.data.groups_table import unpack_tables

    tables = [Path(name) for name in options.tables]
    name = options.name or tables[0].name.partition(".")[0]
    made = unpack_tables(tables, Path(options.to) / name, show_progress=not options.quiet)
    if options.json:
        print_json(made)
    else:
        with output_errors():
            print_line(f"{made.file}: {counted(made.records, 'record')}, {counted(made.images, 'image')}")
    return 0


# -- `sightline data pack`: make a data set for others of a groups file

PACK_EXAMPLE = """examples:
  sightline data pack built/groups.jsonl --out packed/mine   data/test.parquet, README.md and croissant.json
  sightline data unpack packed/mine/data/test.parquet --name again
"""


def register_pack(parser: argparse.ArgumentParser) -> None:
    parser.epilog = PACK_EXAMPLE
    add = parser.add_argument
    add("groups", metavar="FILE", help="a groups file, such as `build` and `data groups` write")
    add("--out", required=True, metavar="DIR", help="the new folder; its name is that of the data set")
    add("--split", type=_split, default="test", metavar="S", help="name of the split (default: test)")
    add("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    parser.set_defaults(execute=execute_pack)


def _split(name: str) -> str:
    if not re.fullmatch(r"\w+(\.\w+)*", name):  # as `datasets` takes it
        raise argparse.ArgumentTypeError("letters, digits, _ and dots between them")
    return name


def execute_pack(options: argparse.Namespace) -> int:
    from sightline.data.groups_table import pack_groups

    made = pack_groups(
        Path(options.groups), Path(options.out), options.split, show_progress=not options.quiet
    )
    if options.json:
        print_json(made)
    else:
        held = (counted(made.groups, "group"), counted(made.lines, "line"), counted(made.images, "image"))
        with output_errors():
            print_line(f"{made.folder}: {', '.join(held)}")
        print_note("its README.md names no licence and no origin: add them before you share it")
        print_note("its images are the files as they are, with their EXIF data, such as the place of a photo")
    return 0


# -- The options that `data check` and `data describe` share


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add the data folder that is read, and how its description is printed."""
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        help="codis, iibench, ciibench, contextual, dynamath, hallusionbench, mmvp, naturalbench, bivlc, "
        "conbench or groups:FILE",
    )
    add_options(parser, ["data"])
    parser.add_argument("--split", metavar="S", help="only this split (default: all that exist)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_quiet(parser)
    add_plugins(parser)


def release_of(options: argparse.Namespace) -> tuple[Release, Path | None]:
    """Find the data set of `add_folder` and its folder: that of the groups file, --data or SIGHTLINE_DATA."""
    from sightline.benchmarks.registry import is_benchmark
    from sightline.data.pull import GROUPS, checked_releases, groups_release
    from sightline.errors import unknown_name
    from sightline.evaluation.spec import Spec, spec_data_folder

    known = checked_releases()
    name, _, file = options.benchmark.partition(":")
    if name == GROUPS and file:
        if options.data is not None:
            raise UserError("--data has no effect: groups:FILE names its file", expected="no --data")
        return groups_release(Path(file))
    if options.benchmark not in known:
        if is_benchmark(options.benchmark):
            raise UserError(
                f"{options.benchmark} names no public data set",
                expected=f"groups:FILE or {', '.join(sorted(known))}",
            )
        raise unknown_name("data set", options.benchmark, known)
    return known[options.benchmark], spec_data_folder(Spec(task=options.benchmark, data=options.data))


SUBCOMMANDS = {
    "pull": (
        register_pull,
        "download a data set, checked against its pinned revision, or the images of a table of URLs",
    ),
    "check": (register_check, "verify the records and images of a data folder; compare it with the release"),
    "groups": (register_groups, "make a groups file of a table with images, and list the rows left out"),
    "unpack": (register_unpack, "make records and an images folder of the Parquet files of a data set"),
    "pack": (register_pack, "make a data set of a groups file: Parquet with images, a card, Croissant"),
    "describe": (register_describe, "count the samples, labels, lengths and verbs of a data folder"),
}
