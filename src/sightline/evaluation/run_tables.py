"""A run as tables for an analysis of your own: its answers, groups and metrics, in CSV or Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.errors import UserError, needs_extra
from sightline.evaluation.folder import JudgedRun, group_metrics
from sightline.formats.files import refuse_unwritable, write_atomically
from sightline.formats.tables import csv_bytes
from sightline.metrics.tally import group_values
from sightline.types import Group, Labels, Metric, Outcome

Row = Mapping[str, Any]


def answer_row(outcome: Outcome) -> dict[str, Any]:
    scores = {f"score {name}": value for name, value in outcome.scores.items()}
    return {
        "sample": outcome.sample,
        "variant": outcome.variant,
        "draw": outcome.draw,
        "verdict": outcome.verdict,
        "response": outcome.response,
        "extracted": outcome.extracted,
        "references": list(outcome.references),
        "options": list(outcome.options),
        "question": outcome.question,
        "context": outcome.context,
        "status": outcome.status,
        "error": outcome.error,
        "judge": outcome.judge,
        "images": list(outcome.images),
        "prompt": outcome.prompt,
        "key": outcome.key,
        **_labels(outcome.labels),
        **scores,
    }


def group_row(group: Group, metrics: Sequence[Metric]) -> dict[str, Any]:
    """A group with its leading metrics; None where it alone has no value, or was not sent completely."""
    values = group_values(group, metrics) if group.sent else [None] * len(metrics)
    return {
        "sample": group.id,
        "draw": group.draw,
        "variant": group.pooled,
        "cluster": group.cluster,
        "answers": len(group),
        "right": sum(outcome.right for outcome in group),
        **_labels(group.labels),
        **dict(zip((metric.name for metric in metrics), values, strict=True)),
    }


def _labels(labels: Labels) -> dict[str, str]:
    """A column for each label; several values of one are joined, so that all cells of a column are texts."""
    return {
        f"label {name}": value if isinstance(value, str) else "; ".join(value)
        for name, value in labels.items()
    }


def _metric_rows(run: JudgedRun) -> Iterator[Row]:
    for metric in run.result.metrics:
        fields = msgspec.structs.asdict(metric)
        yield {name: value for name, value in fields.items() if name != "published"}


# -- The files: a folder with answers, groups and metrics


def write_tables(run: JudgedRun, form: str, out: Path, *, force: bool) -> None:
    """Write answers, groups and metrics of a run to a folder, a file each; `form` is one of FORMS."""
    files = [out / f"{name}.{form}" for name in ("answers", "groups", "metrics")]
    refuse_unwritable(out)
    for file in files:
        if file.exists() and not force:
            raise UserError("exists already", file=file, expected="another --out, or --force")
    metrics = group_metrics(find_benchmark(run.result.benchmark), run.result.options)
    # The tables of several runs can be put below each other.
    about = {
        "run": run.name,
        **{name: getattr(run.result, name) for name in ("benchmark", "setting", "model")},
    }
    tables: tuple[list[Row], ...] = (
        [answer_row(outcome) for group in run.groups.values() for outcome in group],
        [group_row(group, metrics) for group in run.groups.values()],
        list(_metric_rows(run)),
    )
    out.mkdir(parents=True, exist_ok=True)
    for file, of_run in zip(files, tables, strict=True):
        rows = [{**about, **row} for row in of_run]
        # Rows lack the columns of labels that their samples lack.
        FORMS[form](file, list(dict.fromkeys(name for row in rows for name in row)), rows)


def _write_csv(file: Path, names: Sequence[str], rows: Sequence[Row]) -> None:
    lines = ([_cell(row.get(name)) for name in names] for row in rows)
    write_atomically(file, [csv_bytes([names]), *(csv_bytes([line]) for line in lines)])


def _cell(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def _write_parquet(file: Path, names: Sequence[str], rows: Sequence[Row]) -> None:
    with needs_extra("table", "a Parquet file needs pyarrow, which is not installed", file):
        import pyarrow
        from pyarrow import parquet
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in names})
    stream = pyarrow.BufferOutputStream()
    parquet.write_table(table, stream)
    write_atomically(file, [stream.getvalue().to_pybytes()])


FORMS: Mapping[str, Callable[[Path, Sequence[str], Sequence[Row]], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
}
