"""Checks before the first call: whether models, judges, data and options fit each other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from sightline.errors import UserError
from sightline.evaluation.augment import check_augmentation, images_in_probes
from sightline.evaluation.prepared import PreparedJudges, PreparedModels, PreparedTask
from sightline.formats.verdicts import verdict_line
from sightline.models.base import Model
from sightline.models.batch.endpoint import BatchEndpoint
from sightline.models.sampling_names import refuse_unknown_sampling
from sightline.plan.spec import Spec
from sightline.results.description import EvaluationDescription
from sightline.results.same_run import refuse_other_run
from sightline.scoring.scorer import ModelScorer, by_question
from sightline.types import ImageRef, Probe, Verdict

_BATCHES = "openai/NAME or http://HOST/v1#NAME, or no --batch"


def check_sampling_names(spec: Spec, models: PreparedModels, judges: PreparedJudges) -> None:
    """Check the names of the sampling options of --gen and --judge-gen."""
    if spec.gen_any:
        return
    for model in models.models[:1]:
        refuse_unknown_sampling(model, spec.gen, "--gen")
    for judge in judges.models.values():
        refuse_unknown_sampling(judge[0], spec.judge_gen, "--judge-gen")


def check_results_folder(spec: Spec, description: EvaluationDescription, scored: Path | None = None) -> None:
    """Check that an evaluation replaces no results but its own."""
    if spec.out is not None and not spec.force:
        refuse_other_run(Path(spec.out), description, scored)


def probe_check(models: PreparedModels, options: Mapping[str, Any]) -> Callable[[Probe], None] | None:
    """Make the check of probes.

    Returns:
        Raises UserError for a probe that is empty, or needs a capability that the model lacks; None if no
        model is called.
    """
    if not models.models:
        return None
    model, by_likelihood = models.models[0], options.get("answer_by") == "likelihood"
    sees_images = models.replacement is None

    def check(probe: Probe) -> None:
        _check_content(probe)
        _check_capabilities(probe, model, sees_images=sees_images)
        if by_likelihood and not probe.choices:
            raise _unfit(probe, "has no options to choose from", "options, or no answer_by=likelihood")

    return check


def check_model(spec: Spec, task: PreparedTask, models: PreparedModels) -> None:
    """Check that augmentation and likelihood suit the model and the task."""
    model, options = models.models[0], task.options.benchmark
    if models.replacement is not None:
        images = images_in_probes(task.benchmark, task.samples, [options])
        check_augmentation(models.replacement, model, images)
    if options.get("answer_by") == "likelihood":
        _check_likelihood(spec, model)


def check_batch(spec: Spec, models: PreparedModels, judges: PreparedJudges) -> None:
    """Check that --batch applies to every endpoint that would be paid, and to one at least."""
    if not spec.batch:
        return
    called = [model for group in (models.models, *judges.models.values()) for model in group]
    for model in called:
        if model.capabilities.endpoint and not isinstance(model, BatchEndpoint):
            raise UserError(f"--batch: Sightline has no batches for {model.name}", expected=_BATCHES)
    if not any(isinstance(model, BatchEndpoint) for model in called):
        raise UserError("--batch has no effect: neither model nor judge is an endpoint", expected=_BATCHES)
    if spec.captioner is not None:
        raise UserError(
            "--batch writes no captions, which the requests need first",
            found=f"--captioner {spec.captioner}",
            expected="--captions FILE, which `sightline build caption` writes",
        )


def check_distinct_judges(spec: Spec, judges: PreparedJudges) -> None:
    """Check that no judge is named twice, and that repeats have a model to ask.

    Two names are one judge if they lead to the same verdicts of humans, or to one model at one server.
    """
    names: dict[str, str] = {}
    for name in spec.judge:
        if name in judges.models:
            identity = judges.models[name][0].identity
        elif name in judges.humans:
            identity = _digest(judges.humans[name].verdicts)
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
    """Check that every model judge takes the images that it is sent."""
    scorers = by_question(task.benchmark.scorers(task.options.benchmark), ModelScorer)
    needs_images = any(scorer.needs_images for scorer in scorers.values())
    for name, models in judges.models.items():
        if needs_images and not models[0].capabilities.images:
            raise UserError(
                f"the judge {name} does not accept images",
                expected="a judge that accepts images, or a judge prompt without images",
            )


def _digest(verdicts: Iterable[Verdict]) -> str:
    return hashlib.sha256(b"\n".join(map(verdict_line, verdicts))).hexdigest()


def _check_likelihood(spec: Spec, model: Model) -> None:
    """Raise UserError where the model cannot choose an option, or sampling options cannot have an effect."""
    if not model.capabilities.likelihood:
        raise UserError(
            f"{model.name} does not report how likely an answer is",
            expected="a local model (hf/...), or no --set answer_by=likelihood",
        )
    option = "--gen" if spec.gen else "--preset" if spec.preset else "--repeats" if spec.repeats > 1 else None
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
    images = sum([isinstance(part, ImageRef) for message in probe.messages for part in message.parts])
    if sees_images and images and not able.images:
        raise _unfit(probe, f"{model.name} does not accept images", "a setting without images, or --augment")
    if sees_images and images > 1 and not able.several_images:
        raise _unfit(probe, f"{model.name} accepts one image per request", "a setting with one image")
    if not able.system_role and any(message.role == "system" for message in probe.messages):
        raise _unfit(probe, f"{model.name} does not accept system messages", "a model that accepts them")


def _unfit(probe: Probe, message: str, expected: str) -> UserError:
    return UserError(message, record=f"{probe.sample} {probe.variant}", expected=expected)
