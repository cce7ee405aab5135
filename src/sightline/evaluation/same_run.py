"""Refuses to put a run in the place of another one: its folder, or its name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.benchmarks.registry import export_formats
from sightline.errors import UserError, some_of
from sightline.evaluation.folder import FILES, SWEEP, is_sweep, sweep_task
from sightline.evaluation.options import EvaluationDescription, judge_names
from sightline.formats.digests import texts_of_data_digest
from sightline.formats.files import read_bytes
from sightline.formats.run_metadata import METRICS, UNFINISHED
from sightline.text import decode_json

REMEDY = "another --out, or --force to replace them"

REUSE = frozenset({"fingerprint", "accept_changed", "fresh"})
"""Options on the reuse of cached answers: a run may be repeated with others."""

ANSWERED_BY = frozenset(
    {"model_identity", "sampling", "model_arg", "model_id", "augment", "repeats", "data_digest"}
)
"""What `run` records about the origin of its answers and the data; `score` may not know it."""

SHOWN = 3
"""Differences that a message lists."""

NAMES = {
    "model_identity": "identity of the model",
    "judge": "judges",
    "other_data": "records that the paper did not release",
}
"""Names of messages, where they are not the names of the options."""


class _WrittenResult(Struct, frozen=True):
    """The part of metrics.json that identifies a run."""

    benchmark: str
    setting: str
    model_identity: str
    judge: str
    options: Mapping[str, Any]
    ids_digest: str = ""
    data_digest: str = ""


def refuse_other_run(out: Path, description: EvaluationDescription, scored: Path | None = None) -> None:
    """Refuse a folder with files that another run wrote, or that no run wrote.

    The same run may write its results again: benchmark, setting, identity of the model, judges, options and
    samples are equal, in any order; more samples of the same data may be run. Where a
    digest of the data is unknown, the ids of the samples are compared.
    """
    if not out.is_dir() or not (present := {path.name for path in out.iterdir()}):
        return
    if is_sweep(out):
        raise UserError("holds the results of a sweep", file=out, expected=REMEDY)
    recorded = next((out / name for name in (UNFINISHED, METRICS) if name in present), None)
    if recorded is None:
        # `export_formats` imports all benchmarks, so it is called only if there may be a file to name.
        if replaced := present & {*FILES, *(one.file for one in export_formats().values())}:
            names = ", ".join(sorted(replaced))
            raise UserError(f"holds {names}, but no {METRICS} of a run", file=out, expected=REMEDY)
        return
    ignored = frozenset[str]()
    if scored is not None and scored.resolve().parent == out.resolve():
        ignored = ANSWERED_BY
    if different := _differences(_identity_of_result(recorded), _identity(description), ignored):
        raise UserError(
            f"holds the results of another run: {some_of(different, SHOWN)}", file=out, expected=REMEDY
        )


def refuse_name_of_other_run(
    name: str, run: int, before: EvaluationDescription, description: EvaluationDescription
) -> None:
    """Refuse a name that belongs to another evaluation. The same run, as for a folder, may take it."""
    if different := _differences(_identity(before), _identity(description)):
        raise UserError(
            f"the name '{name}' belongs to run {run}, another evaluation: {some_of(different, SHOWN)}",
            expected=f"another --name, or `sightline runs rename {name} NEW` first",
        )


def refuse_other_sweep(out: Path, task: str) -> None:
    if (out / METRICS).exists():
        raise UserError("holds the results of a run", file=out, expected=REMEDY)
    if is_sweep(out) and (found := sweep_task(out)) != task:
        raise UserError(
            "holds a sweep of another task", file=out / SWEEP, found=found, expected=f"{task}; {REMEDY}"
        )


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], ignored: Collection[str] = frozenset()
) -> list[str]:
    """How two runs differ beyond their reuse of answers, the order of samples, and a larger --limit."""
    omitted = {*REUSE, *ignored}
    if not (before["data_digest"] and now["data_digest"]):
        omitted.add("data_digest")
    if not before["ids_digest"] or (
        "data_digest" not in omitted and before["data_digest"] == now["data_digest"]
    ):
        omitted.add("ids_digest")
    elif before["ids_digest"] != now["ids_digest"]:
        omitted.add("data_digest")
    if _extends(before, now):
        omitted |= {"limit", "ids_digest", "data_digest"}
    compared = [name for name in dict.fromkeys([*now, *before]) if name not in omitted]
    differences = (_difference(name, before.get(name), now.get(name)) for name in compared)
    return [one for one in differences if one]


def _extends(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a run covers the first samples, to which --limit restricted an earlier one, and more."""
    earlier, limit = before.get("limit"), now.get("limit")
    return earlier is not None and not before.get("shuffle") and (limit is None or limit > earlier)


def _difference(name: str, before: Any, now: Any) -> str:
    if before == now:
        return ""
    if name == "ids_digest":
        return "other samples"
    if name == "data_digest":
        return "other data of the same samples (questions, references, labels)"
    switch = isinstance(before, bool) or isinstance(now, bool)
    return f"{NAMES.get(name, name)} {_text(before, switch)} instead of {_text(now, switch)}"


def _text(value: Any, switch: bool) -> str:
    """A value as messages show it; a switch that is off is recorded as None."""
    if switch and value in (None, True, False):
        return "on" if value else "off"
    if value is None:
        return "none"
    return repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _identity_of_result(file: Path) -> dict[str, Any]:
    written = decode_json(read_bytes(file), _WrittenResult, file, "the result of a run", expected=REMEDY)
    fields = msgspec.structs.asdict(written)
    options = fields.pop("options")
    return {**fields, "data_digest": texts_of_data_digest(written.data_digest), **options}


def _identity(description: EvaluationDescription) -> dict[str, Any]:
    recorded: dict[str, Any] = msgspec.to_builtins(description.options)
    return {
        "benchmark": description.benchmark,
        "setting": description.setting,
        "model_identity": description.identity,
        "judge": judge_names(description),
        **recorded,
        "ids_digest": description.ids_digest,
        "data_digest": texts_of_data_digest(description.data_digest),
    }
