"""What papers released: records, read and checked; the figures that they printed, and those beside a run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.errors import UserError, did_you_mean, unknown_name
from sightline.formats.files import json_digest, read_bytes
from sightline.images import BadImage, inspect_image
from sightline.text import UNDECODABLE, fault, json_records
from sightline.types import ImageFile, ImageRef, MetricValue, Probe, PublishedValue, Result, Sample

Record = TypeVar("Record")

UNPACKED = "records.jsonl"
"""The file of records that `sightline data unpack` writes."""

_MISSING = re.compile(r"missing required field `([^`]+)`")


def read_records(
    path: Path, kind: type[Record], *, name: str, renamed: tuple[str, str] | None = None
) -> list[Record]:
    """Read a JSON list or JSON Lines.

    `renamed`: the name that a field has in another revision of the data, and its name in `kind`.
    """
    content = read_bytes(path)
    if renamed is not None:
        # Within a text, JSON escapes the quotes.
        old, new = (f'"{one}"'.encode() for one in renamed)
        content = content.replace(old, new)
    try:
        if content.lstrip().startswith(b"["):
            return msgspec.json.decode(content, type=list[kind])  # type: ignore[valid-type]
        return msgspec.json.Decoder(kind).decode_lines(content)
    except UNDECODABLE as error:
        for where, record in json_records(content, path):
            _check(path, where, record, kind, name)
        # Of a field that a record has twice, the last value counts above.
        raise UserError(f"is not in the released layout ({fault(error)})", file=path) from None


def read_records_by_id(path: Path, kind: type[Record]) -> dict[str, Record]:
    """Read a JSON object that holds each record under its id."""
    content = read_bytes(path)
    try:
        return msgspec.json.decode(content, type=dict[str, kind])  # type: ignore[valid-type]
    except UNDECODABLE as error:
        for where, records in json_records(content, path):
            for name, record in records.items():
                if not isinstance(record, dict):
                    raise UserError(
                        "holds no record",
                        file=path,
                        record=where,
                        field=name,
                        found="null" if record is None else record,
                        expected="an object that holds each record, an object too, under its id",
                    ) from None
                _check(path, name, record, kind, "")
        raise UserError(f"is not in the released layout ({fault(error)})", file=path) from None


def refuse_repeated_ids(path: Path, ids: Sequence[str]) -> None:
    seen: dict[str, int] = {}
    for number, name in enumerate(ids):
        if name in seen:
            raise UserError(
                "this id occurs twice",
                file=path,
                record=name,
                field="id",
                found=f"records {seen[name] + 1} and {number + 1} of the file",
                expected="each id once",
            )
        seen[name] = number


def data_folder(folder: Path | None, benchmark: str, file: str) -> Path:
    """Find the folder that holds a file: the user's data folder, or its subfolder named after the benchmark.

    `folder`: the user's data folder, or None.
    """
    elsewhere = benchmark_class(benchmark).elsewhere
    source = f"the files of {elsewhere}" if elsewhere else f"`sightline data pull {benchmark}`"
    if folder is None:
        raise UserError(
            f"no data folder for {benchmark}",
            expected=f"--data DIR or SIGHTLINE_DATA with {file}: {source}",
        )
    for candidate in (folder, folder / benchmark):
        if (candidate / file).is_file():
            return candidate
    problem = f"{file} is not in this folder" if folder.is_dir() else "this data folder does not exist"
    raise UserError(problem, file=folder, expected=f"a folder with {file}: {source}")


def _check(path: Path, where: str, record: dict[str, Any], kind: type[Any], name: str) -> None:
    """Raise UserError if a record does not fit its struct; it names the record, the field and the fault."""
    try:
        msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        message, _, position = str(error).partition(" - at `$")
        missing = _MISSING.search(message)
        inside = position.strip("`.")
        field = ".".join(part for part in (inside, missing.group(1) if missing else "") if part)
        named = record.get(name)
        raise UserError(
            message[0].lower() + message[1:],
            file=path,
            record=str(named) if isinstance(named, str | int) else where,
            field=field or None,
            expected="the released layout",
        ) from None


# -- Image captions from a file, which a setting sends instead of the images


def read_captions(file: str | None, needed: bool) -> dict[str, str]:
    """Read captions: a JSON object {image id: caption}, or records of image_id and caption.

    `file`: the file, or None if the user named none.
    """
    if not needed:
        return {}
    if file is None:
        raise UserError(
            "the setting sends captions instead of images and has none",
            expected="--set captions=FILE, which `sightline build caption` writes",
        )
    path = Path(file)
    rows = json_records(read_bytes(path), path)
    if len(rows) == 1 and "caption" not in rows[0][1]:
        pairs = [(name, _text(rows[0][1], name, path, name)) for name in rows[0][1]]
    else:
        pairs = [
            (_text(row, "image_id", path, where), _text(row, "caption", path, where)) for where, row in rows
        ]
    refuse_repeated_ids(path, [name for name, _ in pairs])
    return dict(pairs)


def _text(record: Mapping[str, Any], name: str, path: Path, where: str) -> str:
    """A field of a record; UserError if it is missing or is no text."""
    if name not in record:
        raise UserError(
            f"lacks {name}{did_you_mean(name, record)}",
            file=path,
            record=where,
            found=", ".join(record),
            expected="image_id and caption",
        )
    if not isinstance(record[name], str):
        raise UserError(
            "is not a text", file=path, record=where, field=name, found=record[name], expected="a text"
        )
    return str(record[name])


# -- Clusters: the samples that show the same image, which are one independent unit of confidence
#    intervals


def cluster_of(sample: Sample, files: Mapping[str, ImageFile | BadImage]) -> str:
    if sample.cluster is not None or not sample.images:
        return sample.cluster or sample.id
    image = sample.images[0]
    file = files.get(image.path)
    if isinstance(file, ImageFile):
        return file.digest
    return f"file {os.path.relpath(image.path, image.root or os.path.dirname(image.path))}"


def clusters_of_images(images: Sequence[Sequence[str]]) -> list[str]:
    """The cluster of each sample that shows these images: those joined by shared images, in a chain or not.

    >>> clusters_of_images([("a", "b"), ("c", "d"), ("d", "e"), ("e", "a")])
    ['images of 0', 'images of 0', 'images of 0', 'images of 0']
    >>> clusters_of_images([("a", "b"), ("c", "d"), ("d", "a2")])
    ['images of 0', 'images of 1', 'images of 1']
    """
    first_with: dict[str, int] = {}
    joined: list[int] = []

    def root(number: int) -> int:
        while joined[number] != number:
            joined[number] = number = joined[joined[number]]
        return number

    for number, shown in enumerate(images):
        joined.append(number)
        for image in shown:
            one, other = root(number), root(first_with.setdefault(image, number))
            joined[max(one, other)] = min(one, other)
    return [f"images of {root(number)}" for number in range(len(images))]


def inspect_sample(sample: Sample, probes: Iterable[Probe] = ()) -> Mapping[str, ImageFile | BadImage]:
    """Inspect the image that names the cluster of a sample, and the images that judges see; uses no store."""
    files: dict[str, ImageFile | BadImage] = {}
    evidence = (image for probe in probes for image in probe.evidence)
    for image in dict.fromkeys([*cluster_images(sample), *evidence]):
        try:
            files[image.path] = inspect_image(image, {})
        except BadImage as error:
            files[image.path] = error
    return files


def cluster_images(sample: Sample) -> tuple[ImageRef, ...]:
    return sample.images[:1] if sample.cluster is None else ()


# -- The figures that papers printed

FigureKey = tuple[str, str]
"""Metric and subset, spelled as in metrics.json: ('acc_p', 'category=Attributes')."""


class PublishedJudges(Struct, frozen=True):
    """A printed table of humans, judges and text metrics; `note` says on which answers.

    `rows` are judges and text metrics with the statistics that `columns` name, as in a judge report: roc_auc
    in percent, spearman from -1 to 1. Or they are models, and `columns` say who accepts how many of their
    answers, in percent, and the names of text metrics.
    """

    table: str
    note: str
    columns: list[str]
    rows: dict[str, list[float]]


class PublishedErrors(Struct, frozen=True):
    """The printed share in percent of each error among the wrong answers of a model (`row`)."""

    table: str
    row: str
    shares: dict[str, float]


class MarkedCell(Struct, frozen=True, array_like=True):
    """A cell with a footnote."""

    value: float
    mark: str


class Footnote(Struct, frozen=True):
    """The footnote of a cell; `options` are those of the cell that differ from the rest of its row."""

    text: str
    comparable: bool = False
    options: dict[str, Any] = field(default_factory=dict)


class FigureColumn(Struct, frozen=True, array_like=True):
    """What a column holds.

    `n` is what its cells average over according to the paper (a share should be k/n), 0 if the paper does
    not say.
    """

    setting: str
    metric: str
    subset: str
    n: int
    mark: str | None = None


class PublishedTable(Struct, frozen=True):
    """A printed table, without the cells that an earlier table holds: those of the columns `repeats`.

    With `counts`, the cells are counts of n and not percent. `note` and `comparable` apply to the cells
    without a footnote.
    """

    table: str
    columns: list[FigureColumn]
    rows: dict[str, list[float | MarkedCell | None]]
    note: str | None = None
    comparable: bool = True
    counts: bool = False
    footnotes: dict[str, Footnote] = field(default_factory=dict)
    repeats: list[tuple[str, str, str]] = field(default_factory=list)
    """Setting, metric and subset. A cell that differs from the earlier one is in `columns` too."""

    def repeated(self, row: str) -> list[tuple[str, str, str]]:
        """List the repeated columns whose cell in a row equals that of an earlier table."""
        cells = zip(self.columns, self.rows.get(row, ()), strict=row in self.rows)
        own = [(one.setting, one.metric, one.subset) for one, cell in cells if cell is not None]
        return [key for key in self.repeats if row in self.rows and key not in own]

    def prints(self, metric: str) -> list[str]:
        """List the settings of which the table prints a metric over all samples."""
        columns = [*self.repeats, *((one.setting, one.metric, one.subset) for one in self.columns)]
        return list(dict.fromkeys(one for one, name, of in columns if (name, of) == (metric, "all")))


class PublishedSetting(Struct, frozen=True):
    """What the paper ran: the number of samples, and the options that distinguish the setting."""

    samples: int
    options: dict[str, Any]


class Paper(Struct, frozen=True):
    """A paper: its row of humans, if it has one, its further rows of humans, what it ran, its tables.

    `options` hold for all its figures, `row_options` for those of a row. `concerns` lists the metrics that
    an option affects, where it does not affect all. An option within another one is written
    'sampling.temperature'. `whole` names the metrics whose n must equal the n of the column, unless a unit
    has no answer key or was not decided. `equivalence` maps a builder to the share of its variants that
    humans found equivalent to their originals.
    """

    paper: str
    unit: str
    options: dict[str, Any]
    settings: dict[str, PublishedSetting]
    tables: list[PublishedTable]
    human: str | None = None
    other_humans: list[str] = field(default_factory=list)
    row_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    concerns: dict[str, list[str]] = field(default_factory=dict)
    whole: list[str] = field(default_factory=list)
    judges: PublishedJudges | None = None
    responders: PublishedJudges | None = None
    errors: PublishedErrors | None = None
    equivalence: dict[str, PublishedValue] = field(default_factory=dict)

    @property
    def row_names(self) -> list[str]:
        """The rows of all tables in printed order, each once."""
        return list(dict.fromkeys(row for table in self.tables for row in table.rows))

    @property
    def human_rows(self) -> list[str]:
        """The rows of humans: the one that stands beside every result, then the others."""
        return [*([self.human] if self.human else []), *self.other_humans]

    def row(self, name: str) -> str:
        """Find a row by its name in any case and punctuation."""
        for printed in self.row_names:
            if _plain(printed) == _plain(name):
                return printed
        raise unknown_name(f"row of {self.paper}:", name, self.row_names)

    def figures(self, setting: str, row: str) -> dict[FigureKey, list[Figure]]:
        """List the figures of a row in a setting, which is named as in the paper."""
        figures: dict[FigureKey, list[Figure]] = {}
        repeated = [(key, table.table) for table in self.tables for key in table.repeated(row)]
        for table in self.tables:
            for column, cell in zip(table.columns, table.rows.get(row, ()), strict=row in table.rows):
                if setting == column.setting and cell is not None:
                    key = (column.metric, column.subset)
                    figure = _figure(self, row, table, column, cell)
                    if key not in figures:
                        also = tuple(later for where, later in repeated if where == (setting, *key))
                        figure = replace(figure, value=replace(figure.value, also=also))
                    figures.setdefault(key, []).append(figure)
        return figures


class Figure(Struct, frozen=True):
    """A printed figure with its conditions.

    `n` is what its column averages over (0: unknown). `samples` and `options` are those of the paper's run.
    """

    value: PublishedValue
    n: int
    samples: int
    options: dict[str, Any]


def paper_of(benchmark: str) -> Paper | None:
    """Read the figures of a benchmark's paper; None if it is not installed or declares no figures."""
    file = benchmark_class(benchmark).published
    return None if file is None else _read(file)


def papers() -> list[str]:
    return [name for name in benchmark_names() if benchmark_class(name).published is not None]


def published(benchmark: str, setting: str, row: str) -> dict[FigureKey, list[PublishedValue]]:
    """Look up the figures that a paper printed for a row in a setting, in percent.

    CODIS prints acc_p and acc_q twice, judged by humans (Table 3, first) and by GPT-4 (Table 10).
    """
    paper = paper_of(benchmark)
    if paper is None:
        raise no_figures(benchmark)
    figures = paper.figures(setting, paper.row(row))
    return {key: [figure.value for figure in printed] for key, printed in figures.items()}


def rows(benchmark: str) -> list[str]:
    """List the rows of a benchmark's paper in printed order; none if there is no paper."""
    paper = paper_of(benchmark)
    return [] if paper is None else paper.row_names


def published_judges(benchmark: str) -> PublishedJudges | None:
    """Look up how the paper's judges and metrics agree with its humans; None if it prints no such table."""
    paper = paper_of(benchmark)
    return None if paper is None else paper.judges


def published_responders(benchmark: str) -> PublishedJudges | None:
    """Look up what humans, judges and metrics say of the paper's models; None if it prints no such table."""
    paper = paper_of(benchmark)
    return None if paper is None else paper.responders


def published_errors(benchmark: str) -> PublishedErrors | None:
    """Look up which errors the paper's humans name how often; None if it prints no such figure."""
    paper = paper_of(benchmark)
    return None if paper is None else paper.errors


def published_equivalence(kind: str) -> list[PublishedValue]:
    """The share in percent of variants that humans found equivalent, by each paper that measured it."""
    found = [paper_of(name) for name in papers()]
    return [paper.equivalence[kind] for paper in found if paper is not None and kind in paper.equivalence]


def no_figures(benchmark: str) -> UserError:
    return UserError(
        f"no published figures of '{benchmark}' to compare with", expected=f"one of {', '.join(papers())}"
    )


def joined(*notes: str) -> str | None:
    """Join notes with semicolons; None if there are none."""
    return "; ".join(note for note in notes if note) or None


@cache
def _read(file: Path) -> Paper:
    return msgspec.json.decode(file.read_bytes(), type=Paper)


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _figure(
    paper: Paper, row: str, table: PublishedTable, column: FigureColumn, cell: float | MarkedCell
) -> Figure:
    value, mark = (cell.value, cell.mark) if isinstance(cell, MarkedCell) else (cell, column.mark)
    footnote = table.footnotes[mark] if mark else Footnote(table.note or "", table.comparable)
    counts = f"counts in the paper, here in percent of {column.n} outputs" if table.counts else ""
    printed = PublishedValue(
        row=row,
        value=100 * value / column.n if table.counts else value,
        table=table.table,
        comparable=footnote.comparable,
        note=joined(counts, footnote.text),
    )
    setting = paper.settings[column.setting]
    options = {**paper.options, **paper.row_options.get(row, {}), **setting.options, **footnote.options}
    unaffected = [name for name, metrics in paper.concerns.items() if column.metric not in metrics]
    return Figure(
        printed,
        column.n,
        setting.samples,
        {name: value for name, value in options.items() if name not in unaffected},
    )


# -- Whether samples are those of the paper, by the pinned digests of its released records

DIGITS = 16
"""The number of hexadecimal digits of a pinned digest."""


def record_digest(sample: str, record: Any) -> str:
    return json_digest([sample, record])[:DIGITS]


def foreign_samples(
    benchmark: Benchmark,
    samples: Iterable[str],
    folder: Path | None,
    split: str,
    options: Mapping[str, Any],
) -> list[str]:
    """List the samples whose records the paper did not release in this form.

    A part of the released records, as --limit takes, has no foreign sample.

    Args:
        folder: The data folder, or None.

    Returns:
        The ids, in their order; none for a benchmark that pins no digests.
    """
    if benchmark.released_digests is None:
        return []
    pinned = pinned_digests(benchmark.released_digests)
    records = benchmark.released_records(folder, split, options)
    return [
        name for name in samples if name not in records or record_digest(name, records[name]) not in pinned
    ]


@cache
def pinned_digests(file: Path) -> frozenset[str]:
    return frozenset(msgspec.json.decode(file.read_bytes(), type=list[str]))


# -- The figures of a paper beside the metrics of a run: whether they are comparable

FEW_ERRORS = 0.01
"""The share of probes that may lack an answer, or a verdict, before a figure is no longer comparable."""
NOT_THEIRS: Mapping[str, str] = {
    "synthetic": "the data are synthetic, so published figures are not shown",
    "other_data": "the data are not verifiably those that the paper released, "
    "so published figures are not shown",
}
"""The options that mark data for which the paper printed no figures, and the note for each."""


def add_published(result: Result, *against: str) -> Result:
    """Add the paper's figures to each metric: those of the named rows, then those of humans.

    If the paper prints a figure both for exactly what was run (at this size, this temperature) and for its
    own default, the first counts. A figure is not comparable, and its note says why, if the paper took it
    under other conditions, if this run used other samples or options than the paper, or if too many answers
    are missing. The notes of the result name a row that has no figures for this setting. Data that are not
    the paper's get no figures.

    Args:
        against: Rows of the paper, such as the names of models.
    """
    paper = paper_of(result.benchmark)
    if paper is None:
        if against:
            raise no_figures(result.benchmark)
        return result
    named = [paper.row(row) for row in against]
    not_theirs = next((why for option, why in NOT_THEIRS.items() if result.options.get(option)), None)
    if not_theirs is not None:
        return replace(result, notes=list(dict.fromkeys([*result.notes, not_theirs])))
    ours = _flat(result.options)
    settings = _settings_of(paper, result.setting, ours)
    humans = [paper.human] if paper.human else []
    by_row = {
        row: {key: figures for name in settings for key, figures in paper.figures(name, row).items()}
        for row in dict.fromkeys([*named, *humans])
    }
    silent = [f"{paper.paper}: no figure of {row} for this setting" for row in named if not by_row[row]]
    return replace(
        result,
        metrics=[_beside(metric, list(by_row.values()), paper, result, ours) for metric in result.metrics],
        notes=list(dict.fromkeys([*result.notes, *silent])),
    )


def _settings_of(paper: Paper, run: str, ours: Mapping[str, Any]) -> list[str]:
    """The paper's names for this setting, which options may have made another setting, the most specific
    last. Empty for what it did not run."""
    found = [
        name
        for name, setting in paper.settings.items()
        if _agree(setting.options, {**setting.options, **ours} if name == run else ours)
    ]
    return sorted(found, key=lambda name: len(paper.settings[name].options))


def _agree(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    return all(_same(ours.get(name), value) for name, value in theirs.items())


def _same(ours: Any, theirs: Any) -> bool:
    """Ours may be a text: '224' is 224."""
    return bool(ours == theirs) or (isinstance(ours, str) and ours == str(theirs))


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options by name; those within another one as 'sampling.temperature'."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        within = value if isinstance(value, Mapping) else {}
        flat |= {f"{name}.{inner}": v for inner, v in within.items()} or {name: value}
    return flat


def _beside(
    metric: MetricValue,
    by_row: Sequence[Mapping[FigureKey, Sequence[Figure]]],
    paper: Paper,
    result: Result,
    ours: Mapping[str, Any],
) -> MetricValue:
    figures = [figure for row in by_row for figure in row.get((metric.metric, metric.subset), ())]
    values = [_departed(figure.value, _departure(figure, metric, paper, result, ours)) for figure in figures]
    return replace(metric, published=values or None)


def _departure(
    figure: Figure, metric: MetricValue, paper: Paper, result: Result, ours: Mapping[str, Any]
) -> str:
    """How the conditions of this value differ from those of the paper's figure."""
    others = [
        f"{name.rpartition('.')[2]} {ours[name]} here, {'none' if theirs is None else theirs} in the paper"
        for name, theirs in figure.options.items()
        if ours.get(name) is not None and not _same(ours[name], theirs)
    ]
    if result.samples != figure.samples:
        others.append(f"{result.samples:,} {paper.unit} here, {figure.samples:,} in the paper")
    elif metric.metric in paper.whole and 0 < metric.n < (1 - FEW_ERRORS) * figure.n * _repeats(result):
        others.append(f"over {metric.n:,.0f} here, {figure.n * _repeats(result):,} in the paper")
    if result.unanswered > FEW_ERRORS * result.probes:
        others.append(f"{result.unanswered:,} of {result.probes:,} probes without an answer here")
    return joined(*others) or ""


def _repeats(result: Result) -> int:
    return int(result.options.get("repeats") or 1)


def _departed(value: PublishedValue, departure: str) -> PublishedValue:
    """The figure with the difference as its note; a figure that is not comparable anyway keeps its own."""
    if not value.comparable or not departure:
        return value
    return replace(value, comparable=False, note=joined(value.note or "", departure))
