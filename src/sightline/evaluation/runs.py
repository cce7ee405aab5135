"""The runs of a store as users see them: list, names, counts, details, and checks of endpoints."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from sightline.benchmarks.base import Benchmark, Setting, defaults
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.registry import is_benchmark
from sightline.config import Config, Price
from sightline.engine.limits import Counts
from sightline.errors import UserError, did_you_mean
from sightline.evaluation.options import EvaluationDescription, JudgeModel, setting_of
from sightline.evaluation.plan import probe_results, read_stored_probes
from sightline.evaluation.spec import Spec, recorded_options
from sightline.reporting.notes import effective_options, flat_options
from sightline.store.database import StoreFailedError, damage
from sightline.store.runs import Labels, RunRow
from sightline.store.store import Store
from sightline.text import local_time
from sightline.types import NOT_SENT, Answer, Spent

COMPLETE, DAMAGED = "complete", "damaged"

ALWAYS = ("split",)
"""Options that the list holds even where they have their default."""


class RunLine(Struct, frozen=True, kw_only=True):
    """A run in the list; `name` is None without one, `limit` None for all samples.

    Attributes:
        seconds: The time from the start to the end; None before the end, and for a run without requests.
        tokens: The tokens of the requests that the run sent; `cost` is what they cost, as far as it is known.
        p50, p95: The quantiles of the seconds from a request to its answer, of all answers of the run.
    """

    number: int = field(name="run")
    name: str | None
    tags: Sequence[str]
    note: str
    task: str
    model: str
    judges: Sequence[str]
    started: str = field(name="began")
    limit: int | None
    options: Mapping[str, Any]
    state: str
    seconds: float | None = None
    tokens: int = 0
    cost: float = 0.0
    p50: float | None = None
    p95: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the run ended, and asked everything."""
        return self.state == COMPLETE

    @property
    def is_damaged(self) -> bool:
        return self.state == DAMAGED


def list_runs(store: Store) -> list[RunLine]:
    """List the runs of a store. A damaged one does not hide the others."""
    readable = {run.number: run for run in readable_runs(store)}
    descriptions = [run.description for run in readable.values()]
    own = [_options(description) for description in descriptions]
    differing = _differing_facts(descriptions, own)
    options = {
        number: {**one, **others} for number, one, others in zip(readable, own, differing, strict=True)
    }
    labels, held = store.labels.all(), store.claims.held_runs()
    return [
        _line(
            row,
            readable.get(row.number),
            labels.get(row.number, Labels()),
            options.get(row.number, {}),
            is_held=row.number in held,
        )
        for row in store.runs.all()
    ]


def read_run_line(store: Store, number: int) -> RunLine:
    """Read the line of a run, for a page of this run: it does not say how the run differs from others."""
    row = store.runs.row(number)
    try:
        run = read_row(store, row)
    except StoreFailedError:
        run = None
    options = _options(run.description) if run else {}
    return _line(row, run, store.labels.of(number), options, is_held=number in store.claims.held_runs())


def _line(
    row: RunRow, run: StoredRun | None, labels: Labels, options: Mapping[str, Any], *, is_held: bool
) -> RunLine:
    return RunLine(
        number=row.number,
        name=labels.name,
        tags=labels.tags,
        note=labels.note,
        task=run.task if run else "",
        model=run.description.model if run else "",
        judges=run.description.judges if run else (),
        started=local_time(row.created) if isinstance(row.created, float | int) else "",
        limit=run.description.options.get("limit") if run else None,
        options=options,
        state=_state(run, is_held=is_held) if run else DAMAGED,
        # A results folder that is served has no requests, and is finished when it is opened.
        seconds=round(row.finished - row.created, 1)
        if run and run.counts.done and row.finished is not None
        else None,
        tokens=run.counts.tokens if run else 0,
        cost=run.counts.cost if run else 0.0,
        p50=run.spent.p50 if run and run.spent else None,
        p95=run.spent.p95 if run and run.spent else None,
    )


def select_runs(runs: Sequence[RunLine], tags: Collection[str], benchmark: str, model: str) -> list[RunLine]:
    return [
        run
        for run in runs
        if set(tags) <= set(run.tags)
        and benchmark in ("", run.task, run.task.partition(":")[0])
        and model.casefold() in run.model.casefold()
    ]


def _differing_facts(
    runs: Sequence[EvaluationDescription], options: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """What else differs between runs of one line: the data, or the model behind a name."""
    lines = [
        repr([run.benchmark, run.setting, run.model, run.judges, own])
        for run, own in zip(runs, options, strict=True)
    ]
    facts = [{"data": run.data_digest[:8], "model_identity": run.identity} for run in runs]
    by_line: defaultdict[str, list[Mapping[str, str]]] = defaultdict(list)
    for line, fact in zip(lines, facts, strict=True):
        by_line[line].append(fact)
    return [
        {name: value for name, value in fact.items() if len({other[name] for other in by_line[line]}) > 1}
        for line, fact in zip(lines, facts, strict=True)
    ]


def _options(run: EvaluationDescription) -> dict[str, Any]:
    """The options of a run that differ from those of its task without any option, and those of ALWAYS.

    Options that code sets are left out, and the OCR reader, which `augment` implies. If the benchmark or the
    setting is unknown here, its defaults are too, and all its options are listed.
    """
    by = run.options.get("captioned_by") or {}
    options = {**run.options, "captioned_by": by.get("model", by.get("file"))}
    usual, internal = default_options(run.benchmark, run.setting), {"reader"}
    known = known_setting(run.benchmark, run.setting)
    if known is not None:
        benchmark, setting = known
        internal |= {name for name, option in benchmark.options.items() if option.internal}
        if run.options.get("sampling") is not None:
            usual["sampling"] = setting.sampling
            options["sampling"] = {**dict.fromkeys(setting.sampling), **run.options["sampling"]}
    without = flat_options(usual)
    return {
        name: value
        for name, value in flat_options(options).items()
        if name not in internal and (name in ALWAYS or value != without.get(name))
    }


def known_setting(benchmark: str, setting: str) -> tuple[Benchmark, Setting] | None:
    """The benchmark and the setting of a result; None if this version lacks them, as those of a plugin."""
    if not is_benchmark(benchmark):
        return None
    found = find_benchmark(benchmark)
    try:
        return found, setting_of(found, f"{benchmark}:{setting}")
    except UserError:
        return None


def default_options(benchmark: str, setting: str) -> dict[str, Any]:
    """The recorded options of a task for which the user sets none; fewer if it is unknown."""
    known = known_setting(benchmark, setting)
    return {**recorded_options(Spec(task="")), **(defaults(*known) if known else {})}


def _state(run: StoredRun, *, is_held: bool) -> str:
    if not run.is_finished:
        return "in progress" if is_held else "not finished"
    return f"stopped: {run.stopped}" if run.stopped else COMPLETE


# -- How users refer to a run of the store: by its number or its name. What a name or a tag may look like


LONGEST_NUMBER = 18
"""Digits of the largest number that every database accepts for a run, less one."""


def find_run(store: Store, word: str) -> int:
    if word.isdecimal():
        if len(word.lstrip("0")) > LONGEST_NUMBER:
            raise UserError(
                "there is no run with this number",
                file=store.name,
                found=word,
                expected="a run of `sightline runs list`",
            )
        return int(word)
    names = store.labels.names()
    if word not in names:
        if of_model := _runs_of_model(store, word):
            raise UserError(
                f"no run is called '{word}': it is the model of {', '.join(of_model)}",
                file=store.name,
                expected="the number or name of one of them",
            )
        raise UserError(
            f"no run is called '{word}'{did_you_mean(word, names)}",
            file=store.name,
            expected="the number or name of a run, see `sightline runs list`",
        )
    return names[word]


def name_or_number(store: Store, run: int) -> str:
    return store.labels.of(run).name or f"run {run}"


def _runs_of_model(store: Store, model: str) -> list[str]:
    return [f"run {run.number} ({run.task})" for run in list_runs(store) if run.model == model]


# -- How the probes of a run ended, and what its answers cost

_BATCH = 1_000


class RunCounts(Struct, frozen=True, kw_only=True):
    """Counts over a run's probes with the answers in the store; `cost` is None without a price."""

    probes: Mapping[str, int]
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def count_run(store: Store, number: int, price: Price | None) -> RunCounts:
    """Count the probes of a run; `price` is None if it is unknown."""
    statuses = dict.fromkeys(("ok", "empty", "error", "not_sent"), 0)
    tokens: Counter[str] = Counter()
    cost = 0.0

    def count_usage(answer: Answer) -> None:
        nonlocal cost
        tokens["prompt"] += answer.usage.prompt_tokens or 0
        tokens["completion"] += answer.usage.completion_tokens or 0
        cost += price.of(answer.usage) if price is not None else 0

    probes = read_stored_probes(store, number)
    while batch := list(islice(probes, _BATCH)):
        answers = probe_results([replace(probe, partners={}) for probe in batch], store.answers)
        for probe in batch:
            answer = answers.get(probe.key)
            if isinstance(answer, Answer) and answer.truncated and probe.retry is not None:
                second = answers.get(probe.retry.key)
                if isinstance(second, Answer):
                    count_usage(answer)
                    answer = second
            if not isinstance(answer, Answer):
                is_error = answer is not None or probe.error not in (None, NOT_SENT)
                statuses["error" if is_error else "not_sent"] += 1
                continue
            statuses["ok" if answer.text else "empty"] += 1
            count_usage(answer)
    return RunCounts(
        probes=statuses,
        prompt_tokens=tokens["prompt"],
        completion_tokens=tokens["completion"],
        cost=cost if price is not None else None,
    )


# -- Everything that the store knows about one run: `sightline runs show`


class RunDetails(RunLine, frozen=True, kw_only=True):
    """A run with all effective options that have a value.

    `plugin` is the file of its benchmark, `file` that of the answers that were scored.
    """

    samples: int
    data_digest: str
    model_identity: str
    plugin: str | None
    file: str | None
    notes: Sequence[str]
    requests: Mapping[str, int | float]
    answers: RunCounts


def run_details(store: Store, number: int, config: Config) -> RunDetails:
    run = read_stored_run(store, number)
    line = next(line for line in list_runs(store) if line.number == number)
    description = run.description
    return RunDetails(
        **{
            **asdict(line),
            "options": effective_options(description.options),
        },
        samples=description.planned_samples,
        data_digest=description.data_digest,
        model_identity=description.identity,
        plugin=run.plugin,
        file=run.file,
        notes=description.notes,
        requests=_requests(run.counts),
        answers=count_run(store, number, config.price(description.model)),
    )


def _requests(counts: Counts) -> dict[str, int | float]:
    equal = counts.equal
    numbers = {
        "sent": counts.sent,
        "cached": counts.cached,
        "retried": counts.retried,
        "failed": counts.failed,
        "equal": equal.requests,
        "equal_saved_tokens": equal.tokens,
        "equal_saved_cost": equal.cost,
    }
    return {name: number for name, number in numbers.items() if number}


# -- What the store keeps of each run: enough to judge and count its answers again


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run in the store.

    Attributes:
        embedder: The identity of the embedder; None if there is none.
        plugin: The path of the plugin file that defines the benchmark; None if no plugin defines it.
        stopped: Why requests stopped before the end, such as `budget`; None if they did not.
        file: The file of answers that was scored; None if a model was asked.
    """

    number: int
    description: EvaluationDescription
    is_finished: bool
    judges: Mapping[str, JudgeModel] = field(default_factory=dict)
    embedder: str | None = None
    text_metrics: Mapping[str, str] = field(default_factory=dict)
    plugin: str | None = None
    stopped: str | None = None
    planned_probes: int = 0
    file: str | None = None
    spent: Spent | None = None
    folders: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)

    @property
    def task(self) -> str:
        """Benchmark and setting, such as `codis:default`."""
        return f"{self.description.benchmark}:{self.description.setting}"

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark; UserError, with the plugin to load, if it is not loaded."""
        name = self.description.benchmark
        if self.plugin is not None and not is_benchmark(name):
            raise UserError(
                f"run {self.number} used the benchmark '{name}' of a plugin, which is not loaded",
                expected=f"--plugin {shlex.quote(self.plugin)}",
            )
        return find_benchmark(name)


def read_stored_run(store: Store, number: int) -> StoredRun:
    body, is_finished = store.runs.get(number)
    return _checked(store, number, body, is_finished=is_finished)


def read_row(store: Store, row: RunRow) -> StoredRun:
    return _checked(store, row.number, store.runs.description(row), is_finished=row.finished is not None)


def readable_runs(store: Store) -> list[StoredRun]:
    found = []
    for row in store.runs.all():
        with suppress(StoreFailedError):
            found.append(read_row(store, row))
    return found


def latest_finished_run(store: Store) -> tuple[StoredRun, list[str]]:
    runs = store.runs.all()
    if not runs:
        raise UserError("there is no run in this store", file=store.name, expected="`sightline run` first")
    latest = runs[-1].number
    number = max((run.number for run in runs if run.finished is not None), default=None)
    if number is None:
        raise UserError(
            f"no run in this store is finished; the latest is run {latest}",
            file=store.name,
            expected=f"`sightline report {latest}` for the answers so far, or the same command again",
        )
    later = f"run {latest} is later and not finished: `sightline report {latest}` shows its answers so far"
    return read_stored_run(store, number), [later] if latest > number else []


def decode_run(number: int, body: Mapping[str, Any], *, is_finished: bool) -> StoredRun:
    """Decode what the store keeps of a run.

    Raises:
        ValueError: This is not the description of a run.
    """
    try:
        return _decode_run(number, body, is_finished=is_finished)
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not the description of a run: {error!r}") from None


def _decode_run(number: int, body: Mapping[str, Any], *, is_finished: bool) -> StoredRun:
    counts = msgspec.convert(body.get("counts") or {}, Counts)
    return StoredRun(
        number=number,
        description=msgspec.convert(body["description"], EvaluationDescription),
        is_finished=is_finished,
        judges=msgspec.convert(body.get("judges") or {}, dict[str, JudgeModel]),
        embedder=body.get("embedder"),
        text_metrics=body.get("texts") or {},
        plugin=body.get("plugin"),
        stopped=counts.stopped or None,
        counts=counts,
        folders=tuple(body.get("folders") or ()),
        planned_probes=body.get("probes") or 0,
        file=body.get("file"),
        spent=msgspec.convert(body.get("spent"), Spent | None),
    )


def _checked(store: Store, number: int, body: Mapping[str, Any], *, is_finished: bool) -> StoredRun:
    try:
        return decode_run(number, body, is_finished=is_finished)
    except ValueError as error:
        raise damage(store.name, "runs", number, str(error)) from None
