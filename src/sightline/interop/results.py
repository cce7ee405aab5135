"""Answers in the formats of other tools; runs as logs of inspect_ai, for Every Eval Ever and for the Hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark_class, export_formats
from sightline.errors import UserError, needs_extra, unknown_name
from sightline.evaluation.run_tables import FORMS, write_tables
from sightline.evaluation.spec import Spec, spec_data_folder
from sightline.formats.files import refuse_overwriting, refuse_unwritable, text_digest, write_atomically
from sightline.formats.jsonl import ANSWERS, counted_notes, export
from sightline.images import data_url
from sightline.interop.exported import (
    RUN_BY,
    Exported,
    exported_run,
    iso_time,
    public_judge,
    public_judges,
    public_task,
)
from sightline.reporting.tables import leading_metrics
from sightline.types import ImageFile, MetricValue, Outcome, Result, Usage, Verdict

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults, EvalSample
    from inspect_ai.model import ContentImage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score


class RunFormat(NamedTuple):
    """A format of whole runs: `write` writes it and returns what it cannot hold, the worst first.

    Its last argument is --force.
    """

    summary: str
    write: Callable[[Exported, Path, bool], list[str]]
    is_folder: bool = False


def export_answers(
    answers: str,
    layout: str,
    out: str,
    *,
    url: str,
    data: str | None = None,
    model: str = "",
    dataset: str = "",
    force: bool = False,
) -> list[str]:
    """Write an answers.jsonl, or that of a results folder, in a format; or a whole run in one of FORMATS.

    Args:
        answers: The file, or its folder; for tables and FORMATS a run of the store, or a results folder.
        out: The file to write; for tables a folder.
        layout: The name of the format.
        data: The data folder, for formats that repeat its records, or the images.
        model: The name of the model, for formats that hold it; '' takes that of the results.
        dataset: The data set on the Hugging Face Hub, ORG/NAME:TASK, for formats that name it.

    Returns:
        What the format cannot hold, a sentence each, the worst first.
    """
    # `--help` lists the formats of this module, and reads no run.
    from sightline.evaluation.compare import judged_run
    from sightline.evaluation.reports import opened_runs

    path = Path(out)
    if layout in FORMS or layout in FORMATS:
        if layout in FORMATS and not FORMATS[layout].is_folder:
            refuse_unwritable(path.parent)
            path.parent.mkdir(parents=True, exist_ok=True)
            refuse_overwriting(path, force)
        with opened_runs([answers], url) as ((name,), store):
            if layout in FORMS:
                write_tables(judged_run(store, name), layout, path, force=force)
                return []
            run = exported_run(store, name, data, model, dataset)
        return FORMATS[layout].write(run, path, force)
    layouts = export_formats()
    if layout not in layouts:
        raise unknown_name("layout", layout, [*layouts, *FORMATS, *FORMS])
    file = Path(answers, ANSWERS) if Path(answers).is_dir() else Path(answers)
    refuse_overwriting(path, force, read=[file])
    return export(file, layouts[layout], path, spec_data_folder(Spec(task="", data=data)), model)


# -- Logs of inspect_ai: what `read_eval_log` opens, `inspect view` shows, and `sightline score` reads back


def _write_inspect_log(run: Exported, out: Path, force: bool) -> list[str]:
    if out.suffix not in (".eval", ".json"):
        raise UserError("is no name of a log of inspect_ai", file=out, expected="a name with .eval or .json")
    with needs_extra("inspect", "a log of inspect_ai needs inspect_ai, which is not installed", out):
        from inspect_ai.log import write_eval_log
    write_eval_log(_eval_log(run), out)
    missing = {image.path for images in run.images.values() for image in images if image.file is None}
    return [
        *counted_notes(
            (len(missing), "images were not found as they were sent: the log holds their paths only"),
            (
                sum(one.status == "not_sent" for one in run.outcomes),
                "probes that were not sent stand in the log as samples with the error 'not sent'",
            ),
        ),
        "inspect shows the metrics of all samples; those of subsets are in the metadata of the results only",
        *run.notes(),
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
        # As inspect ends a log whose run was stopped; it has no status for one with --limit.
        status="cancelled" if result.not_sent else "success",
        eval=EvalSpec(
            created=run.when,
            task=f"sightline/{result.benchmark}",
            task_id=result.data_digest,
            task_args={"setting": result.setting},
            dataset=EvalDataset(
                name=f"{result.benchmark}:{result.setting}", samples=len(ids), sample_ids=ids
            ),
            model=run.model,
            model_generate_config=GenerateConfig(
                **{name: sampling[name] for name in sampling if name in GenerateConfig.model_fields}
            ),
            config=EvalConfig(
                epochs=max((one.draw for one in run.outcomes), default=0) + 1,
                limit=result.options.get("limit"),
            ),
            packages={"sightline": str(result.versions["sightline"]), "inspect_ai": version("inspect_ai")},
            metadata={"judge": result.judge, "options": result.options, "notes": result.notes},
        ),
        results=_eval_results(run),
        stats=EvalStats(
            started_at=run.when,
            completed_at=iso_time(run.end),
            model_usage={run.model: sum(_all_usage(samples), start=_model_usage(Usage()))},
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
                "images": [
                    {"path": image.path, **({"sha256": image.digest} if image.digest else {})}
                    for image in images
                ],
                # What `sightline score` reads: the line of answers.jsonl without its texts of the model.
                "probe": {"group": one.sample, **line},
            },
            model_usage={run.model: output.usage} if output.usage is not None else {},
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


# -- Every Eval Ever 0.3: an aggregate file, and a line for each answer, where its datastore wants them

EEE_VERSION = "0.3.0"

_NOT_KNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
"""What its validator wants of a model, and no run knows."""


def _write_every_eval_ever(run: Exported, out: Path, force: bool) -> list[str]:
    """Write `data/BENCHMARK/DEVELOPER/MODEL/UUID.json` and its `_samples.jsonl` below `out`."""
    first, *rest = run.model.split("/")
    # How a model was run is no part of its name: hf/ORG/NAME.
    parts = rest if first in RUN_BY else [first, *rest]
    if len(parts) < 2 or not all(map(_EEE_NAME.fullmatch, parts)):
        raise UserError(
            "Every Eval Ever names a model as DEVELOPER/NAME",
            found=run.model,
            expected="--model DEVELOPER/NAME",
        )
    result = run.result
    # The same run gets the same file again.
    identity = [run.model, result.model_identity, result.judge, result.options, result.data_digest, run.time]
    digest = hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).digest()
    file = UUID(bytes=digest[:16], version=4)
    model = "/".join(parts)
    folder = PurePosixPath("data", result.benchmark, parts[0], "_".join(parts[1:]))
    (out / folder).mkdir(parents=True, exist_ok=True)
    # Who evaluated stands in the file by hand.
    refuse_overwriting(out / folder / f"{file}.json", force)
    retrieved = f"{int(time())}"
    evaluation = f"{result.benchmark}/{model}/{retrieved}"
    lines = [
        _eee_line(run, one, {"evaluation_id": evaluation, "model_id": model})
        for one in run.outcomes
        if one.verdict != "unscored"
    ]
    samples = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    results = [_eee_result(run, one) for one in result.metrics if one.value is not None]
    log: dict[str, Any] = {
        "schema_version": EEE_VERSION,
        "evaluation_id": evaluation,
        "evaluation_timestamp": run.when,
        "retrieved_timestamp": retrieved,
        "source_metadata": {
            "source_name": "Sightline",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "sightline", "version": str(result.versions["sightline"])},
        "model_info": _eee_model(model, {"identity_sha256": text_digest(result.model_identity)}),
        "evaluation_results": results,
    }
    if lines:
        log["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": str(folder / f"{file}_samples.jsonl"),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(samples).hexdigest(),
            "total_rows": len(lines),
        }
    if lines:
        write_atomically(out / folder / f"{file}_samples.jsonl", [samples])
    write_atomically(out / folder / f"{file}.json", [msgspec.json.format(msgspec.json.encode(log), indent=1)])
    undecided = sum(one.verdict == "undecided" for one in run.outcomes)
    definitions = result.metric_definitions
    without_better = {
        one.metric
        for one in result.metrics
        if one.value is not None and one.metric in definitions and definitions[one.metric].better == "neither"
    }
    withheld = _withheld(result)
    return [
        *counted_notes(
            (len(run.outcomes) - len(lines), "answers without a verdict are left out"),
            (undecided, "undecided answers are not right in its lines; `verdict` in their metadata says so"),
            (len(result.metrics) - len(results), "metrics without a value are left out"),
            (
                len(without_better),
                "metrics are neither better higher nor lower: lower_is_better, which must be there, is false",
            ),
            (
                sum(bool(one.error) for one in run.outcomes),
                "texts of errors are left out, which may name addresses",
            ),
            (
                len(withheld),
                f"options are left out, which may name files or addresses: {', '.join(withheld)}",
            ),
        ),
        *run.unknown_images("have no digest in its lines"),
        *(["judge prompts are named, not quoted"] if run.judge_models else []),
        "a line is one answer and a metric counts groups: no line names the metric that it enters",
        "who evaluated is unknown: set source_organization_name and evaluator_relationship in the file",
        "another export of the run needs --force, which replaces the file",
        *run.notes(),
    ]


_EEE_NAME = re.compile(r'(?!\.)[^<>:"\\|?*\x00-\x1f/]*[^<>:"\\|?*\x00-\x1f/. ]')
"""A part of a model's name that is a portable name of a folder."""


def _eee_model(name: str, details: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "id": name, "additional_details": {**_NOT_KNOWN, **details}}


_LIMITS = ("errors", "undecided", "not_sent")
"""The counts of a run that limit what its values say."""


def _eee_result(run: Exported, value: MetricValue) -> dict[str, Any]:
    result, meaning = run.result, run.result.metric_definitions.get(value.metric)
    low, high = (meaning.range if meaning else None) or (None, None)
    details = {
        "subset": value.subset,
        "clusters": str(value.clusters),
        "better": meaning.better if meaning else "neither",
        "judge": public_judges(value.judge or result.judge),
        "n": f"{value.n:g}",
        "value_decided": "" if value.value_decided is None else str(value.value_decided),
        "value_if_right": "" if value.value_if_right is None else str(value.value_if_right),
    }
    uncertainty: dict[str, Any] = {"num_samples": int(value.n)} if value.n == int(value.n) else {}
    if value.low is not None and value.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": value.low,
            "upper": value.high,
            "confidence_level": 0.95,
            "method": f"{value.interval}, over {value.clusters} clusters",
        }
    return {
        "evaluation_result_id": f"{value.metric}:{value.subset}",
        "evaluation_name": public_task(result),
        "source_data": _eee_source(run),
        "evaluation_timestamp": run.when,
        "metric_config": {
            "evaluation_description": meaning.meaning if meaning else value.metric,
            "metric_id": f"sightline.{result.benchmark}.{value.metric}",
            "metric_name": value.metric,
            "metric_unit": value.unit,
            "lower_is_better": meaning is not None and meaning.better == "lower",
            "score_type": "continuous",
            "min_score": "-Infinity" if low is None else low,
            "max_score": "Infinity" if high is None else high,
            **_eee_judges(run, value),
            "additional_details": {name: text for name, text in details.items() if text},
        },
        "score_details": {
            "score": value.value,
            "details": {name: f"{getattr(result, name)}" for name in _LIMITS if getattr(result, name)},
            "uncertainty": uncertainty,
        },
        "generation_config": _eee_generation(result),
    }


def _eee_generation(result: Result) -> dict[str, Any]:
    sampling = result.options.get("sampling") or {}
    arguments = {
        name: sampling[name]
        for name in ("temperature", "top_p", "top_k", "max_tokens")
        if sampling.get(name) is not None
    }
    withheld = _withheld(result)
    return {
        "generation_args": arguments,
        "additional_details": {
            name: _text(value)
            for name, value in _options(result).items()
            if value is not None and name not in arguments and name not in withheld
        },
    }


def _text(value: Any) -> str:
    """A value where the schema wants texts only."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# -- What leaves for everybody to read: no path and no address of the user's

_PUBLIC_TEXTS = frozenset({"split", "decide", "reasoning_effort", "verbosity", "detail"})
"""The options whose texts leave, beside the choices and defaults of a benchmark, numbers and switches."""


def _options(result: Result) -> dict[str, Any]:
    options = {name: value for name, value in result.options.items() if name != "sampling"}
    return {**options, **(result.options.get("sampling") or {})}


def _withheld(result: Result) -> list[str]:
    declared = benchmark_class(result.benchmark).options
    return [
        name
        for name, value in _options(result).items()
        if not (
            value is None
            or isinstance(value, bool | int | float)
            or name in _PUBLIC_TEXTS
            or (name in declared and (declared[name].choices is not None or value == declared[name].default))
        )
    ]


def _eee_source(run: Exported) -> dict[str, Any]:
    result = run.result
    details = {"data_digest": result.data_digest}
    if run.dataset:
        return {
            "dataset_name": result.benchmark,
            "source_type": "hf_dataset",
            "hf_repo": run.dataset.partition(":")[0],
            "samples_number": result.samples,
            "additional_details": details,
        }
    release = benchmark_class(result.benchmark).release
    if release is None or result.options.get("other_data"):
        return {"dataset_name": result.benchmark, "source_type": "other", "additional_details": details}
    url = f"https://github.com/{release.repository}/tree/{release.revision}"
    return {
        "dataset_name": result.benchmark,
        "source_type": "url",
        "url": [url],
        "additional_details": details,
    }


def _eee_judges(run: Exported, value: MetricValue) -> dict[str, Any]:
    """The models that judged for a metric; rules and humans are in its details."""
    judges = [judge for judge in (value.judge or "").split(", ") if judge in run.judge_models]
    if not judges:
        return {}
    prompt = run.result.options.get("judge_prompt") or "that of the benchmark"
    return {
        "llm_scoring": {
            "judges": [{"model_info": _eee_model(public_judge(judge), {})} for judge in judges],
            "input_prompt": f"judge prompt of {run.result.benchmark} in sightline: {prompt}",
        }
    }


def _eee_line(run: Exported, outcome: Outcome, ids: Mapping[str, str]) -> dict[str, Any]:
    references = list(outcome.references)
    usage = outcome.usage
    metadata = {
        "group": outcome.sample,
        "variant": outcome.variant,
        "draw": outcome.draw,
        "cluster": outcome.cluster,
        "image_sha256": [image.digest for image in run.images[outcome.key] if image.digest],
        "labels": msgspec.to_builtins(outcome.labels),
        "verdict": outcome.verdict,
        "judge": public_judges(outcome.judge),
        "verdicts": [
            {"judge": public_judge(one.judge), "kind": one.kind, "draw": one.draw, "verdict": one.verdict}
            for one in run.verdicts.get(outcome.key, ())
        ],
    }
    line: dict[str, Any] = {
        "schema_version": EEE_VERSION,
        **ids,
        "evaluation_name": public_task(run.result),
        "sample_id": outcome.sample,
        "sample_hash": hashlib.sha256((outcome.question + "".join(references)).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": outcome.question, "reference": references},
        "output": {"raw": [outcome.response] if outcome.answered else []},
        "answer_attribution": [],
        "evaluation": {
            "score": float(outcome.scores.get("score", outcome.right)),
            "is_correct": outcome.right,
        },
        "metadata": {name: _text(value) for name, value in metadata.items()},
    }
    if outcome.prompt:
        line["input"]["formatted"] = outcome.prompt
    if outcome.options:
        line["input"]["choices"] = list(outcome.options)
    if outcome.reasoning:
        line["output"]["reasoning_trace"] = [outcome.reasoning]
    if outcome.extracted is not None:
        line["answer_attribution"] = [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": outcome.extracted,
                "extraction_method": public_judges(outcome.judge),
                "is_terminal": True,
            }
        ]
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        line["token_usage"] = {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            "input_tokens_cache_read": usage.cached_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        }
    if outcome.latency:
        line["performance"] = {"latency_ms": outcome.latency * 1000}
    if outcome.error:
        line["error"] = outcome.status
    return line


# -- Hugging Face: `.eval_results/NAME.yaml` of a model's repository, with the types of huggingface_hub


def _write_hub_results(run: Exported, out: Path, force: bool) -> list[str]:
    """Write the headline metric as the result of one task of a benchmark data set of the Hub."""
    with needs_extra("hub", "results for the Hub need huggingface_hub, which is not installed", out):
        import yaml
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    result = run.result
    dataset, _, task = run.dataset.partition(":")
    if dataset.count("/") != 1 or not task:
        raise UserError(
            "a result on the Hub names a data set and one of the tasks in its eval.yaml",
            found=run.dataset or None,
            expected="--dataset ORG/NAME:TASK",
        )
    missing = [
        *([f"{result.not_sent:,} not sent"] if result.not_sent else []),
        *(f"--{name} {value}" for name, value in run.selection.items()),
    ]
    if missing and not force:
        raise UserError(
            "the run is incomplete, and a result on the Hub counts as one on the whole data set",
            found="; ".join(missing),
            expected="a complete run, or --force, which names this in `notes`",
        )
    (name, *_) = leading_metrics(result.benchmark, [result.metrics])
    value = next(one for one in result.metrics if (one.metric, one.subset) == (name, "all"))
    if value.value is None:
        raise UserError(f"{name} has no value: {value.reason}", expected="a run with one")
    between = "no 95 % CI"
    if value.low is not None and value.high is not None:
        between = f"95 % CI {value.low:.2f} to {value.high:.2f} ({value.interval})"
    counted = ((result.errors, "errors"), (result.undecided, "undecided"))
    limits = [*(f"{n:,} {what}" for n, what in counted if n), *missing]
    of_probes = f"of {result.probes:,} probes {', '.join(limits)}; " if limits else ""
    notes = (
        f"{public_task(result)} {name}, {value.unit}; n {value.n:g} in {value.clusters} clusters; "
        f"{between}; {of_probes}judge {public_judges(result.judge)}; sightline {result.versions['sightline']}"
    )
    entry = EvalResultEntry(dataset_id=dataset, task_id=task, value=value.value, date=run.when, notes=notes)
    text = yaml.safe_dump(
        eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True, width=1000
    )
    write_atomically(out, [text.encode()])
    others = sum(one.value is not None for one in result.metrics) - 1
    return [
        *counted_notes((others, f"values are left out: a file of the Hub has one value, here {name}")),
        f"the value is in {value.unit}, as `notes` say; results on the Hub are percentages or shares",
        "n, interval and judge stand in `notes`, because the format has no fields for them",
    ]


FORMATS: Mapping[str, RunFormat] = {
    "inspect": RunFormat("a log that `inspect view` opens: FILE.eval or FILE.json", _write_inspect_log),
    "eee": RunFormat(
        f"Every Eval Ever {EEE_VERSION}: a folder with data/BENCHMARK/DEVELOPER/MODEL/",
        _write_every_eval_ever,
        is_folder=True,
    ),
    "hf-eval-results": RunFormat(
        "the headline as .eval_results/NAME.yaml of a model on the Hugging Face Hub", _write_hub_results
    ),
}
"""The formats of whole runs, by the name in --as."""
