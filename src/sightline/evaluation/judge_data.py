"""The data of a judge report: runs of the store, results folders, and files, with the verdicts of humans."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replace_options
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import NAMES, answer_cases
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.errors import UserError
from sightline.evaluation.folder import is_stored
from sightline.evaluation.judges import JudgedGroup, RulesJudge, human_verdicts
from sightline.evaluation.measures import TextMeasures
from sightline.evaluation.options import effective, setting_of, variant_of
from sightline.evaluation.result import recompute
from sightline.evaluation.runs import find_run, name_or_number
from sightline.evaluation.score import import_answers, read_answers
from sightline.evaluation.spec import Spec
from sightline.formats.files import read_bytes
from sightline.formats.jsonl import (
    ANSWERS,
    METRICS,
    VERDICTS,
    Partly,
    apply_partly,
    contradictions,
    read_outcomes,
    read_recorded_verdicts,
    read_run_metadata,
    verdict_line,
)
from sightline.store.store import Store
from sightline.text import json_records
from sightline.types import Group, Labels, Outcome, Verdict


def read_judge_data(
    sources: Sequence[str],
    human: Sequence[str],
    spec: Spec,
    *,
    partly: Partly = "wrong",
    texts: TextMeasures | None = None,
) -> JudgeData:
    """Read runs, results folders, verdicts.jsonl files, and files of answers that carry verdicts.

    With a verdicts.jsonl, the answers.jsonl and metrics.json of its folder are read too, if they exist. The
    rules of a stored run decide again; nothing is sent. If any source holds answers, verdicts on other
    answers are left out and counted in a note. A model that judged under several options (with and without
    the image) counts as several judges: the scorers of its verdicts name the options.

    Args:
        texts: Text metrics to measure on answers with references; None uses those of the sources.
    """
    read = JudgeSources()
    for source in dict.fromkeys(sources):
        if is_stored(source, spec.store) and not Path(source).exists():
            _read_run(source, spec.store, read)
        else:
            read_source(Path(source), spec, read)
    measured = texts.identities if texts is not None else {}
    versions = {**_one_version_each(read.versions, measured), **measured}
    attributed = read.answers if texts is None else list(_measure(read.answers, texts))
    further: list[tuple[Verdict, Mapping[str, Any]]] = [
        (verdict, {}) for word in human for verdict in human_verdicts(word, spec.store)
    ]
    # The first decision of a human on an answer counts. Judges stay in the order of the sources.
    first = [one for one in further if one[0].kind == "human"]
    verdicts = _distinct(_with_options_in_scorer([*first, *read.verdicts, *further]))
    humans = [verdict for verdict in verdicts if verdict.kind == "human"]
    judges = [verdict for verdict in verdicts if verdict.kind != "human"]
    answers = _judged_answers(attributed, [*judges, *humans])
    judges, judge_notes = _on_answers(answers, judges)
    humans, human_notes = _on_answers(answers, humans)
    return JudgeData(
        answers=answers,
        judges=judges,
        humans=apply_partly(humans, partly),
        versions=versions,
        benchmarks=tuple(read.benchmarks),
        notes=[*human_notes, *judge_notes, *_flag_notes(humans, partly)],
    )


def _read_run(word: str, url: str, read: JudgeSources) -> None:
    store = Store.open(url, create=False)
    try:
        judged: list[JudgedGroup] = []
        number = find_run(store, word)
        result = recompute(store, number, on_group=judged.append)
        name = name_or_number(store, number)
    finally:
        store.close()
    read.benchmarks[result.benchmark] = None
    for measure, model in result.versions.items():
        if measure in MEASURES:
            read.versions[measure].setdefault(model, name)
    for group, verdicts in judged:
        read.answers += [AttributedAnswer(result.model, result.benchmark, one) for one in group.outcomes]
        for verdict in verdicts:
            options = judge_options(result.options, verdict.judge) if verdict.kind == "model" else {}
            read.verdicts.append((verdict, options))


# -- The data of a judge report: answers, and the verdicts of judges and humans on them


class JudgedAnswer(Struct, frozen=True):
    """An answer that judges or humans may have judged.

    `responders` are the models that gave the answer: several if files hold it under several names, '' if no
    file names one. `scores` are numbers of the answer by name, such as text metrics. `sample` is '' if no
    file names it.
    """

    key: str
    variant: str
    cluster: str
    responders: tuple[str, ...] = ("",)
    labels: Labels = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    sample: str = ""


class JudgeData(Struct, frozen=True, kw_only=True):
    """Distinct answers, with the verdicts of judges and of humans on the question `correct`.

    `versions` holds the identities of the models behind the text metrics by name, `notes` what a reader must
    know about the verdicts.
    """

    answers: list[JudgedAnswer]
    judges: list[Verdict]
    humans: list[Verdict]
    versions: Mapping[str, str] = field(default_factory=dict)
    benchmarks: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)


def _with_options_in_scorer(verdicts: Sequence[tuple[Verdict, Mapping[str, Any]]]) -> Iterator[Verdict]:
    """The verdicts; if a judge judged under several values of an option, the scorer names the value."""
    values: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for verdict, options in verdicts:
        for name, value in options.items():
            values[verdict.judge, verdict.scorer][name].add(_text(value))
    for verdict, options in verdicts:
        by_name = values[verdict.judge, verdict.scorer]
        differing = [name for name, several in by_name.items() if len(several) > 1]
        named = [f"{name}={_text(options[name]) if name in options else 'unknown'}" for name in differing]
        yield replace(verdict, scorer=", ".join([verdict.scorer, *named]))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _one_version_each(
    versions: Mapping[str, Mapping[str, str]], remeasured: Collection[str]
) -> dict[str, str]:
    """The model behind each metric. UserError if a metric has several and is not measured again."""
    for name, files in versions.items():
        if len(files) > 1 and name not in remeasured:
            (first, _), (other, file), *_ = files.items()
            remedy = f", or --set text_metrics={name} to measure all of them again" if name in NAMES else ""
            raise UserError(
                "different models measured the scores of these answers",
                file=file,
                field=f"versions.{name}",
                found=other,
                expected=f"{first}, as in the first source{remedy}",
            )
    return {name: model for name, files in versions.items() for model in files}


def _measure(answers: Sequence[AttributedAnswer], texts: TextMeasures) -> Iterator[AttributedAnswer]:
    groups = [single_answer_group(answer.outcome) for answer in answers]
    texts.prepare(groups)
    for answer, group in zip(answers, texts.measured(groups), strict=True):
        yield replace(answer, outcome=group.outcomes[0])


def _distinct(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts on whether one answer is correct, without exact repetitions."""
    single = (one for one in verdicts if one.question == "correct" and len(one.targets) == 1)
    return list({verdict_line(one): one for one in single}.values())


def _judged_answers(
    attributed: Sequence[AttributedAnswer], verdicts: Sequence[Verdict]
) -> list[JudgedAnswer]:
    """The distinct answers. Without any, those that the verdicts name, each in a cluster of its own."""
    if not attributed:
        named = dict.fromkeys((verdict.targets[0], verdict.variant) for verdict in verdicts)
        # A verdict without a variant applies to each variant that other verdicts name.
        with_variant = {key for key, variant in named if variant}
        return [
            JudgedAnswer(key, variant, key) for key, variant in named if variant or key not in with_variant
        ]
    answers: dict[tuple[str, str], JudgedAnswer] = {}
    for one, cluster in zip(attributed, _clusters(attributed), strict=True):
        outcome = one.outcome
        name = (outcome.key, outcome.variant)
        new = JudgedAnswer(*name, cluster, (one.responder,), outcome.labels, outcome.scores, outcome.sample)
        before = answers.get(name, new)
        responders = tuple(dict.fromkeys(filter(None, (*before.responders, one.responder))))
        scores = {**before.scores, **outcome.scores}
        answers[name] = replace(before, responders=responders or ("",), scores=scores)
    return list(answers.values())


def _clusters(answers: Sequence[AttributedAnswer]) -> list[str]:
    """The cluster of each answer.

    Some files name the image by its digest, others by its path or by the sample. Samples of one benchmark
    that share any of these names, directly or through others, form one cluster. An answer without a
    benchmark belongs to the only benchmark that other answers name.
    """
    parents: dict[str, str] = {}
    benchmarks = {answer.benchmark for answer in answers if answer.benchmark}
    default = benchmarks.pop() if len(benchmarks) == 1 else ""
    samples = [f"sample of {answer.benchmark or default}: {answer.outcome.sample}" for answer in answers]

    def root(name: str) -> str:
        while (parent := parents.setdefault(name, name)) != name:
            name = parent
        return name

    for answer, sample in zip(answers, samples, strict=True):
        image = answer.outcome.cluster or answer.outcome.sample
        parents[root(sample)] = root(f"image of {answer.benchmark or default}: {image}")
    return [root(sample) for sample in samples]


def _on_answers(
    answers: Sequence[JudgedAnswer], verdicts: Sequence[Verdict]
) -> tuple[list[Verdict], list[str]]:
    names = {name for one in answers for name in ((one.key, one.variant), (one.key, ""))}
    fitting = [verdict for verdict in verdicts if (verdict.targets[0], verdict.variant) in names]
    total, matched = (Counter(verdict.judge for verdict in some) for some in (verdicts, fitting))
    return fitting, [
        f"{count - matched[judge]:,} of {count:,} verdicts by {judge} belong to none of these answers"
        for judge, count in total.items()
        if matched[judge] < count
    ]


def _flag_notes(humans: Sequence[Verdict], partly: Partly) -> list[str]:
    """Notes on partly correct answers, and on verdicts that their own source contradicts."""
    notes = []
    partial = len(humans) - len(apply_partly(humans, "left-out"))
    if partial:
        how = "count as wrong" if partly == "wrong" else "are left out"
        notes.append(f"{partial:,} human verdicts are 'partially correct' and {how} (--partly)")
    if disputed := contradictions(humans):
        notes.append(f"{len(disputed):,} verdicts are contradicted by a second mark: {'; '.join(disputed)}")
    return notes


# -- Reading the sources of a judge report: results folders, verdict files, and answers with verdicts

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
    spec = replace_options(spec, allow_missing=True)
    predictions = read_answers(spec, benchmark, variant_of(benchmark, setting), file)
    for one in import_answers(spec, predictions, file):
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
