"""Results folders: what they hold, which run may replace which, and the judged groups that are read back."""

from __future__ import annotations

import weakref
import zlib
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import groupby
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.registry import export_formats
from sightline.errors import EnvironmentFailedError, UserError, some_of
from sightline.evaluation.judges import JudgedGroup, answered_cases, same_without_judge, select_verdict
from sightline.evaluation.options import EvaluationDescription, judge_names
from sightline.evaluation.spec import Decide
from sightline.formats.files import (
    AtomicFile,
    file_digest,
    read_bytes,
    refuse_unwritable,
    sole_writer,
    temporary_folder,
    texts_of_data_digest,
    write_atomically,
    writing,
)
from sightline.formats.jsonl import (
    ANSWERS,
    METRICS,
    REPORT,
    UNFINISHED,
    VERDICTS,
    AnswersToExport,
    answer_line,
    is_run_name,
    read_outcomes,
    read_recorded_verdicts,
    refuse_mixed_files,
    verdict_line,
    written_files,
)
from sightline.formats.tables import csv_bytes
from sightline.metrics.tally import group_values
from sightline.text import decode_json
from sightline.types import Case, Group, GroupKey, Metric, Outcome, Result, Verdict

GROUPS = "groups.csv"
"""The leading metrics of each group with several answers; there is no file without such a group."""

FILES = frozenset({ANSWERS, VERDICTS, METRICS, REPORT})
"""The files of every results folder; others are GROUPS and the released formats of benchmarks."""


class Lines(NamedTuple):
    """Lines of answers.jsonl and of verdicts.jsonl, each with its line break."""

    answers: bytes
    verdicts: bytes


def lines_of(judged: JudgedGroup) -> Lines:
    return Lines(
        b"".join([answer_line(outcome) + b"\n" for outcome in judged.group]),
        b"".join([verdict_line(verdict) + b"\n" for verdict in judged.verdicts]),
    )


def group_metrics(benchmark: Benchmark, options: Mapping[str, Any]) -> list[Metric]:
    """The leading metrics that a group alone has a value of."""
    metrics = benchmark.metrics(options)
    return [one for one in metrics if one.name in benchmark.leading_metrics and one.labels != "varying"]


class ResultsFolder:
    """Writes a results folder while groups are judged: its files are those of one run, or it is refused.

    All files are written to a temporary folder first. Then metrics.json, which holds their digests, is
    removed, the files get their places, and the new metrics.json comes last.
    """

    def __init__(self, path: str | None, metrics: Sequence[Metric] = ()) -> None:
        """`path` None writes nothing; `metrics` are those of each group."""
        self._path = Path(path) if path else None
        self._metrics = metrics
        self._groups: AtomicFile | None = None
        self._stack = ExitStack()
        self._growing = ExitStack()

    @staticmethod
    def check(path: str | None) -> None:
        if path is not None:
            refuse_unwritable(Path(path))

    def __enter__(self) -> Self:
        if self._path is not None:
            self._is_new = not self._path.exists()
            try:
                self._path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise EnvironmentFailedError(f"{self._path}: cannot be created: {error.strerror}") from None
            self._drafts = self._stack.enter_context(temporary_folder(self._path / "results"))
            self._stack.enter_context(self._growing)
            self._answers = self._growing.enter_context(AtomicFile(self._drafts / ANSWERS))
            self._verdicts = self._growing.enter_context(AtomicFile(self._drafts / VERDICTS))
        return self

    def __exit__(self, *error: Any) -> None:
        """Remove what did not get its place, and a folder that was made for it."""
        self._stack.__exit__(*error)
        if self._path is not None and self._is_new:
            # A folder with files stays.
            with suppress(OSError):
                self._path.rmdir()

    def write(self, judged: JudgedGroup) -> None:
        if self._path is not None:
            lines = lines_of(judged)
            with self._draft_errors():
                self._answers.write(lines.answers)
                self._verdicts.write(lines.verdicts)
                if self._metrics and len(judged.group) > 1 and judged.group.sent:
                    self._write_group(judged.group)

    def _write_group(self, group: Group) -> None:
        if self._groups is None:
            self._groups = self._growing.enter_context(AtomicFile(self._drafts / GROUPS))
            names = [metric.name for metric in self._metrics]
            self._groups.write(csv_bytes([["sample", "draw", "variant", "answers", *names]]))
        values = ("" if value is None else repr(value) for value in group_values(group, self._metrics))
        self._groups.write(csv_bytes([[group.id, str(group.draw), group.pooled, str(len(group)), *values]]))

    def finish(self, result: Result, benchmark: Benchmark, *, report: str, data: Path | None) -> None:
        """Write the files that need the complete result, then put all files in their places."""
        if self._path is None:
            return
        with self._draft_errors():
            self._growing.close()
            write_atomically(self._drafts / REPORT, [report.encode()])
            answers = AnswersToExport(self._drafts / ANSWERS, data, result.model)
            for one in benchmark.export_formats.values():
                if one.file and one.applies(answers):
                    one.write(answers, self._drafts / one.file)
        files = {file.name: file_digest(file) for file in sorted(self._drafts.iterdir())}
        content = {**msgspec.to_builtins(result), "files": files}
        metrics = msgspec.json.format(msgspec.json.encode(content), indent=1)
        with writing(self._path), sole_writer(self._path):
            self._put_in_place(files, metrics)

    @contextmanager
    def _draft_errors(self) -> Iterator[None]:
        """Name the folder in errors of its drafts, which no longer exist when the user reads the message."""
        try:
            yield
        except EnvironmentFailedError as error:
            raise EnvironmentFailedError(str(error).replace(str(self._drafts), str(self._path))) from None

    def _put_in_place(self, files: Collection[str], metrics: bytes) -> None:
        """Replace the files of an earlier run, and no other ones; metrics.json is removed first."""
        assert self._path is not None
        unfinished = self._path / UNFINISHED
        write_atomically(unfinished, [metrics, b"\n"])
        for name in written_files(self._path).keys() - files:
            (self._path / name).unlink(missing_ok=True)
        (self._path / METRICS).unlink(missing_ok=True)
        for name in files:
            (self._drafts / name).replace(self._path / name)
        unfinished.replace(self._path / METRICS)


# -- Reading the results of earlier evaluations from their folders

SWEEP = "sweep.json"

_Record = TypeVar("_Record")


def is_sweep(folder: Path) -> bool:
    return (folder / SWEEP).is_file()


def read_result(path: Path) -> Result:
    if path.is_dir():
        refuse_mixed_files(path)
        path /= METRICS
    return _decode(path, METRICS, Result)


def read_sweep(folder: Path) -> SweepRecord:
    record = _decode(folder / SWEEP, SWEEP, SweepRecord)
    if not any(point.result for point in record.points):
        raise UserError("no point of this sweep has a result", file=folder / SWEEP)
    return record


def sweep_task(folder: Path) -> str:
    """Read the task of a sweep, whether or not it has results."""
    return _decode(folder / SWEEP, SWEEP, SweepRecord).task


def _decode(path: Path, name: str, kind: type[_Record]) -> _Record:
    if not path.is_file():
        folder = path.parent if path.name == name else path
        expected = "a results folder (--out)" if name == METRICS else "a readable file"
        raise UserError(f"has no {name}", file=folder, expected=expected)
    return decode_json(read_bytes(path), kind, path, f"a valid {name}")


# -- A sweep as data: what sweep.json holds


class PointRecord(Struct, frozen=True, kw_only=True):
    """A point in sweep.json. `folder` is the name of its results folder, `state` says how it ended.

    `values` are the values of the varied options, under the JSON name `at`.
    """

    name: str
    model: str
    values: Mapping[str, Any] = field(name="at")
    folder: str | None
    exit_status: int
    state: str
    result: Result | None


class SweepRecord(Struct, frozen=True):
    """The whole of sweep.json."""

    task: str
    exit_status: int
    points: list[PointRecord]
    schema: int = 1


# -- A run whose answers are judged: its result and its groups, from the store or from a results folder


class JudgedRun(Struct, frozen=True, kw_only=True, dict=True):
    """The result of a run, and its judged groups by their keys, each read when it is asked for.

    `name` is what tables call the run.
    """

    name: str
    result: Result
    groups: Mapping[GroupKey, Group]

    @cached_property
    def sent(self) -> SentGroups:
        return SentGroups(self.groups)


def read_judged_run(folder: Path) -> JudgedRun:
    """Read a judged run from its results folder, with the verdicts that the folder holds."""
    if not (folder / METRICS).is_file():
        raise UserError(
            "is neither the number or name of a run nor a results folder",
            file=folder,
            expected=f"a run of `sightline runs list`, or a folder with {METRICS} (--out)",
        )
    result = read_result(folder)
    benchmark = find_benchmark(result.benchmark)
    pools = benchmark.pools_draws(result.options)
    decide: Decide = "majority" if result.options.get("decide") == "majority" else "first"
    about_several = _verdicts_by_first_target(read_recorded_verdicts(folder / VERDICTS))

    def key_of(outcome: Outcome) -> GroupKey:
        return (outcome.sample, 0, outcome.variant) if pools else (outcome.sample, outcome.draw, "")

    groups = StoredGroups()
    for key, members in groupby(read_outcomes(folder / ANSWERS), key_of):
        # The lines of a group follow each other, except in files that were put together.
        earlier = groups[key].outcomes if key in groups else ()
        groups.add(_group(benchmark, key, [*earlier, *members], about_several, decide))
    return JudgedRun(name=str(folder), result=result, groups=groups)


def group_of_lines(
    benchmark: Benchmark,
    key: GroupKey,
    outcomes: Sequence[Outcome],
    verdicts: Iterable[Verdict],
    decide: Decide,
) -> Group:
    return _group(benchmark, key, outcomes, _verdicts_by_first_target(verdicts), decide)


def _group(
    benchmark: Benchmark,
    key: GroupKey,
    outcomes: Sequence[Outcome],
    about_several: Mapping[str, Sequence[Verdict]],
    decide: Decide,
) -> Group:
    sample, draw, pooled = key
    judgements = tuple(_judgements(outcomes, about_several, decide))
    group = Group(sample, draw, outcomes[0].cluster, tuple(outcomes), judgements=judgements, pooled=pooled)
    decided = {(one.question, frozenset(one.targets)) for one in judgements}
    cases = answered_cases(benchmark, group)
    open_cases = (case for case in cases if (case.question, frozenset(case.targets)) not in decided)
    return replace(group, judgements=(*judgements, *same_without_judge(open_cases)))


def _verdicts_by_first_target(verdicts: Iterable[Verdict]) -> Mapping[str, Sequence[Verdict]]:
    """The verdicts on several answers, each once: samples that share requests repeat them."""
    found: defaultdict[str, dict[tuple[object, ...], Verdict]] = defaultdict(dict)
    for verdict in verdicts:
        if len(verdict.targets) > 1:
            identity = (verdict.targets, verdict.question, verdict.scorer, verdict.judge, verdict.draw)
            found[verdict.targets[0]].setdefault(identity, verdict)
    return {first: list(by_identity.values()) for first, by_identity in found.items()}


def _judgements(
    outcomes: Sequence[Outcome], about_several: Mapping[str, Sequence[Verdict]], decide: Decide
) -> Iterator[Verdict]:
    """The verdict that counts on each case about several answers of a group."""
    keys = {outcome.key for outcome in outcomes}
    cases: defaultdict[tuple[str, tuple[str, ...]], list[Verdict]] = defaultdict(list)
    for key in dict.fromkeys(outcome.key for outcome in outcomes):
        for verdict in about_several.get(key, ()):
            if keys.issuperset(verdict.targets):
                cases[verdict.question, verdict.targets].append(verdict)
    for (question, targets), verdicts in cases.items():
        by_judge: defaultdict[str, list[Verdict]] = defaultdict(list)
        for verdict in verdicts:
            by_judge[verdict.scorer if verdict.kind == "human" else verdict.judge].append(verdict)
        case = Case(targets, question, "", ())
        yield select_verdict(case, list(by_judge.values()), decide)


# -- The groups of a run whose probes were all sent; metrics leave out all others


class SentGroups(Mapping[GroupKey, Group]):
    """A view of the groups that were sent completely."""

    def __init__(self, groups: Mapping[GroupKey, Group]) -> None:
        self._groups = groups
        self._left_out: set[GroupKey] = set()
        self.not_sent = 0
        for key, group in groups.items():
            if not group.sent:
                self._left_out.add(key)
                self.not_sent += sum(outcome.status == "not_sent" for outcome in group)

    def __getitem__(self, key: GroupKey) -> Group:
        if key in self._left_out:
            raise KeyError(key)
        return self._groups[key]

    def __iter__(self) -> Iterator[GroupKey]:
        return (key for key in self._groups if key not in self._left_out)

    def __len__(self) -> int:
        return len(self._groups) - len(self._left_out)


# -- Groups that a temporary file holds: of a run of any size, memory holds the keys and some groups

_IN_MEMORY = 1 << 23
"""The bytes from which the file is on the disk."""

_PER_BLOCK = 64
"""The number of groups that are written and read together: most are read in their order."""

_encode = msgspec.msgpack.Encoder().encode
_decode_groups = msgspec.msgpack.Decoder(list[Group]).decode


class StoredGroups(Mapping[GroupKey, Group]):
    """Groups by their keys, in the order in which they were added. The file is deleted with this object."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._numbers: dict[GroupKey, int] = {}
        self._added: list[Group] = []
        self._ends = array("Q", [0])
        self._read: tuple[int, list[Group]] = (-1, [])
        weakref.finalize(self, self._file.close)

    def add(self, group: Group) -> None:
        """Add a group; one with the same key is replaced."""
        self._numbers[group.key] = _PER_BLOCK * (len(self._ends) - 1) + len(self._added)
        self._added.append(group)
        if len(self._added) == _PER_BLOCK:
            # The fastest level: responses, prompts and digests take a third of the space.
            body = zlib.compress(_encode(self._added), 1)
            self._file.seek(self._ends[-1])
            self._file.write(body)
            self._ends.append(self._ends[-1] + len(body))
            self._added = []

    def __getitem__(self, key: GroupKey) -> Group:
        block, place = divmod(self._numbers[key], _PER_BLOCK)
        if block == len(self._ends) - 1:
            return self._added[place]
        if self._read[0] != block:
            start, end = self._ends[block], self._ends[block + 1]
            self._file.seek(start)
            self._read = block, _decode_groups(zlib.decompress(self._file.read(end - start)))
        return self._read[1][place]

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers


# -- What a word means as a run: a run of the store, or a results folder


def is_stored(word: str, store: str) -> bool:
    """Whether a word means a run of the store and not a results folder.

    A folder with results comes before a run of the same name; other folders and files do not count. Every
    word but a number is a folder if there is no store that could hold names.
    """
    if word.isdecimal():
        return True
    has_store = "://" in store or Path(store).exists()
    return has_store and is_run_name(word) and not holds_results(Path(word))


def holds_results(folder: Path) -> bool:
    return (folder / METRICS).is_file() or is_sweep(folder)


# -- Refuses to put a run in the place of another one: its folder, or its name

REMEDY = "another --out, or --force to replace them"

REUSE = frozenset({"fingerprint", "accept_changed", "fresh"})
"""Options on the reuse of cached answers: a run may be repeated with others."""

ANSWERED_BY = frozenset(
    {"model_identity", "sampling", "model_arg", "model_id", "augment", "repeats", "data_digest"}
)
"""What `run` records about the origin of its answers and the data; `score` may not know it."""

SHOWN = 3
"""Differences that a message lists."""

NAMES = {
    "model_identity": "identity of the model",
    "judge": "judges",
    "other_data": "records that the paper did not release",
}
"""Names of messages, where they are not the names of the options."""


class _WrittenResult(Struct, frozen=True):
    """The part of metrics.json that identifies a run."""

    benchmark: str
    setting: str
    model_identity: str
    judge: str
    options: Mapping[str, Any]
    ids_digest: str = ""
    data_digest: str = ""


def refuse_other_run(out: Path, description: EvaluationDescription, scored: Path | None = None) -> None:
    """Refuse a folder with files that another run wrote, or that no run wrote.

    The same run may write its results again: benchmark, setting, identity of the model, judges, options and
    samples are equal, in any order; more samples of the same data may be run. Where a
    digest of the data is unknown, the ids of the samples are compared.
    """
    if not out.is_dir() or not (present := {path.name for path in out.iterdir()}):
        return
    if is_sweep(out):
        raise UserError("holds the results of a sweep", file=out, expected=REMEDY)
    recorded = next((out / name for name in (UNFINISHED, METRICS) if name in present), None)
    if recorded is None:
        # `export_formats` imports all benchmarks, so it is called only if there may be a file to name.
        if replaced := present & {*FILES, GROUPS, *(one.file for one in export_formats().values())}:
            names = ", ".join(sorted(replaced))
            raise UserError(f"holds {names}, but no {METRICS} of a run", file=out, expected=REMEDY)
        return
    ignored = frozenset[str]()
    if scored is not None and scored.resolve().parent == out.resolve():
        ignored = ANSWERED_BY
    if different := _differences(_identity_of_result(recorded), _identity(description), ignored):
        raise UserError(
            f"holds the results of another run: {some_of(different, SHOWN)}", file=out, expected=REMEDY
        )


def refuse_name_of_other_run(
    name: str, run: int, before: EvaluationDescription, description: EvaluationDescription
) -> None:
    """Refuse a name that belongs to another evaluation. The same run, as for a folder, may take it."""
    if different := _differences(_identity(before), _identity(description)):
        raise UserError(
            f"the name '{name}' belongs to run {run}, another evaluation: {some_of(different, SHOWN)}",
            expected=f"another --name, or `sightline runs rename {name} NEW` first",
        )


def refuse_other_sweep(out: Path, task: str) -> None:
    if (out / METRICS).exists():
        raise UserError("holds the results of a run", file=out, expected=REMEDY)
    if is_sweep(out) and (found := sweep_task(out)) != task:
        raise UserError(
            "holds a sweep of another task", file=out / SWEEP, found=found, expected=f"{task}; {REMEDY}"
        )


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], ignored: Collection[str] = frozenset()
) -> list[str]:
    """How two runs differ beyond their reuse of answers, the order of samples, and a larger --limit."""
    omitted = {*REUSE, *ignored}
    if not (before["data_digest"] and now["data_digest"]):
        omitted.add("data_digest")
    if not before["ids_digest"] or (
        "data_digest" not in omitted and before["data_digest"] == now["data_digest"]
    ):
        omitted.add("ids_digest")
    elif before["ids_digest"] != now["ids_digest"]:
        omitted.add("data_digest")
    if _extends(before, now):
        omitted |= {"limit", "ids_digest", "data_digest"}
    compared = [name for name in dict.fromkeys([*now, *before]) if name not in omitted]
    differences = (_difference(name, before.get(name), now.get(name)) for name in compared)
    return [one for one in differences if one]


def _extends(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a run covers the first samples, to which --limit restricted an earlier one, and more."""
    earlier, limit = before.get("limit"), now.get("limit")
    return earlier is not None and not before.get("shuffle") and (limit is None or limit > earlier)


def _difference(name: str, before: Any, now: Any) -> str:
    if before == now:
        return ""
    if name == "ids_digest":
        return "other samples"
    if name == "data_digest":
        return "other data of the same samples (questions, references, labels)"
    switch = isinstance(before, bool) or isinstance(now, bool)
    return f"{NAMES.get(name, name)} {_text(before, switch)} instead of {_text(now, switch)}"


def _text(value: Any, switch: bool) -> str:
    """A value as messages show it; a switch that is off is recorded as None."""
    if switch and value in (None, True, False):
        return "on" if value else "off"
    if value is None:
        return "none"
    return repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _identity_of_result(file: Path) -> dict[str, Any]:
    written = decode_json(read_bytes(file), _WrittenResult, file, "the result of a run", expected=REMEDY)
    fields = msgspec.structs.asdict(written)
    options = fields.pop("options")
    return {**fields, "data_digest": texts_of_data_digest(written.data_digest), **options}


def _identity(description: EvaluationDescription) -> dict[str, Any]:
    recorded: dict[str, Any] = msgspec.to_builtins(description.options)
    return {
        "benchmark": description.benchmark,
        "setting": description.setting,
        "model_identity": description.identity,
        "judge": judge_names(description),
        **recorded,
        "ids_digest": description.ids_digest,
        "data_digest": texts_of_data_digest(description.data_digest),
    }
