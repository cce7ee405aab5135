"""What a judge report rests on: answers, and the verdicts of judges and of people on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.base import about
from sightline.errors import UserError
from sightline.evaluation.imported import imported
from sightline.evaluation.judges import Rules
from sightline.evaluation.spec import Spec, effective, setting_of, variant_of
from sightline.evaluation.text_metrics import TextMeasures
from sightline.formats.contextual_cases import Partly, contradicted, reading
from sightline.formats.files import json_rows, read_bytes
from sightline.formats.jsonl import read_outcomes
from sightline.formats.ran import ran_in
from sightline.formats.read import read_predictions
from sightline.formats.verdicts import read_verdicts
from sightline.registry import benchmark as find_benchmark
from sightline.types import Group, Labels, Outcome, Verdict

ANSWERS, VERDICTS = "answers.jsonl", "verdicts.jsonl"


class Item(Struct, frozen=True):
    """An answer that may be judged. `responders` gave it: several where files hold it under several names,
    '' where none says who. `scores` are numbers of it by name, such as text metrics."""

    key: str
    variant: str
    cluster: str
    responders: tuple[str, ...] = ("",)
    labels: Labels = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)


class Testimony(Struct, frozen=True):
    """Answers, each once, with the verdicts of judges and of people on the question `correct`.

    `versions` says whose numbers the text metrics are, `notes` what a reader must know of the verdicts.
    """

    items: list[Item]
    judges: list[Verdict]
    people: list[Verdict]
    versions: Mapping[str, str] = field(default_factory=dict)
    benchmarks: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)


class _Found(Struct):
    """What was read so far: outcomes with their responders, verdicts, whose numbers there are, of what."""

    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    benchmarks: dict[str, None] = field(default_factory=dict)


def read_testimony(
    sources: Sequence[str],
    human: Sequence[str],
    spec: Spec,
    *,
    partly: Partly = "wrong",
    texts: TextMeasures | None = None,
) -> Testimony:
    """The testimony in results folders, verdicts.jsonl files and files of answers that carry verdicts.

    Beside a verdicts.jsonl its folder's answers.jsonl and metrics.json are read, where they are there. What
    the answers of any other file are to is said by the spec's task and data, and the rules of that benchmark
    judge them. All verdicts of the `human` files are people's, and of the sources those of kind `person`.
    Where any answers are known, verdicts on others are left out, and the notes say how many. `texts` measures
    the answers that have references. UserError where a file is neither.
    """
    found = _Found()
    for source in dict.fromkeys(sources):
        _read(Path(source), spec, found)
    outcomes = found.outcomes if texts is None else list(_measured(found.outcomes, texts))
    theirs = [verdict for file in human for verdict in read_verdicts(Path(file))]
    said = _each_once([*(one for one in found.verdicts if one.kind == "person"), *theirs])
    judges = _each_once(one for one in found.verdicts if one.kind != "person")
    items = _items(outcomes, [*judges, *said])
    judges, strange = _on(items, judges)
    said, unknown = _on(items, said)
    people = reading(said, partly)
    return Testimony(
        items=items,
        judges=judges,
        people=people,
        versions={**found.versions, **(texts.identities if texts is not None else {})},
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
    # A run whose answers nobody judged has an empty file.
    if file.stat().st_size:
        found.verdicts += read_verdicts(file)
    responder = ""
    if (run := ran_in(folder)) is not None:
        responder = run.model
        found.benchmarks[run.benchmark] = None
        found.versions.update({name: what for name, what in run.versions.items() if isinstance(what, str)})
    if (folder / ANSWERS).is_file():
        # Without metrics.json the answers were imported, and say whose they are where their file did.
        found.outcomes += [
            (responder or outcome.version or folder.name, outcome)
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
    rules = Rules(benchmark, effective(benchmark, setting, spec).benchmark)
    variant = variant_of(benchmark, setting)
    predictions = read_predictions(file, benchmark=benchmark.name, setting=variant, allow_missing=True)
    for outcome, model, verdicts in imported(replace(spec, allow_missing=True), predictions, file):
        found.outcomes.append((model, outcome))
        found.verdicts += verdicts
        if outcome.status == "ok" and outcome.references:
            found.verdicts += [
                verdict for case in about(_group(outcome)) for verdict in rules.decide(case, {})
            ]


def _holds_verdicts(file: Path) -> bool:
    """Whether the first record of a file is a verdict; one that is no JSON is a table of answers."""
    content = read_bytes(file)
    if content.lstrip()[:1] not in (b"{", b"["):
        return False
    rows = json_rows(content, file)
    return bool(rows) and "targets" in rows[0][1]


def _measured(outcomes: Sequence[tuple[str, Outcome]], texts: TextMeasures) -> Iterator[tuple[str, Outcome]]:
    groups = [_group(outcome) for _, outcome in outcomes]
    texts.prepare(groups)
    for (responder, _), group in zip(outcomes, texts.measured(groups), strict=True):
        yield responder, group.outcomes[0]


def _group(outcome: Outcome) -> Group:
    return Group(outcome.group, outcome.draw, outcome.cluster, (outcome,))


def _each_once(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts on whether one answer is right, without those that several files repeat."""
    single = (one for one in verdicts if one.question == "correct" and len(one.targets) == 1)
    return list({(one.judge, one.scorer, one.targets, one.variant, one.draw): one for one in single}.values())


def _items(outcomes: Sequence[tuple[str, Outcome]], verdicts: Sequence[Verdict]) -> list[Item]:
    """The answers, each once. Where no file holds any, those that the verdicts are on, every one its own
    cluster."""
    if not outcomes:
        named = dict.fromkeys((verdict.targets[0], verdict.variant) for verdict in verdicts)
        # A verdict that does not say its variant is on each that others name.
        said = {key for key, variant in named if variant}
        return [Item(key, variant, key) for key, variant in named if variant or key not in said]
    clusters = _clusters([outcome for _, outcome in outcomes])
    found: dict[tuple[str, str], Item] = {}
    for responder, outcome in outcomes:
        name = (outcome.key, outcome.variant)
        new = Item(*name, clusters[outcome.sample], (responder,), outcome.labels, outcome.scores)
        known = found.get(name, new)
        names = tuple(dict.fromkeys(filter(None, (*known.responders, responder))))
        scores = {**known.scores, **outcome.scores}
        found[name] = replace(known, responders=names or ("",), scores=scores)
    return list(found.values())


def _clusters(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The cluster of each sample. Files that know the picture name it by its digest, others by its path or by
    the sample: samples that share any such name, directly or by way of others, are one."""
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while (next_ := above.setdefault(name, name)) != name:
            name = next_
        return name

    for outcome in outcomes:
        above[top(f"sample {outcome.sample}")] = top(outcome.cluster or outcome.sample)
    return {outcome.sample: top(f"sample {outcome.sample}") for outcome in outcomes}


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
    partial = len(said) - len(reading(said, "left-out"))
    if partial:
        how = "count as wrong" if partly == "wrong" else "are left out"
        notes.append(f"{partial:,} verdicts of people read 'partially correct' and {how} (--partly)")
    if disputed := contradicted(said):
        notes.append(f"{len(disputed):,} verdicts are contradicted by a second mark: {'; '.join(disputed)}")
    return notes
