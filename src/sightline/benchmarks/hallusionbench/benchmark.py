"""HallusionBench: yes/no questions about figures and edited figures, grouped in two ways (Guan et al. 2024).

A group is a set of the release: its questions, each asked of several figures or of none. Within it, the
answers to one question are a question pair (qAcc), those about one figure a figure (fAcc).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sightline.benchmarks import base
from sightline.benchmarks.released import data_folder, read_records
from sightline.metrics.choice import all_right, parts
from sightline.scoring.chosen import read_choice
from sightline.scoring.scorer import ModelScorer, Reading, RuleScorer, Scorer, same_or_different
from sightline.text import fill, load
from sightline.types import (
    Case,
    Group,
    ImageRef,
    Message,
    Metric,
    MetricValue,
    Outcome,
    Probe,
    Sample,
    Term,
    user,
)

RECORDS = "HallusionBench.json"
RELEASE = base.Release(
    name="hallusionbench",
    repository="tianyi-lab/HallusionBench",
    revision="744007c232c292942c7f80eb61edb2465482da31",
    records=(
        base.ReleasedRecords(
            split="test",
            path=RECORDS,
            name=RECORDS,
            sha256="ca6e0fb677dd56e5fb0e2700d06c58d01f8a6ae66e0f1773b2ac48c0a095d051",
            samples=167,
            images=346,
        ),
    ),
    paper="Guan et al. 2024, HallusionBench: An Advanced Diagnostic Suite for Entangled Language "
    "Hallucination and Visual Illusion in Large Vision-Language Models, CVPR 2024, arXiv:2310.14566",
    licence="BSD-3-Clause",
    elsewhere=("the figures: unpack hallusion_bench.zip, which its README links, into this folder",),
)
SAMPLING = {"temperature": 0, "max_tokens": 512}
SIDES = ("yes", "no")


class HallusionRecord(Struct, frozen=True):
    """One released record: a question about a figure of a set; of category VS also about none."""

    category: Literal["VD", "VS"]
    subcategory: str
    visual_input: Literal["0", "1", "2"]
    set_id: str
    figure_id: str
    question_id: str
    question: str
    gt_answer: Literal["0", "1"]
    gt_answer_details: str
    filename: str | None

    @property
    def variant(self) -> str:
        return f"{self.category} {'none' if self.filename is None else self.figure_id} {self.question_id}"


class HallusionBench(base.Benchmark):
    """1,129 questions in 167 sets: 455 question pairs and 346 figures, which cross."""

    name = "hallusionbench"
    title = "HallusionBench: language hallucination and visual illusion"
    citation = "Guan et al. 2024, HallusionBench: An Advanced Diagnostic Suite, CVPR 2024"
    judged_by = ("rules", "model", "human")
    release = RELEASE
    leading_metrics = ("a_acc", "q_acc", "f_acc")
    chance_notes: Mapping[str, str] = {"a_acc": "chance: a_acc 50.0"}
    report_sections = (
        base.ByLabel("a_acc", "subcategory"),
        base.ByLabel("q_acc", "category"),
        base.Together("Question pairs", ("easy_acc", "hard_acc")),
        base.Together("Figures", ("f_acc", "figures_inconsistent", "figures_wrong")),
        base.Together("What wrong answers show", ("language_hallucination", "visual_illusion", "mixed")),
    )
    settings = base.by_name(
        base.Setting("default", "all questions", "the leaderboard of its repository", {}, SAMPLING),
        base.Setting(
            "with-figure",
            "without the questions that show none",
            "VLMEvalKit",
            {"figures_only": True},
            SAMPLING,
        ),
    )
    options: Mapping[str, base.BenchmarkOption] = {
        "figures_only": base.BenchmarkOption(
            False, "only questions that show a figure; VD and VS sets of one number are one", (False, True)
        ),
        "image": base.BenchmarkOption(True, "send the figures", (True, False)),
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterator[Sample]:
        """The sets, each with its records."""
        folder = data_folder(folder, self.name, RECORDS)
        records = read_records(folder / RECORDS, HallusionRecord, name="question_id")
        root = folder / "hallusion_bench" if (folder / "hallusion_bench").is_dir() else folder

        def set_of(one: HallusionRecord) -> str:
            number = f"{one.subcategory}/{one.set_id}"
            return number if options["figures_only"] else f"{one.category}/{number}"

        asked = [one for one in records if one.filename is not None or not options["figures_only"]]
        for name, members in groupby(sorted(asked, key=set_of), key=set_of):
            of_set = sorted(members, key=lambda one: one.variant)
            yield Sample(
                id=name,
                question=of_set[0].question,
                images=tuple(ImageRef(str(root / file), str(folder)) for file in _files(of_set)),
                labels={"subcategory": of_set[0].subcategory},
                cluster=name,
                record=of_set,
            )

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """Each question of the set; as released, the question alone is the prompt."""
        images = dict(zip(_files(sample.record), sample.images, strict=True))
        for one in sample.record:
            shown = [images[one.filename]] if one.filename is not None and options["image"] else []
            difficulty = "hard" if one.visual_input == "2" else "easy"
            yield Probe(
                sample=sample.id,
                variant=one.variant,
                messages=(user(*shown, one.question),),
                question=one.question,
                references=(SIDES[one.gt_answer == "0"], one.gt_answer_details),
                labels={**sample.labels, "category": one.category, "difficulty": difficulty},
            )

    def cases(self, group: Group) -> Iterator[Case]:
        """Each answer, then each beside the one to its question about the first figure or none."""
        yield from base.answer_cases(group)
        for outcome, original in _with_original(group):
            if outcome is not original:
                texts = (outcome.response, original.response)
                yield Case((outcome.key, original.key), "same_meaning", outcome.question, texts)

    def reference_sides(self, outcome: Outcome) -> Sequence[str]:
        return SIDES

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """The yes or no that a response states, or the two prompts that the release gives to GPT-4."""
        prompts = load(__package__)

        def ask(case: Case) -> tuple[Message, ...]:
            texts = {"reference": case.references[-1], "output": case.texts[0]}
            return (user(fill(prompts["judge"]["text"], question=case.probe_question, **texts)),)

        return [
            RuleScorer("hallusionbench/yes_no", "correct", _judge),
            RuleScorer("hallusionbench/same_side", "same_meaning", _same_side),
            ModelScorer("hallusionbench/correct", "correct", ask, _read_judge, reads_truncated=True),
            same_or_different(prompts["same"]["text"]),
        ]

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Those of the released evaluation.py; without the questions that show no figure, no causes."""
        if not options["figures_only"]:
            return METRICS
        return [*(metric for metric in METRICS if metric.judged == "correct"), *POOLED]

    def value_notes(self, values: Mapping[str, MetricValue], options: Mapping[str, Any]) -> list[str]:
        """An answer that commits itself to nothing counts for the model where no figure is shown."""
        found = values.get("uncertain")
        if found is None or not found.value:
            return []
        return [
            f"{found.value:.1f} % of the answers without a figure say neither yes nor no: right, as released"
        ]

    def sample_content(self, sample: Sample) -> Any:
        return [(one.variant, one.question, one.gt_answer) for one in sample.record]


def _files(records: Iterable[HallusionRecord]) -> list[str]:
    """The figures of a set, each once."""
    return list(dict.fromkeys(one.filename for one in records if one.filename is not None))


# -- Judging: right, wrong, or uncertain, which is the verdict miss


def _judge(case: Case) -> Reading:
    position, rule, words = read_choice(case.texts[0], SIDES, case.probe_question)
    if position is None:
        return Reading("miss", rule=rule, words=words)
    side = SIDES[position]
    return Reading("right" if side == case.references[0] else "wrong", extracted=side, rule=rule, words=words)


def _same_side(case: Case) -> Reading:
    first, second = (read_choice(text, SIDES, case.probe_question).position for text in case.texts)
    if first is None or second is None:
        return Reading("undecided")
    return Reading("right" if first == second else "wrong")


def _read_judge(case: Case, reply: str) -> Reading:
    said = reply.lower()
    return Reading("wrong" if "incorrect" in said else "right" if "correct" in said else "miss", reply)


# -- What an answer is about, and what counts as right


def _question(outcome: Outcome) -> str:
    category, _, question = outcome.variant.split(" ")
    return f"{category} {question}"


def _figure(outcome: Outcome) -> str | None:
    category, figure, _ = outcome.variant.split(" ")
    return None if figure == "none" else f"{category} {figure}"


def _is_uncertain(outcome: Outcome) -> bool:
    return outcome.verdict in ("miss", "refused") or outcome.status == "empty"


def _is_wrong(outcome: Outcome) -> bool:
    return outcome.verdict == "wrong" and not _is_uncertain(outcome)


def _is_right(outcome: Outcome) -> bool:
    return outcome.right or (_figure(outcome) is None and _is_uncertain(outcome))


def _with_original(group: Group) -> Iterator[tuple[Outcome, Outcome]]:
    for part in parts(group, _question):
        original = next((one for one in part if _figure(one) in (None, "VD 0")), None)
        yield from ((one, original) for one in part if original is not None)


def _cause(outcome: Outcome, original: Outcome, group: Group) -> str | None:
    """Why an answer is wrong or uncertain, as the release sorts it; None if it is neither, or undecided."""
    if not {outcome.verdict, original.verdict} <= {"right", "wrong", "miss", "refused"} or outcome.right:
        return None
    wrong = _is_wrong(outcome)
    verdict = group.judgement("same_meaning", outcome.key, original.key)
    same = outcome.response == original.response or (verdict is not None and verdict.verdict == "right")
    if _question(outcome).startswith("VD"):
        return "mixed" if original.right and wrong and same else "visual_illusion"
    if _is_wrong(original):
        return "language_hallucination" if wrong and same else "mixed"
    if outcome is original:
        return None
    misled = original.right and wrong and same and outcome.labels["difficulty"] == "hard"
    return "language_hallucination" if misled else "visual_illusion"


# -- Metrics


def _each(count: Callable[[Outcome], float | None], group: Group) -> Iterator[Term]:
    for outcome in group:
        if outcome.scored and (found := count(outcome)) is not None:
            yield Term(found, 1, outcome.labels)


def _figures(counts: Callable[[Sequence[bool]], bool], group: Group) -> Iterator[Term]:
    for part in parts(group, _figure):
        if all(outcome.scored for outcome in part):
            yield Term(counts([_is_right(outcome) for outcome in part]), 1, part[0].labels)


def _causes(name: str, group: Group) -> Iterator[Term]:
    for outcome, original in _with_original(group):
        if (found := _cause(outcome, original, group)) is not None:
            yield Term(found == name, 1, outcome.labels)


def _yes_surplus(outcome: Outcome) -> int:
    expected = outcome.references[0] == SIDES[0]
    return (_is_right(outcome) == expected) - expected


def _by_difficulty(difficulty: str) -> Callable[[Group], Iterator[Term]]:
    return all_right(
        lambda one: _question(one) if one.labels["difficulty"] == difficulty else None, _is_right
    )


def _metric(name: str, terms: Callable[[Group], Iterator[Term]], meaning: str, **more: Any) -> Metric:
    fixed = {"better": "neither", "source": "the released evaluation.py", **more}
    return Metric(name=name, terms=terms, meaning=meaning, **fixed)


_HIGH: Mapping[str, Any] = {"better": "higher", "per_group": True}
_LOW: Mapping[str, Any] = {"better": "lower", "per_group": True}
_KIT: Mapping[str, Any] = {**_HIGH, "source": "VLMEvalKit, whose keys leave out the category"}
_CAUSE: Mapping[str, Any] = {"judged": "same_meaning"}
METRICS = (
    _metric("a_acc", partial(_each, _is_right), "questions answered right", better="higher"),
    _metric("q_acc", all_right(_question, _is_right), "question pairs right about every figure", **_HIGH),
    _metric("f_acc", partial(_figures, all), "figures whose questions are all answered right", **_HIGH),
    _metric("easy_acc", _by_difficulty("easy"), "question pairs whose easy questions are all right", **_HIGH),
    _metric("hard_acc", _by_difficulty("hard"), "question pairs whose hard questions are all right", **_HIGH),
    _metric(
        "figures_inconsistent",
        partial(_figures, lambda right: any(right) and not all(right)),
        "figures with some questions right, not all",
        **_LOW,
    ),
    _metric(
        "figures_wrong", partial(_figures, lambda right: not any(right)), "figures with none right", **_LOW
    ),
    _metric(
        "yes_difference",
        partial(_each, _yes_surplus),
        "answers yes minus questions to which yes is right (Pct. Diff)",
        unit="points",
        range=(-100.0, 100.0),
    ),
    _metric(
        "false_positives",
        partial(_each, lambda one: None if _is_right(one) else one.references[0] == SIDES[1]),
        "wrong answers to which no is right (FP Ratio)",
    ),
    _metric(
        "language_hallucination",
        partial(_causes, "language_hallucination"),
        "wrong answers that language alone explains (LH)",
        **_CAUSE,
    ),
    _metric(
        "visual_illusion",
        partial(_causes, "visual_illusion"),
        "wrong answers that reading the figure explains (VI)",
        **_CAUSE,
    ),
    _metric("mixed", partial(_causes, "mixed"), "wrong answers that either may explain", **_CAUSE),
    _metric(
        "uncertain",
        partial(_each, lambda one: _is_uncertain(one) if _figure(one) is None else None),
        "answers without a figure that say neither yes nor no",
    ),
)
POOLED = (
    _metric(
        "q_acc_pooled",
        all_right(lambda one: one.variant.split(" ")[2], _is_right),
        "q_acc with VD and VS sets of one number as one",
        **_KIT,
    ),
    _metric(
        "f_acc_pooled",
        all_right(lambda one: one.variant.split(" ")[1], _is_right),
        "f_acc with VD and VS sets of one number as one",
        **_KIT,
    ),
)
