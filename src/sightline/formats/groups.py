"""The groups file: probes of any perturbation as lines, written by builders and read by `run`."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.formats.files import BUFFER, BYTE_ORDER_MARK, opened, read_line, refuse_utf16, write_atomically
from sightline.formats.prediction import RecordLocation, plain_reply
from sightline.scoring.chosen import read_choice
from sightline.scoring.labels import may_carry_labels
from sightline.scoring.letters import position_of_letter, positions_of_text
from sightline.text import decode_line, refuse_doubled_keys
from sightline.types import LETTERS, Labels

ORIGINAL = "original"
"""The variant of the unperturbed probe; it is sent for Sampling only, and counts in nothing else."""

_encoder = msgspec.json.Encoder()


class GroupLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A probe.

    `group` names the thing that all lines of the group are about, `variant` the perturbation. `images` are
    paths relative to the folder of the file; `prompt` is the text sent after them. `question` is the question
    that a judge gets ('' for the prompt). Any of the `references` is right. `cluster` names the independent
    unit of confidence intervals ('' for the content of the first image). `facts` holds further data of the
    builder (a box, a covered fraction). `response` is an answer that was collected, null for an empty one.
    """

    group: str
    variant: str
    images: tuple[str, ...] = ()
    prompt: str = ""
    question: str = ""
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    cluster: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    response: Any = UNSET


def write_groups(lines: Iterable[GroupLine], path: Path) -> None:
    write_atomically(path, (_encoder.encode(line) + b"\n" for line in lines))


def by_group(lines: Iterable[GroupLine]) -> dict[str, list[GroupLine]]:
    groups: dict[str, list[GroupLine]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    return {name: _of_one_cluster(group) for name, group in groups.items()}


def _of_one_cluster(group: list[GroupLine]) -> list[GroupLine]:
    """The lines of a group, with the cluster that any of them names."""
    cluster = next((line.cluster for line in group if line.cluster), "")
    return [line if line.cluster == cluster else replace(line, cluster=cluster) for line in group]


def check_line(line: GroupLine, number: int, path: Path) -> None:
    if line.response is not UNSET:
        plain_reply(line.response, "response", RecordLocation(path, f"line {number}"))
    if line.group and line.variant and (line.prompt or line.images):
        _check_images(line, number, path)
        check_options(line, f"line {number}", path)
        return
    needed: Sequence[tuple[str, object, str]] = (
        ("group", line.group, "the group's id as text"),
        ("variant", line.variant, "the variant's name as text"),
        ("prompt", line.prompt or line.images, "a prompt, images, or both"),
    )
    for name, value, expected in needed:
        if not value:
            raise UserError("is empty", file=path, record=f"line {number}", field=name, expected=expected)


def repeated_variant(line: GroupLine, first: int, second: int, path: Path) -> UserError:
    return UserError(
        f"group '{line.group}' has variant '{line.variant}' on line {first} already",
        file=path,
        record=f"line {second}",
        field="variant",
        expected="each variant once in its group",
    )


def second_cluster(line: GroupLine, cluster: str, first: str, second: str, path: Path) -> UserError:
    return UserError(
        f"group '{line.group}' has the cluster '{cluster}' on {first} already",
        file=path,
        record=second,
        field="cluster",
        found=line.cluster,
        expected="one cluster for all lines of a group; it may stand on any of them",
    )


def _check_images(line: GroupLine, number: int, path: Path) -> None:
    for index, image in enumerate(line.images):
        if not is_below(image):
            raise UserError(
                "is outside the folder of the groups file",
                file=path,
                record=f"line {number}",
                field=f"images[{index}]",
                found=image,
                expected="a path inside that folder, relative to it; the file stands above its images",
            )


def check_options(line: GroupLine, record: str, path: Path) -> None:
    """Raise UserError unless the options differ and every reference names one of them that can be chosen."""
    if not line.options:
        return
    texts = [option.strip() for option in line.options]
    if len(set(texts)) < len(texts):
        raise UserError("has an option twice", file=path, record=record, field="options", found=line.options)
    letters = LETTERS[: len(texts)]
    for reference in map(str.strip, line.references):
        named = positions_of_text(reference, texts)
        by_letter = position_of_letter(reference, texts)
        if not named and by_letter is None:
            text, expected = (
                "has a reference that is not an option",
                f"the text of an option, or a letter from {letters[0]} to {letters[-1]}",
            )
        elif by_letter is not None and named not in ([], [by_letter]):
            text, expected = (
                "has a reference that is the letter of the option "
                f"'{line.options[by_letter]}' and the text of another one",
                "options that are letters in the order A, B, C, or with more words, such as 'letter B'",
            )
        elif (
            by_letter is not None
            and may_carry_labels(texts)
            and read_choice(reference, texts).position not in (by_letter, None)
        ):
            text, expected = (
                "has a reference that is a letter, and the options carry other letters of their own",
                "the text of the right option, or options without letters",
            )
        elif by_letter is None and len(named) > 1:
            text, expected = (
                "has a reference that is the text of several options, in another spelling",
                "the text of one option as it is written, or its letter",
            )
        elif by_letter is None and named[0] >= len(LETTERS) and not _is_read(named[0], line.options):
            text, expected = (
                f"has a reference that can never be chosen: it is option {named[0] + 1} of {len(texts)}, "
                f"only {len(LETTERS)} have a letter, and a response of its text does not choose it",
                f"a text that names no other option, or the right option among the first {len(LETTERS)}",
            )
        else:
            continue
        raise UserError(
            text, file=path, record=record, field="references", found=reference, expected=expected
        )


def _is_read(position: int, options: Sequence[str]) -> bool:
    return read_choice(options[position], options).position == position


# -- A groups file that is read group by group, so that memory does not grow with its lines

_decode = msgspec.json.Decoder(GroupLine).decode


class _Line(NamedTuple):
    """A line with its number in the file, from 1, and its offset in bytes."""

    number: int
    offset: int
    line: GroupLine


class GroupFile(NamedTuple):
    """A groups file that was checked.

    `responses` is the number of lines with a response.
    `runs`: offsets of runs of lines of one group, in the order in which groups are read; None if the lines of
    every group are next to each other, so that the order of the file serves.
    """

    path: Path
    sizes: tuple[str, ...]
    originals: int
    responses: int = 0
    runs: array[int] | None = None
    starts: bytes = b""

    def lines(self) -> Iterator[GroupLine]:
        with _seekable(self.path) as file:
            for _, _, line in _lines(file, self.path):
                yield line

    def groups(self) -> Iterator[list[GroupLine]]:
        if self.runs is None:
            for _, members in groupby(self.lines(), key=attrgetter("group")):
                yield _of_one_cluster(list(members))
            return
        with _seekable(self.path) as file:
            yield from map(_of_one_cluster, _joined_groups(file, self.path, self.runs, self.starts))


def read_groups(path: Path) -> list[GroupLine]:
    return list(open_groups(path).lines())


def open_groups(path: Path) -> GroupFile:
    """Check all lines of a groups file. A file that did not change is checked once in a process."""
    try:
        stamp = path.stat()
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", file=path) from None
    if not path.is_file():
        raise UserError("cannot be read several times", file=path, expected="a file, not a folder or a pipe")
    return _checked(path, (stamp.st_ino, stamp.st_size, stamp.st_mtime_ns))


def size_of(line: GroupLine) -> str:
    """The size in which a builder made a line's image: its label `size`, 'original' if it has none."""
    return str(line.labels.get("size", ORIGINAL))


@lru_cache(maxsize=8)
def _checked(path: Path, _stamp: tuple[int, int, int]) -> GroupFile:
    sizes: dict[str, None] = {}
    originals, responses, group = 0, 0, None
    offsets, names = array("q"), array("q")
    variants: dict[str, int] = {}
    cluster: _Line | None = None
    with _seekable(path) as file:
        for number, offset, line in _lines(file, path, keys_once=True):
            check_line(line, number, path)
            if line.group != group:
                group, variants, cluster = line.group, {}, None
                offsets.append(offset)
                names.append(hash(group))
            if (first := variants.setdefault(line.variant, number)) != number:
                raise repeated_variant(line, first, number, path)
            if line.cluster:
                cluster = cluster or _Line(number, offset, line)
                if cluster.line.cluster != line.cluster:
                    named = f"line {cluster.number}"
                    raise second_cluster(line, cluster.line.cluster, named, f"line {number}", path)
            originals += line.variant == ORIGINAL
            responses += line.response is not UNSET
            sizes.setdefault(size_of(line))
        if group is None:
            raise UserError("has no group", file=path, expected="one JSON object a line")
        checked = GroupFile(path, tuple(sizes), originals, responses)
        if len(np.unique(np.frombuffer(names, np.int64))) == len(names):
            return checked
        runs, starts = _joined_runs(file, path, offsets, names)
        return checked._replace(runs=runs, starts=starts)


def _joined_runs(
    file: IO[bytes], path: Path, offsets: array[int], names: array[int]
) -> tuple[array[int], bytes]:
    """The offsets of all runs, those of one group together, and which of them begin a group.

    Raises UserError where two runs of a group hold the same variant or different clusters.
    """
    hashes = np.frombuffer(names, np.int64)
    by_hash = np.argsort(hashes, kind="stable")
    ordered = hashes[by_hash]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(hashes))
    leaders, start = np.arange(len(hashes)), 0
    for end in ends:
        # Different groups may share a hash.
        first: dict[str, int] = {}
        variants: dict[tuple[str, str], int] = {}
        clusters: dict[str, tuple[int, GroupLine]] = {}
        for run in map(int, by_hash[start:end] if end - start > 1 else ()):
            for line in _run_at(file, offsets[run], path):
                earlier = variants.setdefault((line.group, line.variant), run)
                if earlier != run:
                    one, other = (_number_in(file, path, offsets[at], line) for at in (earlier, run))
                    raise repeated_variant(line, one, other, path)
                if line.cluster:
                    before, named = clusters.setdefault(line.group, (run, line))
                    if named.cluster != line.cluster:
                        one, other = (
                            _number_in(file, path, offsets[at], of)
                            for at, of in ((before, named), (run, line))
                        )
                        raise second_cluster(line, named.cluster, f"line {one}", f"line {other}", path)
                leaders[run] = first.setdefault(line.group, run)
        start = end
    order = np.argsort(leaders, kind="stable")
    in_order = array("q", np.frombuffer(offsets, np.int64)[order].tobytes())
    return in_order, (leaders[order] == order).tobytes()


def _joined_groups(file: IO[bytes], path: Path, runs: array[int], starts: bytes) -> Iterator[list[GroupLine]]:
    group: list[GroupLine] = []
    for offset, begins in zip(runs, starts, strict=True):
        if begins and group:
            yield group
            group = []
        group += _run_at(file, offset, path)
    yield group


def _run_at(file: IO[bytes], offset: int, path: Path) -> list[GroupLine]:
    file.seek(offset)
    lines = (line for _, _, line in _lines(file, path, offset))
    return list(next(groupby(lines, key=attrgetter("group")))[1])


def _number_in(file: IO[bytes], path: Path, offset: int, sought: GroupLine) -> int:
    file.seek(0)
    lines = _lines(file, path)
    return next(number for number, at, line in lines if at >= offset and line.variant == sought.variant)


def _lines(file: IO[bytes], path: Path, offset: int = 0, *, keys_once: bool = False) -> Iterator[_Line]:
    """The lines from the position of a file on; numbers count from there. The first pass checks the keys."""
    number = 0
    while raw := read_line(file, number + 1, path):
        number += 1
        if not offset:
            refuse_utf16(raw, path)
        content = raw.removeprefix(BYTE_ORDER_MARK) if not offset else raw
        if content and not content.isspace():
            try:
                line = _decode(content)
            except ValueError:
                line = decode_line(_decode, content.rstrip(b"\r\n"), number, path, GroupLine)
            if keys_once:
                refuse_doubled_keys(content, f"line {number}", path)
            yield _Line(number, offset, line)
        offset += len(raw)


@contextmanager
def _seekable(path: Path) -> Iterator[IO[bytes]]:
    """Open a file; of a gzipped one, a temporary copy, in which a reader can move."""
    with opened(path) as file:
        if not isinstance(file, gzip.GzipFile):
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy, BUFFER)
            copy.seek(0)
            yield copy


# -- Paths of images in files of records: all of them are relative to a folder, and below it


def is_below(path: str) -> bool:
    """Tell whether a path stays below the folder that it is relative to, whatever exists on the disk.

    >>> is_below("a/../b.png"), is_below("../b.png"), is_below("/b.png"), is_below("")
    (True, False, False, False)
    """
    plain = os.path.normpath(path)
    return not (os.path.isabs(plain) or plain.split(os.sep, 1)[0] in (os.curdir, os.pardir) or "\0" in path)
