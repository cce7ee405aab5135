"""Answers in the formats of other tools, and runs as their files: logs of inspect_ai."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.registry import export_formats
from sightline.errors import UserError, needs_extra, unknown_name
from sightline.evaluation.run_tables import FORMS, write_tables
from sightline.evaluation.spec import Spec, spec_data_folder
from sightline.formats.files import refuse_overwriting
from sightline.formats.jsonl import ANSWERS, METRICS, VERDICTS, counted_notes, export, read_recorded_verdicts
from sightline.images import data_url
from sightline.reporting.tables import leading_metrics
from sightline.types import ImageFile, Outcome, Result, Usage, Verdict

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults, EvalSample
    from inspect_ai.model import ContentImage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

    from sightline.evaluation.compare import RunName
    from sightline.evaluation.run_images import RunImages
    from sightline.store.store import Store


class SentImage(NamedTuple):
    """An image of an answer: its digest, '' if it is unknown, and its file, None if it was not found."""

    path: str
    digest: str
    file: ImageFile | None


class Exported(Struct, frozen=True):
    """A run with all that its files for other tools hold.

    `verdicts` are those of every judge on one answer, by its key; `about_several` counts those on several
    answers together. `images` are those of each answer. `time` is when the run began, of a results folder
    when it was written, in seconds since 1970.
    """

    result: Result
    outcomes: Sequence[Outcome]
    verdicts: Mapping[str, Sequence[Verdict]]
    about_several: int
    images: Mapping[str, Sequence[SentImage]]
    time: float

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.time, UTC).isoformat(timespec="seconds")

    def notes(self) -> list[str]:
        """What no format of this module holds."""
        missing = {image.path for images in self.images.values() for image in images if image.file is None}
        return counted_notes(
            (len(missing), "images were not found as they were sent: the file holds their paths only"),
            (
                sum(one.first is not None for one in self.outcomes),
                "truncated answers that were sent again are left out: the second answers count",
            ),
            (self.about_several, "verdicts on several answers together are left out"),
        )


class RunFormat(NamedTuple):
    """A format of whole runs: `write` writes it and returns what it cannot hold, the worst first."""

    summary: str
    write: Callable[[Exported, Path], list[str]]


def export_answers(
    answers: str,
    layout: str,
    out: str,
    *,
    url: str,
    data: str | None = None,
    model: str = "",
    force: bool = False,
) -> list[str]:
    """Write an answers.jsonl, or that of a results folder, in a format; or a whole run in one of FORMATS.

    Args:
        answers: The file, or its folder; for tables and FORMATS a run of the store, or a results folder.
        out: The file to write; for tables a folder.
        layout: The name of the format.
        data: The data folder, for formats that repeat its records, or the images.
        model: The name of the model, for formats that hold it; '' takes that of the results.

    Returns:
        What the format cannot hold, a sentence each, the worst first.
    """
    # `--help` lists the formats of this module, and reads no run.
    from sightline.evaluation.compare import judged_run
    from sightline.evaluation.reports import opened_runs

    path = Path(out)
    if layout in FORMS or layout in FORMATS:
        if layout in FORMATS:
            refuse_overwriting(path, force)
        with opened_runs([answers], url) as ((name,), store):
            if layout in FORMS:
                write_tables(judged_run(store, name), layout, path, force=force)
                return []
            run = _exported(store, name, data)
        return [*FORMATS[layout].write(run, path), *run.notes()]
    layouts = export_formats()
    if layout not in layouts:
        raise unknown_name("layout", layout, [*layouts, *FORMATS, *FORMS])
    file = Path(answers, ANSWERS) if Path(answers).is_dir() else Path(answers)
    refuse_overwriting(path, force, read=[file])
    return export(file, layouts[layout], path, spec_data_folder(Spec(task="", data=data)), model)


def _exported(store: Store | None, name: RunName, data: str | None) -> Exported:
    from sightline.evaluation.compare import judged_run
    from sightline.evaluation.run_images import RunImages
    from sightline.evaluation.runs import read_stored_run

    verdicts: list[Verdict] = []
    run = judged_run(store, name, lambda judged: verdicts.extend(judged.verdicts))
    folders = [Path(data)] if data else []
    if isinstance(name, Path):
        verdicts = read_recorded_verdicts(name / VERDICTS)
        time = (name / METRICS).stat().st_mtime
    else:
        assert store is not None
        folders += map(Path, read_stored_run(store, name).folders)
        time = store.runs.row(name).created
    of_answer: dict[str, dict[tuple[str, int], Verdict]] = {}
    for one in verdicts:
        if len(one.targets) == 1:
            of_answer.setdefault(one.targets[0], {})[one.judge, one.draw] = one
    outcomes = [outcome for group in run.groups.values() for outcome in group]
    return Exported(
        result=run.result,
        outcomes=outcomes,
        verdicts={key: list(found.values()) for key, found in of_answer.items()},
        about_several=sum(len(one.targets) > 1 for one in verdicts),
        images=_images(outcomes, RunImages(store, folders), None if isinstance(name, Path) else store),
        time=time,
    )


def _images(
    outcomes: Sequence[Outcome], folders: RunImages, store: Store | None
) -> dict[str, tuple[SentImage, ...]]:
    keys = sorted({one.key for one in outcomes if one.images})
    digests = store.answers.images(keys) if store is not None and keys else {}
    found: dict[tuple[str, str], SentImage] = {}
    images: dict[str, tuple[SentImage, ...]] = {}
    for one in outcomes:
        sent = digests.get(one.key) or ("",) * len(one.images)
        for path, digest in zip(one.images, sent, strict=True):
            if (path, digest) not in found:
                found[path, digest] = _image(path, digest, folders)
        images[one.key] = tuple(found[pair] for pair in zip(one.images, sent, strict=True))
    return images


def _image(path: str, digest: str, folders: RunImages) -> SentImage:
    from sightline.evaluation.run_images import ImageError

    try:
        file = folders.find(path, digest)
    except ImageError:
        return SentImage(path, digest, None)
    return SentImage(path, file.digest, file)


# -- Logs of inspect_ai: what `read_eval_log` opens, `inspect view` shows, and `sightline score` reads back


def _write_inspect_log(run: Exported, out: Path) -> list[str]:
    if out.suffix not in (".eval", ".json"):
        raise UserError("is no name of a log of inspect_ai", file=out, expected="a name with .eval or .json")
    with needs_extra("inspect", "a log of inspect_ai needs inspect_ai, which is not installed", out):
        from inspect_ai.log import write_eval_log
    write_eval_log(_eval_log(run), out)
    return [
        *counted_notes(
            (
                sum(one.status == "not_sent" for one in run.outcomes),
                "probes that were not sent stand in the log as samples with the error 'not sent'",
            )
        ),
        "inspect shows the metrics of all samples; those of subsets are in the metadata of the results only",
    ]


def _eval_log(run: Exported) -> EvalLog:
    from importlib.metadata import version

    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, EvalStats
    from inspect_ai.model import GenerateConfig

    result = run.result
    sampling = result.options.get("sampling") or {}
    ids = list(dict.fromkeys(map(_sample_id, run.outcomes)))
    samples = list(_eval_samples(run))
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=run.when,
            task=f"sightline/{result.benchmark}",
            task_id=result.data_digest,
            task_args={"setting": result.setting},
            dataset=EvalDataset(
                name=f"{result.benchmark}:{result.setting}", samples=len(ids), sample_ids=ids
            ),
            model=result.model,
            model_generate_config=GenerateConfig(
                **{name: sampling[name] for name in sampling if name in GenerateConfig.model_fields}
            ),
            config=EvalConfig(epochs=max((one.draw for one in run.outcomes), default=0) + 1),
            packages={"sightline": str(result.versions["sightline"]), "inspect_ai": version("inspect_ai")},
            metadata={"judge": result.judge, "options": result.options, "notes": result.notes},
        ),
        results=_eval_results(run),
        stats=EvalStats(
            started_at=run.when,
            completed_at=run.when,
            model_usage={result.model: sum(_all_usage(samples), start=_model_usage(Usage()))},
        ),
        samples=samples,
    )


def _all_usage(samples: Sequence[EvalSample]) -> Iterator[ModelUsage]:
    return (sample.output.usage for sample in samples if sample.output.usage is not None)


def _eval_results(run: Exported) -> EvalResults:
    """The metrics of all samples under the names that the tasks of this package use, with their bounds."""
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore, HeadlineMetric

    from sightline.interop.inspect_tasks import shown_values

    result = run.result
    of_all = {one.metric: one for one in result.metrics if one.subset == "all"}
    values = shown_values(result)
    leading = leading_metrics(result.benchmark, [result.metrics])
    first = [f"{name}{end}" for name in leading for end in ("", "_low", "_high", "_n")]
    metrics = {
        name: EvalMetric(
            name=name,
            value=values[name],  # type: ignore[arg-type]
            metadata=msgspec.to_builtins(of_all[name]) if name in of_all else None,
        )
        for name in dict.fromkeys([*first, *values])
        if name in values
    }
    return EvalResults(
        total_samples=len(run.outcomes),
        completed_samples=sum(one.answered for one in run.outcomes),
        scores=[EvalScore(name="verdict", scorer="verdict", metrics=metrics)],
        headline=HeadlineMetric(scorer="verdict", metric=next(iter(metrics), None)),
        metadata={
            "metrics": msgspec.to_builtins(result.metrics),
            "metric_definitions": msgspec.to_builtins(result.metric_definitions),
        },
    )


def _sample_id(outcome: Outcome) -> str:
    return f"{outcome.sample}/{outcome.variant}"


def _eval_samples(run: Exported) -> Iterator[EvalSample]:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ChatMessageUser, ContentText

    urls: dict[str, ContentImage] = {}
    for one in run.outcomes:
        images = run.images[one.key]
        shown = [_content_image(image.file, urls) for image in images if image.file is not None]
        message = ChatMessageUser(content=[*shown, ContentText(text=one.prompt or one.question)])
        output = _output(one)
        line = msgspec.to_builtins(replace(one, response="", reasoning="", first=None))
        yield EvalSample(
            id=_sample_id(one),
            epoch=one.draw + 1,
            input=[message],
            choices=list(one.options) or None,
            target=list(one.references),
            messages=[message, *(choice.message for choice in output.choices)],
            output=output,
            scores={"verdict": _score(one, run.verdicts.get(one.key, ()))},
            metadata={
                "group": one.sample,
                "variant": one.variant,
                "draw": one.draw,
                "cluster": one.cluster,
                "images": [{"path": image.path, "sha256": image.digest} for image in images],
                # What `sightline score` reads: the line of answers.jsonl without its texts of the model.
                "probe": {"group": one.sample, **line},
            },
            model_usage={run.result.model: output.usage} if output.usage is not None else {},
            total_time=one.latency or None,
            working_time=one.latency or None,
            error=None
            if one.answered
            else EvalError(message=one.error or "no answer", traceback="", traceback_ansi=""),
        )


def _content_image(file: ImageFile, urls: dict[str, ContentImage]) -> ContentImage:
    from inspect_ai.model import ContentImage

    if file.digest not in urls:
        urls[file.digest] = ContentImage(image=data_url(file).decode())
    return urls[file.digest]


_STOP_REASONS: Mapping[str, Any] = {"": "unknown", "stop": "stop", "length": "max_tokens"}


def _output(outcome: Outcome) -> ModelOutput:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
    )

    if not outcome.answered:
        return ModelOutput(model=outcome.version, error=outcome.error)
    content: Any = outcome.response
    if outcome.reasoning:
        content = [ContentReasoning(reasoning=outcome.reasoning), ContentText(text=outcome.response)]
    message = ChatMessageAssistant(content=content, model=outcome.version or None, source="generate")
    stop = _STOP_REASONS.get(outcome.finish_reason, "unknown")
    return ModelOutput(
        model=outcome.version,
        choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=None if outcome.usage == Usage() else _model_usage(outcome.usage),
        time=outcome.latency or None,
    )


def _model_usage(usage: Usage) -> ModelUsage:
    """Tokens as inspect counts them: those of the prompt without cached ones."""
    from inspect_ai.model import ModelUsage

    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return ModelUsage(
        input_tokens=prompt - (usage.cached_tokens or 0),
        output_tokens=completion,
        total_tokens=prompt + completion,
        input_tokens_cache_read=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def _score(outcome: Outcome, verdicts: Sequence[Verdict]) -> Score:
    from inspect_ai.scorer import Score

    from sightline.interop.inspect_tasks import score_of

    replies = [f"{one.judge}: {one.raw}" for one in verdicts if one.kind == "model" and one.raw]
    score = score_of(outcome, {"judge": outcome.judge, "verdicts": msgspec.to_builtins(verdicts)})
    return Score(
        value=score.value,
        answer=score.answer,
        explanation="\n\n".join([score.explanation or "", *replies]),
        metadata=score.metadata,
    )


FORMATS: Mapping[str, RunFormat] = {
    "inspect": RunFormat("a log that `inspect view` opens: FILE.eval or FILE.json", _write_inspect_log),
}
"""The formats of whole runs, by the name in --as."""
