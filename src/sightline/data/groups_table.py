"""Makes a groups file of a table, or records of tables, with the images in their cells; and packs groups."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pybase64
from msgspec import UNSET, Struct
from msgspec.structs import replace

import sightline
from sightline.benchmarks.groups.data import GROUPS
from sightline.benchmarks.released import UNPACKED
from sightline.errors import UserError, needs_extra, some_of, unknown_name
from sightline.formats.files import file_digest, read_bytes, temporary_folder
from sightline.formats.groups import GroupLine, check_options, is_below, read_groups, write_groups
from sightline.formats.tables import PARQUET, parquet_rows, read_table, table_rows
from sightline.images import BadImage, decode, inspect_image, read_original
from sightline.progress import progress
from sightline.scoring.letters import are_shown, lettered
from sightline.text import cell_text, indented_json, json_records
from sightline.types import LETTERS, ImageFile, ImageRef

Row = Mapping[str, Any]

IMAGES = "images"
MOST_REASONS = 3
"""The reasons that the error of a table without a usable row names."""


class Columns(Struct, frozen=True):
    """The columns of a table.

    The `images` of a row are sent in their order. Without `variant`, the rows of a group are numbered.
    `group` and `prompt` may be empty for a table of VLMEvalKit: its columns stand for all that is empty. If
    `prompt` is empty, the prompts have its form (`is_kit`), which includes the `hint`.
    """

    group: str = ""
    prompt: str = ""
    images: tuple[str, ...] = ()
    variant: str = ""
    options: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    hint: str = ""
    is_kit: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        own = (self.group, self.prompt, *([self.variant] if self.variant else []))
        return (*own, *self.images, *self.options, *self.references, *self.labels)


class MadeGroups(Struct, frozen=True):
    """What was made; `left_out` maps a row to the reason, `single` counts the groups of one line."""

    file: str
    rows: int
    groups: int
    lines: int
    images: int
    single: int
    left_out: dict[str, str]


class _UnusableRow(Exception):  # noqa: N818 - the row is left out, and the reason is counted
    """Why a row is left out."""


def make_groups(
    table: Path, columns: Columns, folder: Path, images: Path | None = None, *, show_progress: bool = False
) -> MadeGroups:
    """Write `groups.jsonl` and its images into a new folder.

    `images` is the folder to which paths in cells are relative, by default that of the table.
    """
    with _new_folder(folder) as fresh:
        lines, left_out = _lines(table, columns, fresh, images or table.parent, show_progress)
        if not lines:
            reasons = some_of(
                [f"{where}: {why}" for where, why in left_out.items()], MOST_REASONS, separator="; "
            )
            raise UserError(
                f"no row makes a line ({reasons})" if left_out else "has no rows",
                file=table,
                expected="rows with a group and a prompt",
            )
        write_groups(lines, fresh / GROUPS)
    sizes = Counter(line.group for line in lines)
    return MadeGroups(
        file=str(folder / GROUPS),
        rows=len(lines) + len(left_out),
        groups=len(sizes),
        lines=len(lines),
        images=len({image for line in lines for image in line.images}),
        single=sum(size == 1 for size in sizes.values()),
        left_out=left_out,
    )


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """The folder under another name, which it has until all is written."""
    if folder.exists():
        raise UserError("exists already", file=folder, expected="another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot be made: {error.strerror}", file=folder.parent) from None
    with temporary_folder(folder) as fresh:
        yield fresh
        fresh.rename(folder)


def _lines(
    table: Path, columns: Columns, folder: Path, root: Path, show_progress: bool
) -> tuple[list[GroupLine], dict[str, str]]:
    lines: list[GroupLine] = []
    left_out: dict[str, str] = {}
    rows_of: Counter[str] = Counter()
    variants: set[tuple[str, str]] = set()
    columns, rows = _rows(table, columns)
    store = _Images(folder, root, rows if isinstance(rows, list) else ())
    with progress("rows", None, "rows", show_progress=show_progress) as advance:
        for where, row in rows:
            group = cell_text(row.get(columns.group)).strip()
            rows_of[group] += 1
            try:
                line = _line(row, group, columns, str(rows_of[group]))
                check_options(line, where, table)
                if (group, line.variant) in variants:
                    raise _UnusableRow("its group has this variant already")
                images = tuple(image for name in columns.images for image in store.of_cell(row, name))
                if columns.images and not images:
                    raise _UnusableRow("no image")
                lines.append(replace(line, images=images))
                variants.add((group, line.variant))
            except _UnusableRow as error:
                left_out[where] = str(error)
            except UserError as error:  # of the options and references
                left_out[where] = error.message
            advance(1)
    return lines, left_out


def _line(row: Row, group: str, columns: Columns, number: str) -> GroupLine:
    prompt = cell_text(row.get(columns.prompt)).strip()
    variant = cell_text(row.get(columns.variant)).strip() if columns.variant else number
    for text, what in ((group, "group"), (prompt, "prompt"), (variant, "variant")):
        if not text:
            raise _UnusableRow(f"no {what}")
    labels = {name: _texts(row.get(name)) for name in columns.labels}
    options = _options(row, columns.options)
    shown = prompt if are_shown(options, prompt) else "\n".join([prompt, *lettered(options)])
    if columns.is_kit:
        shown = _kit_prompt(prompt, options, cell_text(row.get(columns.hint)).strip())
    return GroupLine(
        group,
        variant,
        prompt=shown,
        question="" if shown == prompt else prompt,
        references=tuple(
            dict.fromkeys(text for name in columns.references for text in _references(row.get(name), options))
        ),
        options=options,
        labels={name: of[0] if len(of) == 1 else of for name, of in labels.items() if of},
    )


def _options(row: Row, names: tuple[str, ...]) -> tuple[str, ...]:
    """The options in a cell each, or as a list in one cell."""
    cells = [_texts(row.get(name)) for name in names]
    if len(names) > 1:  # a text such as '[0, 1]' is one option
        cells = [(text,) if (text := cell_text(row.get(name)).strip()) else () for name in names]
    found = [text for cell in cells for text in cell]
    if len(found) == 1:
        raise _UnusableRow("only one option: a list in one cell, or a column each")
    if len(cells) > 1 and found and not all(cells[: len(found)]):
        raise _UnusableRow("an option before others is empty")
    return tuple(found)


def _references(cell: Any, options: Sequence[str]) -> tuple[str, ...]:
    """A right answer or several; the text of an option such as '[0, 1]' is one."""
    text = cell_text(cell).strip()
    return (text,) if text in options else _texts(cell)


def _kit_prompt(question: str, options: Sequence[str], hint: str) -> str:
    """As build_prompt of VLMEvalKit's ImageMCQDataset at e8e78f05; a question without options stays alone."""
    hinted = f"Hint: {hint}\n" if hint else ""
    if not options:
        return f"{hinted}{question}"
    listed = "".join(f"{letter}. {text}\n" for letter, text in zip(LETTERS, options, strict=False))
    return (
        f"{hinted}Question: {question}\nOptions:\n{listed}"
        "Please select the correct answer from the options above. \n"
    )


def _rows(table: Path, columns: Columns) -> tuple[Columns, Iterable[tuple[str, Row]]]:
    """The complete names of the columns, and the rows: a list, or of a Parquet file an iterator."""
    rows = _read(table)
    # Objects of JSON may lack a column that others have.
    first = [pair for _, pair in zip(range(1000), rows, strict=False)] if isinstance(rows, Iterator) else rows
    known = dict.fromkeys(name for _, row in first for name in row)
    if first:
        columns = _completed(columns, known, table)
    for name in columns.named:
        if first and name not in known:
            raise unknown_name("column", name, known)
    return columns, chain(first, rows) if isinstance(rows, Iterator) else rows


def _completed(columns: Columns, known: Mapping[str, None], table: Path) -> Columns:
    """The columns, with those of a table of VLMEvalKit where the group or the prompt has none."""
    if columns.group and columns.prompt:
        return columns
    if not {"index", "question"} <= known.keys():
        raise UserError(
            "is no table of VLMEvalKit, whose columns are known",
            file=table,
            found=", ".join(known),
            expected="--group COLUMN and --prompt COLUMN, or a table with the columns index and question",
        )

    def present(*names: str) -> tuple[str, ...]:
        return tuple(name for name in names if name in known)

    return Columns(
        group=columns.group or "index",
        prompt=columns.prompt or "question",
        images=columns.images or present("image") or present("image_path"),
        variant=columns.variant,
        options=columns.options or present(*LETTERS),
        references=columns.references or present("answer"),
        labels=columns.labels or present("category", "l2-category", "split"),
        hint="hint",
        is_kit=not columns.prompt,
    )


def _read(table: Path) -> list[tuple[str, dict[str, Any]]] | Iterator[tuple[str, dict[str, Any]]]:
    """The rows: a list, or of a Parquet file an iterator."""
    if table.is_file():
        with table.open("rb") as file:
            start = file.read(40)
        if start.startswith(PARQUET):
            return parquet_rows(table)  # pyarrow checks the last bytes
        if table.suffix.lower() == ".parquet":
            begins = repr(start.decode("utf-8", "replace")) if start else "nothing: it is empty"
            raise UserError(
                f"is not a Parquet file; it begins with {begins}",
                file=table,
                expected="PAR1 at its start; download it again, or give the file its true ending",
            )
    content = read_bytes(table)
    is_json = content.lstrip()[:1] in (b"{", b"[")
    return json_records(content, table) if is_json else table_rows(read_table(content, table), table)


def _texts(cell: Any) -> tuple[str, ...]:
    return tuple(text for one in _listed(cell) if (text := cell_text(one).strip()))


def _listed(cell: Any) -> list[Any]:
    """The members of a cell that is a list or the text of one (JSON, Python); otherwise the cell itself."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        for read in (json.loads, ast.literal_eval):
            try:
                members = read(cell)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(members, list):
                return members
    if isinstance(cell, list | tuple):
        return list(cell)
    return [] if cell is None or (not isinstance(cell, Mapping | bytes) and not cell_text(cell)) else [cell]


# -- Records of tables, for benchmarks that read them


class Unpacked(Struct, frozen=True):
    """What was made: the file of records, how many there are, and how many different images."""

    file: str
    records: int
    images: int


def unpack_tables(tables: Sequence[Path], folder: Path, *, show_progress: bool = False) -> Unpacked:
    """Write the rows of tables, the parts of one data set, as records into a new folder, with their images.

    A cell with the bytes of an image becomes its path in the folder, a list of them a list of paths. What
    `pack_groups` wrote becomes a groups file again.
    """
    _refuse_repeated(tables)
    number, name = 0, UNPACKED
    with _new_folder(folder) as fresh, progress("rows", None, "rows", show_progress=show_progress) as advance:
        with (fresh / UNPACKED).open("wb") as file:
            for table in tables:
                store = _Images(fresh, table.parent)
                for where, row in _read(table):
                    if not number and set(PACKED) <= row.keys():
                        name = GROUPS
                    record: Any
                    if name == GROUPS:
                        record = _line_of_packed(row, store, (table, where))
                    else:
                        # A column of the Hub's NaturalBench has had a space after its name.
                        record = {
                            column.strip(): _unpacked(cell, store, (table, where, column))
                            for column, cell in row.items()
                        }
                    file.write(msgspec.json.encode(record) + b"\n")
                    number += 1
                    advance(1)
        if not number:
            raise UserError("has no rows", file=tables[0])
        images = sum(1 for path in fresh.rglob("*") if path.is_file()) - 1
        (fresh / UNPACKED).rename(fresh / name)
    return Unpacked(str(folder / name), number, images)


def _refuse_repeated(tables: Sequence[Path]) -> None:
    """Check that no part is given twice: its rows would be two samples each."""
    first: dict[str, Path] = {}
    for table in filter(Path.is_file, tables if len(tables) > 1 else ()):
        same = first.setdefault(file_digest(table), table)
        if same is not table:
            raise UserError(f"has the content of {same}", file=table, expected="each part of the data once")


def _unpacked(cell: Any, store: _Images, place: tuple[Path, str, str]) -> Any:
    if isinstance(cell, list):
        return [_unpacked(one, store, place) for one in cell]
    is_struct = isinstance(cell, Mapping) and set(cell) == {"bytes", "path"}
    if not is_struct and not isinstance(cell, bytes):
        return cell
    if is_struct and not (cell["bytes"] or cell["path"]):
        return None
    try:
        return store.add(cell)
    except _UnusableRow as error:
        file, where, column = place
        raise UserError(
            str(error), file=file, record=where, field=column, expected="a whole file; get it again"
        ) from None


# -- Groups as a data set for others: Parquet with the bytes of images, a card and Croissant's description

MEANINGS: Mapping[str, str] = {
    "group": "the thing that all lines of a group are about",
    "variant": "the perturbation: once in its group",
    "images": "the images sent before the prompt, in their order",
    "prompt": "the text sent",
    "question": "the question that a judge gets; empty for the prompt",
    "references": "each of them is right: a text, or the text or the letter of an option",
    "options": "the options in the order shown; empty for an open question",
    "labels": "what results are split by, as JSON: label to a value or a list of values",
    "cluster": "the independent unit of confidence intervals; empty for the content of the first image",
    "facts": "further data of the builder, as JSON",
    "response": "an answer that was collected, as JSON",
}
"""The columns of packed groups, the last one only where a line has a response."""

PACKED = tuple(name for name in MEANINGS if name != "response")

_LISTS = ("references", "options")
_ROWS_TOGETHER = 100
"""The rows of a part of the file, as the Hub's viewer wants them where rows hold images."""


class Packed(Struct, frozen=True):
    """What was made: the folder, and how many lines, groups and different images it holds."""

    folder: str
    lines: int
    groups: int
    images: int


def pack_groups(groups: Path, folder: Path, split: str, *, show_progress: bool = False) -> Packed:
    """Write a groups file and its images as a data set that `datasets` and Croissant's readers open.

    The new folder gets `data/SPLIT.parquet`, README.md and croissant.json. An image stands in each row that
    shows it.
    """
    lines = read_groups(groups)
    columns = [*PACKED, *(["response"] if any(line.response is not UNSET for line in lines) else [])]
    with needs_extra("table", "a Parquet file needs pyarrow, which is not installed", folder):
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    types = dict.fromkeys(_LISTS, pyarrow.list_(pyarrow.string())) | {"images": pyarrow.list_(image)}
    schema = pyarrow.schema(
        [(name, types.get(name, pyarrow.string())) for name in columns],
        # Where `datasets` reads that a column holds images.
        metadata={"huggingface": json.dumps({"info": {"features": _features(columns)}})},
    )
    digests: set[str] = set()
    name = f"data/{split}.parquet"
    with _new_folder(folder) as fresh:
        (fresh / "data").mkdir()
        with (
            ParquetWriter(fresh / name, schema) as writer,
            progress("lines", len(lines), "rows", show_progress=show_progress) as advance,
        ):
            for start in range(0, len(lines), _ROWS_TOGETHER):
                part = lines[start : start + _ROWS_TOGETHER]
                rows = [
                    _packed(line, columns, (groups, f"line {start + number}"), digests)
                    for number, line in enumerate(part, 1)
                ]
                writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
                advance(len(part))
        made = Packed(str(folder), len(lines), len({line.group for line in lines}), len(digests))
        (fresh / "README.md").write_text(_card(made, folder.name, split, columns))
        description = _croissant(folder.name, split, columns, fresh / name)
        (fresh / "croissant.json").write_bytes(indented_json(description))
    return made


def _features(columns: Sequence[str]) -> dict[str, Any]:
    """The columns as `datasets` declares them; `Sequence` is the list that all of its versions read."""
    text = {"dtype": "string", "_type": "Value"}
    lists = {
        "images": {"feature": {"_type": "Image"}, "_type": "Sequence"},
        **{name: {"feature": text, "_type": "Sequence"} for name in _LISTS},
    }
    return {name: lists.get(name, text) for name in columns}


def _packed(
    line: GroupLine, columns: Sequence[str], place: tuple[Path, str], digests: set[str]
) -> dict[str, Any]:
    file, where = place
    images = []
    for path in line.images:
        try:
            found = inspect_image(ImageRef(str(file.parent / path), str(file.parent)), {})
            images.append({"bytes": read_original(found.path, found.digest), "path": path})
        except BadImage as error:
            raise UserError(str(error), file=file, record=where, field="images") from None
        digests.add(found.digest)
    row: dict[str, Any] = {name: getattr(line, name) for name in columns}
    encoded: dict[str, Any] = {
        name: None if row[name] is UNSET else msgspec.json.encode(row[name]).decode()
        for name in ("labels", "facts", "response")
        if name in row
    }
    return {**row, **encoded, "images": images, **{name: list(row[name]) for name in _LISTS}}


def _line_of_packed(row: Row, store: _Images, place: tuple[Path, str]) -> GroupLine:
    """The line that a packed row was made of; its images get the names that they had."""
    file, where = place
    try:
        images = tuple(store.add_named(cell) for cell in row["images"] or ())
    except _UnusableRow as error:
        raise UserError(str(error), file=file, record=where, field="images") from None
    record = {name: row[name] for name in PACKED if row[name] is not None} | {"images": images}
    try:
        record |= {name: msgspec.json.decode(row[name]) for name in ("labels", "facts") if name in record}
        if row.get("response") is not None:
            record["response"] = msgspec.json.decode(row["response"])
        return msgspec.convert(record, GroupLine)
    except (msgspec.MsgspecError, TypeError) as error:
        expected = "rows that `sightline data pack` wrote"
        raise UserError(f"is no packed line ({error})", file=file, record=where, expected=expected) from None


def _card(made: Packed, name: str, split: str, columns: Sequence[str]) -> str:
    """README.md as the Hub and `datasets` read it; licence and origin are for its owner to add."""
    listed = "\n".join(f"| `{column}` | {MEANINGS[column]} |" for column in columns)
    return f"""---
configs:
- config_name: default
  data_files:
  - split: "{split}"
    path: "data/{split}.parquet"
task_categories:
- visual-question-answering
tags:
- sightline
---

# {name}

{made.groups:,} groups of questions in {made.lines:,} lines, with {made.images:,} images. The lines of a group
belong together: a metric counts groups. Written by sightline {sightline.__version__}.

| column | meaning |
| --- | --- |
{listed}

```python
from datasets import load_dataset

lines = load_dataset("{name}", split="{split}")
```

```shell
sightline data unpack data/{split}.parquet --name {name}    # the groups file and its images
sightline run groups:data/{name}/groups.jsonl --model MODEL
```
"""


def _croissant(name: str, split: str, columns: Sequence[str], parquet: Path) -> dict[str, Any]:
    """The description of the data set in Croissant 1.0 (mlcommons.org/croissant), as JSON-LD."""
    file = f"{split}.parquet"
    fields = []
    for column in columns:
        source: dict[str, Any] = {"fileObject": {"@id": file}, "extract": {"column": column}}
        of_field: dict[str, Any] = {
            "@type": "cr:Field",
            "@id": f"lines/{column}",
            "name": column,
            "description": MEANINGS[column],
            "dataType": "sc:Text",
            "source": source,
        }
        if column in (*_LISTS, "images"):
            of_field["repeated"] = True
        if column == "images":
            of_field["dataType"] = "sc:ImageObject"
            source["transform"] = {"jsonPath": "bytes"}
        fields.append(of_field)
    return {
        "@context": CROISSANT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": "Groups of questions about images.",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": f"data/{file}",
                "contentSize": f"{parquet.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": file_digest(parquet),
            }
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "lines", "name": "lines", "field": fields}],
    }


_TERMS = (
    "citeAs", "column", "extract", "field", "fileObject", "fileProperty", "fileSet", "format", "includes",
    "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
    "equivalentProperty",
)  # fmt: skip

CROISSANT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _TERMS},
}
"""The context of Croissant 1.0, whole: its readers warn of a shorter one."""


# -- The images: by path, as bytes, or in base64 as VLMEvalKit's tables hold them

SHORTEST_BASE64 = 65
"""VLMEvalKit reads a shorter cell as the index of the row that holds the image."""

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")


class _Images:
    """The images of the new folder; each content is written once, under its digest or the name it had."""

    def __init__(self, folder: Path, root: Path, rows: Iterable[tuple[str, Row]] = ()) -> None:
        self._folder = folder / IMAGES
        self._root = root
        self._names: dict[str, str] = {}
        self._by_index = {cell_text(row["index"]).strip(): row for _, row in rows if "index" in row}
        self._shared: dict[tuple[str, str], tuple[str, ...]] = {}

    def of_cell(self, row: Row, column: str) -> tuple[str, ...]:
        """Copy the images of a cell, or of the row whose index it holds, and return their paths."""
        cell = row.get(column)
        index = cell_text(cell).strip() if isinstance(cell, str | int | float) else ""
        other = self._by_index.get(index) if len(index) < SHORTEST_BASE64 else None
        if other is None or other is row:
            return tuple(map(self.add, _listed(cell)))
        if (column, index) not in self._shared:
            self._shared[column, index] = tuple(map(self.add, _listed(other.get(column))))
        return self._shared[column, index]

    def add(self, cell: Any) -> str:
        """Copy an image, and return its path in the folder."""
        text = cell_text(cell).strip() if not isinstance(cell, Mapping | bytes) else ""
        content = _content(cell, text, self._root)
        digest = hashlib.sha256(content).hexdigest()[:16]
        if digest not in self._names:
            self._folder.mkdir(exist_ok=True)
            written = self._folder / digest
            written.write_bytes(content)
            kind = _inspected(written, self._folder, whole=True).format.lower()
            written.rename(written.with_suffix(f".{kind}"))
            self._names[digest] = f"{IMAGES}/{digest}.{kind}"
        return self._names[digest]

    def add_named(self, cell: Any) -> str:
        """Write an image under the path that it had, if that is free and stays in the folder."""
        content = cell.get("bytes")
        path = os.path.normpath(cell.get("path") or "")
        if content is None or not is_below(path) or path.casefold() == GROUPS:
            return self.add(cell)
        written = self._folder.parent / path
        if written.exists():
            return path if written.is_file() and written.read_bytes() == content else self.add(content)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_bytes(content)
        _inspected(written, self._folder.parent, whole=True)
        return path


def _content(cell: Any, text: str, root: Path) -> bytes:
    if isinstance(cell, Mapping):  # an image of the Hugging Face Hub
        inside = cell.get("bytes")
        cell, text = (inside, "") if inside is not None else (None, cell_text(cell.get("path")))
    if isinstance(cell, bytes):
        return cell
    if text.startswith(("http://", "https://")):
        raise _UnusableRow("its image is a URL; `sightline data pull` downloads images")
    data = text.partition(",")[2] if text.startswith("data:image/") else text
    if len(data) >= SHORTEST_BASE64 and _BASE64.fullmatch(data):
        return pybase64.b64decode("".join(data.split()) + "==")
    if not is_below(text):
        raise _UnusableRow("its image is outside the folder of images")
    file = _inspected(root / text, root)
    return read_original(file.path, file.digest)


def _inspected(path: Path, root: Path, *, whole: bool = False) -> ImageFile:
    """The facts of an image file; if it is to be `whole`, it is decoded."""
    try:
        file = inspect_image(ImageRef(str(path), str(root)), {})
        if whole:
            decode(file)
        return file
    except BadImage as error:
        raise _UnusableRow(f"its image: {str(error).removeprefix(f'{path}: ')}") from None


def reasons_of(left_out: Mapping[str, str]) -> Iterable[tuple[str, int, str]]:
    """Each reason with the number of its rows and the first of them, the most frequent first."""
    counts = Counter(left_out.values())
    first = {why: where for where, why in reversed(list(left_out.items()))}
    return ((why, number, first[why]) for why, number in counts.most_common())
