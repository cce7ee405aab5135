"""Checks before the first call: whether models, judges, data and options fit each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import Benchmark
from sightline.errors import UserError
from sightline.evaluation.augment import check_augmentation, images_in_probes
from sightline.evaluation.prepared import PreparedJudges, PreparedModels, PreparedTask
from sightline.judging.judges import HUMAN_PREFIX
from sightline.models.base import Model
from sightline.models.sampling_names import refuse_unknown_sampling
from sightline.plan.spec import Spec
from sightline.plugins import wrong_return
from sightline.results.description import EvaluationDescription
from sightline.results.same_run import refuse_other_run
from sightline.scoring.scorer import ModelScorer, by_question
from sightline.types import ImageRef, Probe, Sample


def check_samples(samples: Sequence[Sample], benchmark: Benchmark, options: Mapping[str, Any]) -> None:
    """Check the types of samples and of the first one's probes, and that every sample has its own id.

    Samples with one id would merge into one group.

    Args:
        samples: The samples of a benchmark.
        benchmark: The benchmark.
        options: The effective options of the benchmark.

    Raises:
        UserError: Two samples have the same id, or a plugin's method returned something else.
    """
    ids: set[str] = set()
    for sample in samples:
        if not isinstance(sample, Sample):
            raise wrong_return(benchmark.samples, sample, Sample)
        if sample.id in ids:
            raise UserError(f"two samples of {benchmark.name} have the same id", record=sample.id, field="id")
        ids.add(sample.id)
    for probe in benchmark.probes(samples[0], options) if samples else ():
        if not isinstance(probe, Probe):
            raise wrong_return(benchmark.probes, probe, Probe)


def check_sampling_names(spec: Spec, models: PreparedModels, judges: PreparedJudges) -> None:
    """Check the names of the sampling options of --gen and --judge-gen.

    Args:
        spec: The evaluation.
        models: The model.
        judges: The judges.

    Raises:
        UserError: A name is unknown, and --gen-any is not given.
    """
    if spec.gen_any:
        return
    for model in models.models[:1]:
        refuse_unknown_sampling(model, spec.gen, "--gen")
    for judge in judges.models.values():
        refuse_unknown_sampling(judge[0], spec.judge_gen, "--judge-gen")


def check_results_folder(spec: Spec, description: EvaluationDescription, scored: Path | None = None) -> None:
    """Check that an evaluation replaces no results but its own.

    Args:
        spec: The evaluation.
        description: What its result would report about it.
        scored: The file of answers that `score` reads.

    Raises:
        UserError: The folder of --out holds other results, and there is no --force.
    """
    if spec.out is not None and not spec.force:
        refuse_other_run(Path(spec.out), description, scored)


def check_model(spec: Spec, task: PreparedTask, models: PreparedModels) -> None:
    """Check that the model can be asked every probe of a task.

    Args:
        spec: The evaluation.
        task: The task.
        models: The model, and the augmentation if images are replaced by text.

    Raises:
        UserError: A probe is empty, or the model lacks a capability that it needs.
    """
    model, options = models.models[0], task.options.benchmark
    by_likelihood = options.get("answer_by") == "likelihood"
    for sample in task.samples:
        for probe in task.benchmark.probes(sample, options):
            _check_content(probe)
            _check_capabilities(probe, model, sees_images=models.replacement is None)
            if by_likelihood and not probe.choices:
                raise _unfit(probe, "has no options to choose from", "options, or no answer_by=likelihood")
    if models.replacement is not None:
        images = images_in_probes(task.benchmark, task.samples, [options])
        check_augmentation(models.replacement, model, images)
    if by_likelihood:
        _check_likelihood(spec, model)


def check_distinct_judges(spec: Spec, judges: PreparedJudges) -> None:
    """Check that no judge is named twice, and that repeats have a model to ask.

    Two names are one judge if they lead to one file, or to one model at one server.

    Args:
        spec: The evaluation.
        judges: The judges.

    Raises:
        UserError: Two values of --judge are the same judge, or --judge-repeats has no effect.
    """
    names: dict[str, str] = {}
    for name in spec.judge:
        if name in judges.models:
            identity = judges.models[name][0].identity
        elif name in judges.humans:
            identity = str(Path(name.removeprefix(HUMAN_PREFIX)).resolve())
        else:
            identity = name
        if identity in names:
            same = "" if names[identity] == name else f": '{names[identity]}' and '{name}' are the same judge"
            raise UserError(
                f"the judge '{name}' is named twice{same}",
                found=", ".join(f"--judge {judge}" for judge in spec.judge),
                expected="each judge once; --judge-repeats N asks every judge model N times",
            )
        names[identity] = name
    if spec.judge_repeats > 1 and not judges.models:
        raise UserError(
            f"--judge-repeats {spec.judge_repeats} has no effect: no judge is a model",
            found=", ".join(f"--judge {judge}" for judge in spec.judge),
            expected="--judge MODEL, or no --judge-repeats",
        )


def check_judge_images(task: PreparedTask, judges: PreparedJudges) -> None:
    """Check that every model judge takes the images that it is sent.

    Args:
        task: The task, whose judge prompt may hold the image.
        judges: The judges.

    Raises:
        UserError: A judge does not accept images.
    """
    scorers = by_question(task.benchmark.scorers(task.options.benchmark), ModelScorer)
    needs_images = any(scorer.needs_images for scorer in scorers.values())
    for name, models in judges.models.items():
        if needs_images and not models[0].capabilities.images:
            raise UserError(
                f"the judge {name} does not accept images",
                expected="a judge that accepts images, or a judge prompt without images",
            )


def _check_likelihood(spec: Spec, model: Model) -> None:
    """Raise UserError where the model cannot choose an option, or sampling options cannot have an effect."""
    if not model.capabilities.likelihood:
        raise UserError(
            f"{model.name} does not report how likely an answer is",
            expected="a local model (hf/...), or no --set answer_by=likelihood",
        )
    option = "--gen" if spec.gen or spec.preset else "--repeats" if spec.repeats > 1 else None
    if option:
        raise UserError(
            f"{option} has no effect with --set answer_by=likelihood: the model takes the likeliest option "
            "and samples nothing",
            expected=f"no {option}, or no answer_by=likelihood",
        )


def _check_content(probe: Probe) -> None:
    """Raise UserError where the probe comes from a file of answers and holds nothing to send."""
    if not any(message.parts for message in probe.messages):
        raise _unfit(
            probe,
            "there is nothing to send: neither prompt nor image",
            "the data folder instead of a file of answers, or `sightline score`",
        )


def _check_capabilities(probe: Probe, model: Model, *, sees_images: bool) -> None:
    """Raise UserError where the model cannot take the messages of a probe."""
    able = model.capabilities
    images = sum(isinstance(part, ImageRef) for message in probe.messages for part in message.parts)
    if sees_images and images and not able.images:
        raise _unfit(probe, f"{model.name} does not accept images", "a setting without images, or --augment")
    if sees_images and images > 1 and not able.several_images:
        raise _unfit(probe, f"{model.name} accepts one image per request", "a setting with one image")
    if not able.system_role and any(message.role == "system" for message in probe.messages):
        raise _unfit(probe, f"{model.name} does not accept system messages", "a model that accepts them")


def _unfit(probe: Probe, message: str, expected: str) -> UserError:
    return UserError(message, record=f"{probe.sample} {probe.variant}", expected=expected)
