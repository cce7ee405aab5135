"""Benchmarks as tasks of inspect_ai: `inspect eval sightline/codis --model ... -T data=DIR`.

Inspect finds them by this package's entry point `inspect_ai`. Each probe is a sample of inspect's, each
epoch a draw. `-T` takes data, setting, split, judge, seed, store, and the benchmark's options as `set_NAME`.
"""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from rich.markup import escape

from sightline.clusters import cluster_of, look_at
from sightline.errors import UserError, unknown_name
from sightline.evaluation.prepare import Prepared, prepare
from sightline.images import MEDIA_TYPES, BadImage, ImageLimits, data_url, look, transform_for
from sightline.interop.inspect_scores import Member, over_groups, verdict
from sightline.judging.judges import check_judge_kinds, judge_kind
from sightline.models.inspect import chat_messages, generate_config
from sightline.plan.plan import digest_of
from sightline.plan.spec import Spec, TaskOptions, declared_options, spec_of
from sightline.plan.stored_probe import judge_images, probe_position
from sightline.results.aggregate import EvaluationDescription
from sightline.types import ImageFile, ImageRef, Probe

SET = "set_"
NAMES = tuple(option.name for option in declared_options(TaskOptions) if option.name != "set")
"""Arguments of a task, besides the setting and the benchmark's options."""


@task
def codis(**words: Any) -> Task:
    """CODIS: one image and one question under two contexts."""
    return _task("codis", words)


@task
def iibench(**words: Any) -> Task:
    """II-Bench: what an image implies."""
    return _task("iibench", words)


@task
def mmr3(**words: Any) -> Task:
    """MM-R3: consistency under rephrasing, restyling and masking."""
    return _task("mmr3", words)


@task
def contextual(**words: Any) -> Task:
    """ConTextual: instructions that take the text in an image and what is around it."""
    return _task("contextual", words)


@task
def groups(file: str, **words: Any) -> Task:
    """Any groups file."""
    return _task("groups", {**words, "setting": file})


@solver
def ask() -> Solver:
    """Asks the model, unless an image of the probe is broken."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state if state.metadata.get("error") else await generate(state)

    return solve


def _task(benchmark: str, words: Mapping[str, Any]) -> Task:
    """The task, or what is wrong with the words of the call as inspect says it: one message, no traceback."""
    try:
        return _made(benchmark, words)
    except UserError as error:
        raise PrerequisiteError(escape(str(error))) from None


def _made(benchmark: str, words: Mapping[str, Any]) -> Task:
    judge = str(words.get("judge", "rules"))
    ready = prepare(_spec(benchmark, words), asks=False)
    _check_judge_kinds_judge(ready, judge)
    if ready.options.benchmark.get("answer_by") == "likelihood":
        raise UserError("inspect's models do not say how likely an answer is", expected="answers in words")
    description: dict[str, Any] = msgspec.to_builtins(
        EvaluationDescription(
            benchmark=benchmark,
            setting=ready.setting,
            model="",
            identity="",
            judges=(judge,),
            decide="first",
            benchmark_options=ready.options.benchmark,
            options={},
            data_digest=digest_of(ready.samples),
            planned_samples=len(ready.samples),
            seed=ready.spec.seed,
        )
    )
    return Task(
        dataset=MemoryDataset(list(_samples(ready)), name=f"{benchmark}:{ready.setting}"),
        solver=ask(),
        scorer=verdict(description),
        metrics=[over_groups(description, ready.spec.store)],
        config=generate_config(ready.options.sampling),
        # A call that fails is an error among the answers, and loses no other.
        score_on_error=True,
    )


def _spec(benchmark: str, words: Mapping[str, Any]) -> Spec:
    """The words of the call as those of the command line."""
    known = (*NAMES, "setting", f"{SET}NAME")
    for name in words:
        if name not in known and not name.startswith(SET):
            raise unknown_name("task argument", name, known)
    setting = words.get("setting")
    options = {name: value for name, value in words.items() if name in NAMES and value is not None}
    chosen = {name.removeprefix(SET): value for name, value in words.items() if name.startswith(SET)}
    task_name = benchmark if setting is None else f"{benchmark}:{setting}"
    return spec_of(task_name, {**options, "set": chosen}, TaskOptions)


def _check_judge_kinds_judge(ready: Prepared, judge: str) -> None:
    """Raise UserError for a judge that cannot say which answers are right, or cannot be asked."""
    if judge_kind(judge) == "human":
        raise UserError(
            "people do not judge while inspect runs", expected="sightline score --judge human:FILE"
        )
    check_judge_kinds(ready.benchmark, (judge,))
    if ready.benchmark.scorer("correct", judge_kind(judge), ready.options.benchmark) is None:
        raise UserError(
            f"{ready.benchmark.name} has no prompt for '{judge}' to judge by", expected="judge=rules"
        )
    if judge_kind(judge) == "model":
        try:
            get_model(judge)
        except ValueError as error:
            raise UserError(
                f"judge={judge}: {error}", expected="PROVIDER/NAME, as inspect takes it"
            ) from None


def _samples(ready: Prepared) -> Iterator[Sample]:
    """A sample of inspect's for each probe, in the order of the plan."""
    for number, item in enumerate(ready.samples):
        probes = list(ready.benchmark.probes(item, ready.options.benchmark))
        seen = look_at(item, probes)
        cluster = cluster_of(item, seen)
        for position, probe in enumerate(probes):
            yield _sample(
                probe, cluster, probe_position(number, position), len(probes), judge_images(probe, seen)
            )


def _sample(probe: Probe, cluster: str, where: int, members: int, evidence: tuple[ImageFile, ...]) -> Sample:
    shown: str | list[Any]
    error = None
    try:
        shown = chat_messages(probe.messages, _images(probe))
    except BadImage as broken:
        shown, error = probe.question, str(broken)
    member = Member(
        group=probe.sample,
        variant=probe.variant,
        cluster=cluster,
        question=probe.question,
        place=where,
        members=members,
        labels=probe.labels,
        references=probe.references,
        options=probe.options,
        pooled=probe.draws > 0,
        error=error,
        evidence=evidence,
    )
    return Sample(
        id=f"{probe.sample}/{probe.variant}",
        input=shown,
        target=list(probe.references),
        metadata=msgspec.to_builtins(member),
    )


def _images(probe: Probe) -> dict[str, str]:
    """What stands for each image of a probe. Raises BadImage."""
    parts: Iterable[Any] = (part for message in probe.messages for part in message.parts)
    return {part.path: _shown(look(part, {})) for part in parts if isinstance(part, ImageRef)}


def _shown(file: ImageFile) -> str:
    """The path of an image, which inspect reads when it sends it; all of it where its name lies of it."""
    made = transform_for(file, ImageLimits())
    told = mimetypes.guess_type(file.path, strict=False)[0]
    if not made and told == MEDIA_TYPES[file.format]:
        return os.path.abspath(file.path)
    return data_url(msgspec.structs.replace(file, transform=made)).decode()
