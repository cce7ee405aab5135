"""The data of a judge report: answers, and the verdicts of judges and humans on them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.benchmarks.text_metrics import NAMES
from sightline.errors import UserError
from sightline.formats.verdict_flags import Partly, apply_partly, contradictions
from sightline.formats.verdicts import verdict_line
from sightline.judging.judge_sources import AttributedAnswer, JudgeSources, single_answer_group
from sightline.judging.text_metrics import TextMeasures
from sightline.types import Labels, Verdict

_NO_OPTIONS: Mapping[str, Any] = {}


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


def judge_data(
    read: JudgeSources,
    human: Iterable[Verdict] = (),
    *,
    partly: Partly = "wrong",
    texts: TextMeasures | None = None,
) -> JudgeData:
    """Put the content of the sources together.

    If any source holds answers, verdicts on other answers are left out and counted in a note. A model that
    judged under several options (with and without the image) counts as several judges: the scorers of its
    verdicts name the options.

    Args:
        texts: Text metrics to measure on answers with references; None uses those of the folders.
    """
    measured = texts.identities if texts is not None else {}
    versions = {**_one_version_each(read.versions, measured), **measured}
    attributed = read.answers if texts is None else list(_measure(read.answers, texts))
    further = [(verdict, _NO_OPTIONS) for verdict in human]
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
