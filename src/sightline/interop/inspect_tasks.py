"""Benchmarks as tasks of inspect_ai: `inspect eval sightline/codis --model ... -T data=DIR`.

Inspect finds them by the entry point `inspect_ai` of this package. A probe is a sample of inspect, a draw
is an epoch. `-T` takes data, setting, split, judge, seed, store, and benchmark options as `set_NAME`.
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
from msgspec.structs import replace
from rich.markup import escape

from sightline.benchmarks.records import cluster_of, inspect_sample
from sightline.errors import UserError, unknown_name
from sightline.evaluation.judges import can_decide, check_judge_kinds, judge_kind
from sightline.evaluation.options import EvaluationDescription
from sightline.evaluation.plan import judge_images, probe_position, sample_digest, stored_probe
from sightline.evaluation.prepare import Prepared, PreparedTask, prepare_evaluation
from sightline.evaluation.spec import Spec, TaskOptions, declared_options, spec_of
from sightline.images import MEDIA_TYPES, BadImage, ImageLimits, data_url, inspect_image, transform_for
from sightline.interop.inspect_scores import SampleMetadata, over_groups, verdict
from sightline.models.inspect import chat_messages, generate_config
from sightline.types import ImageFile, ImageRef, Probe

SET = "set_"
OPTIONS = tuple(option.name for option in declared_options(TaskOptions) if option.name != "set")
"""The task arguments that are options of `sightline run` by the same name."""


@task
def codis(**arguments: Any) -> Task:
    """CODIS: one image and one question under two contexts."""
    return _task("codis", arguments)


@task
def iibench(**arguments: Any) -> Task:
    """II-Bench: the implied meaning of images."""
    return _task("iibench", arguments)


@task
def mmr3(**arguments: Any) -> Task:
    """MM-R3: consistency under rephrasing, restyling and masking."""
    return _task("mmr3", arguments)


@task
def contextual(**arguments: Any) -> Task:
    """ConTextual: instructions that need the text in an image and its visual context."""
    return _task("contextual", arguments)


@task
def groups(file: str, **arguments: Any) -> Task:
    """The questions of a groups file."""
    return _task("groups", {**arguments, "setting": file})


@solver
def ask() -> Solver:
    """Ask the model, unless an image of the probe is broken."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state if state.metadata["probe"].get("error") else await generate(state)

    return solve


def _task(benchmark: str, arguments: Mapping[str, Any]) -> Task:
    """The task; a wrong argument becomes inspect's own error, one message without a traceback."""
    try:
        return _checked_task(benchmark, arguments)
    except UserError as error:
        raise PrerequisiteError(escape(str(error))) from None


def _checked_task(benchmark: str, arguments: Mapping[str, Any]) -> Task:
    judge = str(arguments.get("judge", "rules"))
    prepared = prepare_evaluation(_spec(benchmark, arguments), calls_model=False)
    item = prepared.task
    _check_judge(item, judge)
    if item.options.benchmark.get("answer_by") == "likelihood":
        raise UserError(
            "inspect's models do not report how likely an answer is", expected="set_answer_by=text"
        )
    description: dict[str, Any] = msgspec.to_builtins(_describe(prepared, judge))
    return Task(
        dataset=MemoryDataset(list(_samples(item)), name=item.name),
        solver=ask(),
        scorer=verdict(description),
        metrics=[over_groups(description, prepared.spec.store)],
        config=generate_config(item.options.sampling),
        # A call that fails counts as an error, and the other samples go on.
        score_on_error=True,
    )


def _describe(prepared: Prepared, judge: str) -> EvaluationDescription:
    """The evaluation without its model, which inspect names."""
    item = prepared.task
    return EvaluationDescription(
        benchmark=item.benchmark.name,
        setting=item.setting,
        model="",
        identity="",
        judges=(judge,),
        decide="first",
        benchmark_options=item.options.benchmark,
        options={},
        data_digest=prepared.survey.data_digest,
        planned_samples=prepared.survey.samples,
    )


def _spec(benchmark: str, arguments: Mapping[str, Any]) -> Spec:
    """The task arguments as the options of an evaluation. Raises UserError."""
    names = (*OPTIONS, "setting", f"{SET}NAME")
    for name in arguments:
        if name not in names and not name.startswith(SET):
            raise unknown_name("task argument", name, names)
    setting = arguments.get("setting")
    # The judge is left out: inspect calls it, and has names of its own for models.
    options = {
        name: value
        for name, value in arguments.items()
        if name in OPTIONS and name != "judge" and value is not None
    }
    benchmark_options = {
        name.removeprefix(SET): value for name, value in arguments.items() if name.startswith(SET)
    }
    task_name = benchmark if setting is None else f"{benchmark}:{setting}"
    return spec_of(task_name, {**options, "set": benchmark_options}, TaskOptions)


def _check_judge(item: PreparedTask, judge: str) -> None:
    """Raise UserError for a judge that cannot decide which answers are right, or cannot be called."""
    if judge_kind(judge) == "human":
        raise UserError(
            "humans do not judge while inspect runs", expected="sightline score --judge human:FILE"
        )
    check_judge_kinds(item.benchmark, (judge,))
    if not can_decide(item.benchmark, judge, "correct", item.options.benchmark):
        raise UserError(
            f"{item.benchmark.name} has no prompt for the judge '{judge}'", expected="judge=rules"
        )
    if judge_kind(judge) == "model":
        try:
            get_model(judge)
        except ValueError as error:
            raise UserError(
                f"judge={judge}: {error}", expected="PROVIDER/NAME, as inspect takes it"
            ) from None


def _samples(item: PreparedTask) -> Iterator[Sample]:
    """A sample of inspect for each probe, in the order of the plan."""
    for number, sample in enumerate(item.samples):
        probes = list(item.benchmark.probes(sample, item.options.benchmark))
        files = inspect_sample(sample, probes)
        cluster = cluster_of(sample, files)
        for position, probe in enumerate(probes):
            evidence = judge_images(probe, files)
            stored = stored_probe(probe, 0, "", cluster, evidence=evidence)
            stored = replace(stored, sample_digest=sample_digest(item.benchmark, sample, files))
            yield _sample(probe, SampleMetadata(stored, probe_position(number, position), len(probes)))


def _sample(probe: Probe, metadata: SampleMetadata) -> Sample:
    content: str | list[Any]
    try:
        content = chat_messages(probe.messages, _images(probe))
    except BadImage as error:
        content = probe.question
        metadata = replace(metadata, probe=replace(metadata.probe, error=str(error)))
    return Sample(
        id=f"{probe.sample}/{probe.variant}",
        input=content,
        target=list(probe.references),
        metadata=msgspec.to_builtins(metadata),
    )


def _images(probe: Probe) -> dict[str, str]:
    """The path or data URL of each image of a probe. Raises BadImage."""
    parts: Iterable[Any] = (part for message in probe.messages for part in message.parts)
    return {
        part.path: _image_address(inspect_image(part, {})) for part in parts if isinstance(part, ImageRef)
    }


def _image_address(file: ImageFile) -> str:
    """The path, which inspect reads when it sends the image; a data URL if the file's suffix is wrong."""
    transform = transform_for(file, ImageLimits())
    guessed_type = mimetypes.guess_type(file.path, strict=False)[0]
    if not transform and guessed_type == MEDIA_TYPES[file.format]:
        return os.path.abspath(file.path)
    return data_url(replace(file, transform=transform)).decode()
