"""What a result says about its evaluation: names, all effective options, and notes for the reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.evaluation.prepared import Prepared
from sightline.evaluation.provenance import recorded_notes, replayed
from sightline.formats.synthetic_marker import is_synthetic
from sightline.models.base import Model
from sightline.plan.spec import Spec, recorded_options
from sightline.results.description import EvaluationDescription
from sightline.scoring.scorer import JUDGE_SAMPLING


def describe_evaluation(prepared: Prepared, notes: list[str] | None = None) -> EvaluationDescription:
    spec, task = prepared.spec, prepared.task
    return EvaluationDescription(
        benchmark=task.benchmark.name,
        setting=task.setting,
        model=spec.model,
        identity=model_identity(prepared),
        judges=tuple(spec.judge),
        decide=spec.decide,
        judge_repeats=spec.judge_repeats,
        benchmark_options=task.options.benchmark,
        options=_effective_options(prepared),
        data_digest=prepared.survey.data_digest,
        ids_digest=prepared.survey.ids_digest,
        planned_samples=prepared.survey.samples,
        against=tuple(spec.against),
        notes=[
            *_sampling_notes(prepared),
            *_training_data_notes(prepared),
            *_replay_notes(prepared),
            *prepared.survey.left_out,
            *_check_notes(prepared),
            *(notes or []),
        ],
    )


def with_notes(description: EvaluationDescription, notes: Sequence[str]) -> EvaluationDescription:
    return replace(description, notes=[*description.notes, *notes])


def judge_sampling(spec: Spec, model: Model) -> dict[str, Any]:
    options = {**JUDGE_SAMPLING, **spec.judge_gen}
    return model.effective({name: value for name, value in options.items() if value is not None})


def _effective_options(prepared: Prepared) -> dict[str, Any]:
    spec, task, models = prepared.spec, prepared.task, prepared.models
    sampling = {name: judge_sampling(spec, judge[0]) for name, judge in prepared.judges.models.items()}
    return {
        **task.options.benchmark,
        "sampling": models.models[0].effective(task.options.sampling) if models.models else None,
        "judge_sampling": sampling or None,
        "split": task.split,
        **recorded_options(spec),
        **(models.replacement.options if models.replacement else {"augment": None}),
        "synthetic": is_synthetic(task.folder) or None,
        "other_data": prepared.survey.is_foreign or None,
    }


def model_identity(prepared: Prepared) -> str:
    """Find the identity of what answers."""
    spec, models = prepared.spec, prepared.models
    if not models.models:
        return spec.model_id or spec.model
    identity = models.models[0].identity
    return identity if models.replacement is None else f"{identity} {models.replacement.identity}"


def _sampling_notes(prepared: Prepared) -> list[str]:
    """The notes of the benchmark on the sampling options; none for answers from a file."""
    task = prepared.task
    if not prepared.models.models:
        return []
    return task.benchmark.sampling_notes(task.options.benchmark, task.options.sampling)


def _check_notes(prepared: Prepared) -> list[str]:
    """A note if --fingerprint off leaves endpoints unchecked."""
    if prepared.spec.fingerprint == "on":
        return []
    called = [*([prepared.models.models] if prepared.models.models else []), *prepared.judges.models.values()]
    names = [models[0].name for models in called if models[0].capabilities.endpoint]
    return [
        f"--fingerprint off: {name} was not checked: its cached answers may come from other weights"
        for name in names
    ]


def _training_data_notes(prepared: Prepared) -> list[str]:
    """Notes of the model on the data, for example that it was trained on some of these images."""
    models = prepared.models.models
    if not models:
        return []
    folders = prepared.survey.folders
    return [note for folder in folders if (note := models[0].training_overlap(Path(folder)))]


def _replay_notes(prepared: Prepared) -> list[str]:
    """The notes on the file of a model that replays answers."""
    task = prepared.task
    if not any(model.capabilities.replays for model in prepared.models.models):
        return []
    return recorded_notes(replayed(prepared.models.models[0], task, prepared.spec.repeats), task.name)
