"""What an evaluation is, made of what was prepared: its description and notes for the reader, its judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.evaluation.judges import Judge, JudgePanel, ModelJudge, RulesJudge, make_panel
from sightline.evaluation.options import EvaluationDescription, JudgeModel, reasoning_names
from sightline.evaluation.prepare import Prepared, PreparedModels, PreparedTask
from sightline.evaluation.spec import Spec, recorded_options
from sightline.formats.export import counted_notes
from sightline.formats.files import is_synthetic
from sightline.formats.jsonl import as_asked, prompt_text
from sightline.formats.prediction import Prediction
from sightline.models.base import Model
from sightline.scoring.scorer import JUDGE_SAMPLING
from sightline.types import Origin, Probe, Repeated


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
        **_image_processor(models),
        "judge_sampling": sampling or None,
        "split": task.split,
        **recorded_options(spec),
        **{
            name: getattr(spec, name) for name in _OF_FILES if getattr(spec, name) not in (False, "error", {})
        },
        **({"reasoning_tags": list(reasoning_names(spec))} if spec.reasoning_tags else {}),
        **({"retry_truncated": spec.retry_truncated} if spec.retry_truncated is not None else {}),
        **(models.replacement.options if models.replacement else {"augment": None}),
        "synthetic": is_synthetic(task.folder) or None,
        "other_data": prepared.survey.is_foreign or None,
    }


_OF_FILES = ("allow_missing", "only_answered", "repeated", "columns")
"""The options of `score` on its file, which are recorded where they are given."""


def _image_processor(models: PreparedModels) -> dict[str, Any]:
    """What a local model's processor makes of images, where it sees them."""
    sees = models.replacement is None and models.models
    sizes = models.models[0].capabilities.image_processor if sees else {}
    return {"image_processor": dict(sizes)} if sizes else {}


def model_identity(prepared: Prepared) -> str:
    spec, models = prepared.spec, prepared.models
    if not models.models:
        return spec.model_id or spec.model
    identity = models.models[0].identity
    return identity if models.replacement is None else f"{identity} {models.replacement.identity}"


def _sampling_notes(prepared: Prepared) -> list[str]:
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
    task = prepared.task
    if not any(model.capabilities.replays for model in prepared.models.models):
        return []
    return recorded_notes(replayed(prepared.models.models[0], task, prepared.spec.repeats), task.name)


# -- What a file of answers says, or does not say, about the probes that it answers


def replayed(model: Model, task: PreparedTask, draws: int) -> Iterator[tuple[Probe, Prediction]]:
    for sample in task.samples:
        for probe in task.benchmark.probes(sample, task.options.benchmark):
            for draw in range(draws):
                origin = Origin(
                    task.benchmark.name, task.setting, probe.sample, probe.variant, draw, probe.options
                )
                if (prediction := model.recorded(origin)) is not None:
                    yield probe, prediction


def doubts(predictions: Sequence[Prediction], counts: Repeated = "error") -> list[str]:
    """Notes on answers that the file repeats, of which one counts, and on doubtful responses."""
    doubtful = Counter(one.doubt for one in predictions if one.doubt)
    repeated = [one.repeated for one in predictions if one.repeated]
    return counted_notes(
        (
            sum(repeated),
            f"further answers of {len(repeated):,} probes are in the file and do not count "
            f"(--repeated {counts})",
        ),
        *((number, f"of {len(predictions):,} responses {doubt}") for doubt, number in doubtful.items()),
    )


def recorded_notes(
    recorded: Iterable[tuple[Probe, Prediction]], task: str, counts: Repeated = "error"
) -> list[str]:
    """Notes on what a file of answers says, or does not say, about the probes that it answers."""
    answers: list[Prediction] = []
    prompts, other_prompts, with_options, without_order, without_right = 0, 0, 0, 0, 0
    for probe, prediction in recorded:
        answers.append(prediction)
        asked = as_asked(probe, prediction)
        # With other options, the prompt of the setting is another one too.
        comparable = bool(prediction.prompt) and asked.options == probe.options
        prompts += comparable
        other_prompts += comparable and prediction.prompt != prompt_text(probe.messages)
        with_options += bool(probe.options)
        without_order += bool(probe.options) and not prediction.options
        without_right += bool(probe.references) and not asked.references
    return counted_notes(
        (other_prompts, f"of {prompts:,} prompts in the file are not those of {task}"),
        (
            without_order,
            f"of {with_options:,} answers come without the options that the model saw: the order of {task} "
            "is assumed and cannot be verified",
        ),
        (
            without_right,
            f"of {len(answers):,} answers have options in the file without the right one of the data: they "
            "have no reference",
        ),
    ) + doubts(answers, counts)


# -- The judges of an evaluation


def prepared_panel(prepared: Prepared) -> JudgePanel:
    benchmark, options = prepared.task.benchmark, prepared.task.options.benchmark
    judges: list[Judge] = []
    for name in prepared.spec.judge:
        if name in prepared.judges.models:
            model = judge_model(prepared, name)
            spec = prepared.spec
            judges.append(
                ModelJudge(name, model, benchmark, options, spec.judge_repeats, reasoning_names(spec))
            )
        elif name in prepared.judges.humans:
            judges.append(prepared.judges.humans[name])
        else:
            judges.append(RulesJudge(benchmark, options))
    return make_panel(benchmark, options, judges, prepared.spec.decide)


def judge_model(prepared: Prepared, name: str) -> JudgeModel:
    """What a model judge of an evaluation is called with, which the store keeps for each run."""
    model = prepared.judges.models[name][0]
    return JudgeModel(model.identity, judge_sampling(prepared.spec, model), model.capabilities.limits)
