"""Reading the sources of a judge report: results folders, verdict files, and answers with verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from sightline.benchmarks.base import answer_cases
from sightline.benchmarks.text_metrics import NAMES
from sightline.decoding import json_records
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.jsonl import read_outcomes
from sightline.formats.read import read_predictions
from sightline.formats.run_metadata import read_run_metadata
from sightline.formats.verdicts import read_recorded_verdicts
from sightline.formats.whole_results import METRICS
from sightline.judging.import_answers import import_answers
from sightline.judging.judges import RulesJudge
from sightline.plan.effective import effective, setting_of, variant_of
from sightline.plan.spec import Spec
from sightline.registry import benchmark as find_benchmark
from sightline.types import Group, Outcome, Verdict

ANSWERS, VERDICTS = "answers.jsonl", "verdicts.jsonl"

MEASURES = (*NAMES, "embedder")
"""The versions in metrics.json that identify the models behind the scores of answers."""


class AttributedAnswer(Struct, frozen=True):
    """An answer with the model that gave it and its benchmark, '' if no file names one."""

    responder: str
    benchmark: str
    outcome: Outcome


class JudgeSources(Struct):
    """The content of all sources.

    Each verdict comes with the options under which its judge judged, as far as they are known. `versions`
    maps a metric to the models that measured it, each with the file or the run that names it.
    """

    answers: list[AttributedAnswer] = field(default_factory=list)
    verdicts: list[tuple[Verdict, Mapping[str, Any]]] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    benchmarks: dict[str, None] = field(default_factory=dict)


def read_source(source: Path, spec: Spec, read: JudgeSources) -> None:
    if source.is_dir() or _holds_verdicts(source):
        _read_folder(source, read)
    else:
        _read_answers(source, spec, read)


def single_answer_group(outcome: Outcome) -> Group:
    return Group(outcome.sample, outcome.draw, outcome.cluster, (outcome,))


def judge_options(options: Mapping[str, Any], judge: str) -> Mapping[str, Any]:
    """Choose the options under which a model judged: those of the benchmark, and its sampling."""
    found = {name: value for name, value in options.items() if name.startswith("judge_")}
    found["judge_sampling"] = (found.get("judge_sampling") or {}).get(judge)
    return {name: value for name, value in found.items() if value is not None}


def _read_folder(source: Path, read: JudgeSources) -> None:
    """Read a results folder, or a verdicts file and its folder."""
    folder, file = (source, source / VERDICTS) if source.is_dir() else (source.parent, source)
    if not file.is_file():
        raise UserError(f"contains no {VERDICTS}", file=source, expected="a results folder (--out)")
    run = read_run_metadata(folder)
    # A run without judged answers has an empty file.
    for verdict in read_recorded_verdicts(file):
        options = judge_options(run.options, verdict.judge) if run and verdict.kind == "model" else {}
        read.verdicts.append((verdict, options))
    responder = benchmark = ""
    if run is not None:
        responder, benchmark = run.model, run.benchmark
        read.benchmarks[benchmark] = None
        for name, model in run.versions.items():
            if name in MEASURES:
                read.versions[name].setdefault(model, str(folder / METRICS))
    if (folder / ANSWERS).is_file():
        # Without metrics.json the answers were imported; their version is the model, if the file named it.
        read.answers += [
            AttributedAnswer(responder or outcome.version or folder.name, benchmark, outcome)
            for outcome in read_outcomes(folder / ANSWERS)
        ]


def _read_answers(file: Path, spec: Spec, read: JudgeSources) -> None:
    """Read answers that carry verdicts, in any layout; the rules of their benchmark judge them too."""
    if not spec.task:
        raise UserError(
            "contains no verdicts in the format of verdicts.jsonl",
            file=file,
            expected="a results folder, a verdicts.jsonl, or --task for answers that carry verdicts",
        )
    benchmark = find_benchmark(spec.task.partition(":")[0])
    read.benchmarks[benchmark.name] = None
    setting = setting_of(benchmark, spec.task)
    rules = RulesJudge(benchmark, effective(benchmark, setting, spec).benchmark)
    variant = variant_of(benchmark, setting)
    predictions = read_predictions(file, benchmark.answer_files, setting=variant, allow_missing=True)
    for one in import_answers(replace(spec, allow_missing=True), predictions, file):
        outcome = one.outcome
        read.answers.append(AttributedAnswer(one.model, benchmark.name, outcome))
        read.verdicts += [(verdict, {}) for verdict in one.verdicts]
        if outcome.status == "ok" and outcome.references:
            for case in answer_cases(single_answer_group(outcome)):
                read.verdicts += [(verdict, {}) for verdict in rules.decide(case, {})]


def _holds_verdicts(file: Path) -> bool:
    """Whether the first record of a file is a verdict; a file that is not JSON is a table of answers."""
    content = read_bytes(file)
    if content.lstrip()[:1] not in (b"{", b"["):
        return False
    records = json_records(content, file)
    return bool(records) and "targets" in records[0][1]
