"""What a judge report rests on: answers, and the verdicts of judges and of people on them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import answer_cases
from sightline.benchmarks.text_metrics import NAMES
from sightline.errors import UserError
from sightline.formats.files import json_records, read_bytes
from sightline.formats.jsonl import read_outcomes
from sightline.formats.read import read_predictions
from sightline.formats.run_metadata import METRICS, RunMetadata, read_run_metadata
from sightline.formats.verdict_flags import Partly, apply_partly, contradictions
from sightline.formats.verdicts import read_verdicts, verdict_line
from sightline.judging.import_answers import import_answers
from sightline.judging.judges import RulesJudge
from sightline.judging.text_metrics import TextMeasures
from sightline.plan.effective import effective, setting_of, variant_of
from sightline.plan.spec import Spec
from sightline.registry import benchmark as find_benchmark
from sightline.types import Group, Labels, Outcome, Verdict

ANSWERS, VERDICTS = "answers.jsonl", "verdicts.jsonl"

MEASURES = (*NAMES, "embedder")
"""What of a run's versions says whose numbers the scores of its answers are."""


class Item(Struct, frozen=True):
    """An answer that may be judged. `responders` gave it: several where files hold it under several names,
    '' where none says who. `scores` are numbers of it by name, such as text metrics."""

    key: str
    variant: str
    cluster: str
    responders: tuple[str, ...] = ("",)
    labels: Labels = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)


class JudgeData(Struct, frozen=True):
    """Answers, each once, with the verdicts of judges and of people on the question `correct`.

    `versions` says whose numbers the text metrics are, `notes` what a reader must know of the verdicts.
    """

    items: list[Item]
    judges: list[Verdict]
    humans: list[Verdict]
    versions: Mapping[str, str] = field(default_factory=dict)
    benchmarks: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)


class _Given(Struct, frozen=True):
    """An answer: who gave it, and to which benchmark, '' where no file says so."""

    responder: str
    benchmark: str
    outcome: Outcome


_Options = Mapping[str, Any]


class _Found(Struct):
    """What was read so far: answers; verdicts, each with the options under which its judge is known to have
    judged; by metric whose numbers there are, and the file that says so; of which benchmarks."""

    answers: list[_Given] = field(default_factory=list)
    verdicts: list[tuple[Verdict, _Options]] = field(default_factory=list)
    versions: dict[str, dict[str, Path]] = field(default_factory=lambda: defaultdict(dict))
    benchmarks: dict[str, None] = field(default_factory=dict)


def read_judge_data(
    sources: Sequence[str],
    human: Sequence[str],
    spec: Spec,
    *,
    partly: Partly = "wrong",
    texts: TextMeasures | None = None,
) -> JudgeData:
    """The testimony in results folders, verdicts.jsonl files and files of answers that carry verdicts.

    Beside a verdicts.jsonl its folder's answers.jsonl and metrics.json are read, where they are there. What
    the answers of any other file are to is said by the spec's task and data, and the rules of that benchmark
    judge them. People's verdicts are those of kind `person`, of the sources and of the `human` files alike.
    Where any answers are known, verdicts on others are left out, and the notes say how many. `texts` measures
    the answers that have references. A model that judged under several options (the image shown or not) is
    several judges: the scorers of its verdicts name them. UserError where a file is neither, or where folders
    were measured by different models under one name.
    """
    found = _Found()
    for source in dict.fromkeys(sources):
        _read(Path(source), spec, found)
    measured = texts.identities if texts is not None else {}
    versions = {**_versions(found.versions, measured), **measured}
    answers = found.answers if texts is None else list(_measured(found.answers, texts))
    for file in human:
        found.verdicts += [(verdict, {}) for verdict in read_verdicts(Path(file))]
    verdicts = _each_once(_named_by_options(found.verdicts))
    said = [one for one in verdicts if one.kind == "human"]
    judges = [one for one in verdicts if one.kind != "human"]
    items = _items(answers, [*judges, *said])
    judges, strange = _on(items, judges)
    said, unknown = _on(items, said)
    humans = apply_partly(said, partly)
    return JudgeData(
        items=items,
        judges=judges,
        humans=humans,
        versions=versions,
        benchmarks=tuple(found.benchmarks),
        notes=[*unknown, *strange, *_notes(said, partly)],
    )


def _read(source: Path, spec: Spec, found: _Found) -> None:
    if source.is_dir() or _holds_verdicts(source):
        _read_folder(source, found)
    else:
        _read_answers(source, spec, found)


def _read_folder(source: Path, found: _Found) -> None:
    """A results folder, or a verdicts file with what lies beside it."""
    folder, file = (source, source / VERDICTS) if source.is_dir() else (source.parent, source)
    if not file.is_file():
        raise UserError(f"holds no {VERDICTS}", file=source, expected="a results folder (--out)")
    run = read_run_metadata(folder)
    # A run whose answers nobody judged has an empty file.
    for verdict in read_verdicts(file) if file.stat().st_size else ():
        options = _judging(run, verdict.judge) if run is not None and verdict.kind == "model" else {}
        found.verdicts.append((verdict, options))
    responder = benchmark = ""
    if run is not None:
        responder, benchmark = run.model, run.benchmark
        found.benchmarks[benchmark] = None
        for name, what in run.versions.items():
            if name in MEASURES:
                found.versions[name].setdefault(what, folder / METRICS)
    if (folder / ANSWERS).is_file():
        # Without metrics.json the answers were imported, and say whose they are where their file did.
        found.answers += [
            _Given(responder or outcome.version or folder.name, benchmark, outcome)
            for outcome in read_outcomes(folder / ANSWERS)
        ]


def _read_answers(file: Path, spec: Spec, found: _Found) -> None:
    """Answers that carry verdicts, in any layout; the rules of their benchmark judge them too."""
    if not spec.task:
        raise UserError(
            "holds no verdicts as verdicts.jsonl has them",
            file=file,
            expected="a results folder, a verdicts.jsonl, or --task for answers that carry verdicts",
        )
    benchmark = find_benchmark(spec.task.partition(":")[0])
    found.benchmarks[benchmark.name] = None
    setting = setting_of(benchmark, spec.task)
    rules = RulesJudge(benchmark, effective(benchmark, setting, spec).benchmark)
    variant = variant_of(benchmark, setting)
    predictions = read_predictions(file, benchmark.answer_files, setting=variant, allow_missing=True)
    for one in import_answers(replace(spec, allow_missing=True), predictions, file):
        outcome = one.outcome
        found.answers.append(_Given(one.model, benchmark.name, outcome))
        found.verdicts += [(verdict, {}) for verdict in one.verdicts]
        if outcome.status == "ok" and outcome.references:
            found.verdicts += [
                (verdict, {}) for case in answer_cases(_group(outcome)) for verdict in rules.decide(case, {})
            ]


def _holds_verdicts(file: Path) -> bool:
    """Whether the first record of a file is a verdict; one that is no JSON is a table of answers."""
    content = read_bytes(file)
    if content.lstrip()[:1] not in (b"{", b"["):
        return False
    rows = json_records(content, file)
    return bool(rows) and "targets" in rows[0][1]


def _judging(run: RunMetadata, judge: str) -> _Options:
    """The options under which a model judged: those of the benchmark, and its sampling."""
    options = {name: value for name, value in run.options.items() if name.startswith("judge_")}
    options["judge_sampling"] = (options.get("judge_sampling") or {}).get(judge)
    return {name: value for name, value in options.items() if value is not None}


def _named_by_options(verdicts: Sequence[tuple[Verdict, _Options]]) -> Iterator[Verdict]:
    """The verdicts; where a judge has judged under several values of an option, their scorers say which."""
    met: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for verdict, options in verdicts:
        for name, value in options.items():
            met[verdict.judge, verdict.scorer][name].add(_told(value))
    for verdict, options in verdicts:
        differ = [name for name, values in met[verdict.judge, verdict.scorer].items() if len(values) > 1]
        said = [f"{name}={_told(options[name]) if name in options else 'unknown'}" for name in differ]
        yield replace(verdict, scorer=", ".join([verdict.scorer, *said]))


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _versions(versions: Mapping[str, Mapping[str, Path]], anew: Collection[str]) -> dict[str, str]:
    """Whose numbers there are, by metric. UserError where they are of several and not measured `anew`."""
    for name, files in versions.items():
        if len(files) > 1 and name not in anew:
            (first, _), (other, file), *_ = files.items()
            again = f", or --set text_metrics={name}, which measures all alike" if name in NAMES else ""
            raise UserError(
                "the numbers of these folders are of different models",
                file=file,
                field=f"versions.{name}",
                found=other,
                expected=f"{first}, as in the folders before{again}",
            )
    return {name: what for name, files in versions.items() for what in files}


def _measured(answers: Sequence[_Given], texts: TextMeasures) -> Iterator[_Given]:
    groups = [_group(given.outcome) for given in answers]
    texts.prepare(groups)
    for given, group in zip(answers, texts.measured(groups), strict=True):
        yield replace(given, outcome=group.outcomes[0])


def _group(outcome: Outcome) -> Group:
    return Group(outcome.sample, outcome.draw, outcome.cluster, (outcome,))


def _each_once(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts on whether one answer is right, without those that several files repeat word for word."""
    single = (one for one in verdicts if one.question == "correct" and len(one.targets) == 1)
    return list({verdict_line(one): one for one in single}.values())


def _items(answers: Sequence[_Given], verdicts: Sequence[Verdict]) -> list[Item]:
    """The answers, each once. Where no file holds any, those that the verdicts are on, every one its own
    cluster."""
    if not answers:
        named = dict.fromkeys((verdict.targets[0], verdict.variant) for verdict in verdicts)
        # A verdict that does not say its variant is on each that others name.
        said = {key for key, variant in named if variant}
        return [Item(key, variant, key) for key, variant in named if variant or key not in said]
    found: dict[tuple[str, str], Item] = {}
    for given, cluster in zip(answers, _clusters(answers), strict=True):
        outcome = given.outcome
        name = (outcome.key, outcome.variant)
        new = Item(*name, cluster, (given.responder,), outcome.labels, outcome.scores)
        known = found.get(name, new)
        names = tuple(dict.fromkeys(filter(None, (*known.responders, given.responder))))
        scores = {**known.scores, **outcome.scores}
        found[name] = replace(known, responders=names or ("",), scores=scores)
    return list(found.values())


def _clusters(answers: Sequence[_Given]) -> list[str]:
    """The cluster of each answer. Files that know the image name it by its digest, others by its path or by
    the sample: samples of one benchmark that share any such name, directly or by way of others, are one. What
    files do not say is of the only benchmark that others name."""
    above: dict[str, str] = {}
    named = {given.benchmark for given in answers if given.benchmark}
    unsaid = named.pop() if len(named) == 1 else ""
    samples = [f"sample of {given.benchmark or unsaid}: {given.outcome.sample}" for given in answers]

    def top(name: str) -> str:
        while (next_ := above.setdefault(name, name)) != name:
            name = next_
        return name

    for given, sample in zip(answers, samples, strict=True):
        image = given.outcome.cluster or given.outcome.sample
        above[top(sample)] = top(f"image of {given.benchmark or unsaid}: {image}")
    return [top(sample) for sample in samples]


def _on(items: Sequence[Item], verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[str]]:
    """The verdicts on these answers, and of the judges of others how many of theirs are on none of them."""
    known = {name for item in items for name in ((item.key, item.variant), (item.key, ""))}
    kept = [verdict for verdict in verdicts if (verdict.targets[0], verdict.variant) in known]
    given, held = (Counter(verdict.judge for verdict in some) for some in (verdicts, kept))
    return kept, [
        f"{count - held[judge]:,} of {count:,} verdicts by {judge} are on none of these answers"
        for judge, count in given.items()
        if held[judge] < count
    ]


def _notes(said: Sequence[Verdict], partly: Partly) -> list[str]:
    """What is said of partly right answers, and of verdicts that their own source contradicts."""
    notes = []
    partial = len(said) - len(apply_partly(said, "left-out"))
    if partial:
        how = "count as wrong" if partly == "wrong" else "are left out"
        notes.append(f"{partial:,} verdicts of people read 'partially correct' and {how} (--partly)")
    if disputed := contradictions(said):
        notes.append(f"{len(disputed):,} verdicts are contradicted by a second mark: {'; '.join(disputed)}")
    return notes
