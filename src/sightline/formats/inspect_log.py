"""Logs of inspect_ai: `.eval` files and its JSON format, read by inspect_ai itself (the extra `inspect`).

A sample of our own tasks holds the probe that it asks (`interop/inspect_scores.py`). A sample of other tasks
names the benchmark's sample by its id, and the variant in its metadata. An epoch is a draw.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError
from sightline.formats.prediction import Prediction, PredictionFile, identifier, variant_of
from sightline.types import Usage

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ModelOutput

_JSON_LOG = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":')

_UNREAD = {"messages", "events", "store"}
"""Fields that hold most of a log and no answer."""


def is_inspect_log(path: Path, content: bytes) -> bool:
    """Check whether a file is a log of inspect_ai."""
    return path.suffix == ".eval" or _JSON_LOG.match(content) is not None


def read_inspect_log(source: PredictionFile) -> list[Prediction]:
    """Read an answer of each sample and epoch."""
    log = _log(source.path)
    return [_prediction(sample, log.eval.model, source) for sample in log.samples or ()]


def _log(path: Path) -> EvalLog:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise UserError(
            f"is a log of inspect_ai, which needs {error.name}",
            file=path,
            expected="pip install 'sightline[inspect]'",
        ) from None
    form: Any = "eval" if path.suffix == ".eval" else "json"
    try:
        return read_eval_log(path, resolve_attachments="core", format=form, exclude_fields=_UNREAD)
    except Exception as error:  # Its readers raise errors of zipfile, json and pydantic.
        raise UserError(f"inspect_ai cannot read this log: {error}", file=path) from None


def _prediction(sample: EvalSample, model: str, source: PredictionFile) -> Prediction:
    location = source.at(f"{sample.id}, epoch {sample.epoch}")
    metadata = sample.metadata or {}
    probe = metadata.get("probe")
    named = probe if isinstance(probe, dict) else {"sample": sample.id, **metadata}
    known = source.conventions.sample_id
    found = known([named["sample"], *metadata.values()]) if known and named is not probe else None
    output = sample.output
    return Prediction(
        sample=found or identifier(named["sample"], "id", location),
        variant=variant_of(named.get("variant"), source, location),
        draw=sample.epoch - 1,
        response="" if output.empty else output.completion,
        error=_error(sample) if output.empty else None,
        finish_reason="" if output.empty else _finish_reason(output),
        version=output.model,
        usage=_usage(output),
        model=model,
    )


def _error(sample: EvalSample) -> str:
    return (sample.error.message if sample.error else sample.output.error) or "no answer was recorded"


def _finish_reason(output: ModelOutput) -> str:
    return "length" if output.stop_reason == "max_tokens" else output.stop_reason


def _usage(output: ModelOutput) -> Usage:
    return Usage() if output.usage is None else Usage(output.usage.input_tokens, output.usage.output_tokens)
