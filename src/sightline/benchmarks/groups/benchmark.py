"""Any groups file: related questions about one thing, and how consistent the answers are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import (
    ANSWER_BY,
    FILE,
    JUDGE_IMAGE,
    Against,
    Benchmark,
    BenchmarkOption,
    ByLabel,
    ByOwnLabels,
    Differences,
    Setting,
    Together,
    answer_cases,
    by_name,
)
from sightline.benchmarks.groups.data import (
    GROUPS,
    LineSelection,
    answered_samples,
    left_out_notes,
    line_probes,
    read_samples,
    responses_in_lines,
    sorted_sample,
    unread_responses,
)
from sightline.benchmarks.groups.mask_words import named_properties
from sightline.errors import UserError
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.metrics.consistency import COMPLETE, PAIRS_LEFT_OUT, UNCHANGED, consistency_metrics
from sightline.scoring.chosen import chosen_option, read_choice
from sightline.scoring.free_answers import read_free_answer
from sightline.scoring.letters import named_option, right_positions
from sightline.scoring.non_answers import is_refusal
from sightline.scoring.scorer import (
    Reading,
    RuleScorer,
    Scorer,
    flag,
    flags,
    right_answer,
    same_meaning_by_model,
    seeing,
)
from sightline.scoring.similarity import same_option, similarity
from sightline.scoring.text import Task, contains, post_process, post_process_as_printed
from sightline.text import counted
from sightline.types import (
    Case,
    Group,
    Metric,
    MetricValue,
    Outcome,
    Probe,
    Sample,
    Term,
    Verdict,
    VerdictName,
)

TASKS = ("rephrasing", "restyling", "context")
"""The tasks of MM-R3, each with its own post-processing of answers (3.3, A.3)."""

SAMPLING = {"temperature": 0, "max_tokens": 512}
SAMPLING_SOURCE = "unpublished for most models (Table 9 varies the temperature); 0 and 512 tokens here"

OPTIONS: Mapping[str, BenchmarkOption] = {
    "task": BenchmarkOption("other", "process answers as in this task of MM-R3", ("other", *TASKS)),
    UNCHANGED: BenchmarkOption(
        False,
        "send the unchanged input repeatedly (Sampling)",
        (False, True),
        labels={True: "Sampling", False: "All"},
    ),
    "image": BenchmarkOption(True, "send the images of the lines", (True, False)),
    "size": BenchmarkOption(None, "images of this size, if the file has several sizes", least=1),
    "empty": BenchmarkOption("count", "count empty answers as wrong, or leave them out", ("count", "ignore")),
    "form": BenchmarkOption(
        "described",
        "text to compare: as A.3 describes it, or as its figures print it",
        ("described", "printed"),
    ),
    "answer_by": ANSWER_BY,
    "embedder": BenchmarkOption("all-MiniLM-L6-v2", "sentence-transformers model by name or path, or none"),
    "judge_answers": BenchmarkOption(
        False,
        "let a judge model decide which answers are right, too, and not only which mean the same",
        (True, False),
    ),
    "judge_image": JUDGE_IMAGE,
    "file": BenchmarkOption(None, "the groups file"),
    "answers": BenchmarkOption(None, "file of answers that contains the questions", internal=True),
}


class Groups(Benchmark):
    """Groups of lines from a file: group, variant, images and prompt, and references if there are any."""

    name = "groups"
    title = "groups: your own groups of related questions"
    citation = "the metrics are those of MM-R3 (Chou et al. 2024, On (In-)Consistency of MLLMs)"
    judged_by = ("rules", "model", "human")
    answer_files = AnswerFiles(variants="the variant's name", any_task=True)
    leading_metrics = ("acc", "s_gt", "con", "con_by_response", "s_c", "s_c_by_response")
    companions = COMPLETE
    exact_metric = "agree"
    correlated_metrics = (("acc", "con"), ("acc", "s_c"))
    correlation = "spearman"
    spread_metrics = ("acc", "s_gt", "con", "s_c")
    report_sections = (
        ByOwnLabels(("acc", "con")),
        Against("acc", "con"),
        ByLabel("acc", "style"),
        ByLabel("con_by_response", "style"),
        ByLabel("acc", "shape"),
        ByLabel("acc", "colour"),
        ByLabel("acc", "lines"),
        Together(
            "Consistent and right",
            ("consistent_right", "consistent_wrong", "consistent_mixed", "inconsistent"),
        ),
        Differences(
            "Sampling against All",
            "All",
            "Sampling",
            tuple((name, f"{name}_minus_sampling") for name in ("acc", "s_gt", "con", "s_c")),
        ),
    )
    settings = by_name(
        Setting(FILE, "any groups file by its path", "your own data", {}, SAMPLING, SAMPLING_SOURCE)
    )
    options = OPTIONS

    def groups_file(self, folder: Path | None, options: Mapping[str, Any]) -> Path:
        """Find the groups file in a data folder."""
        raise UserError("no groups file", expected="groups:FILE.jsonl, such as `run groups:mine.jsonl`")

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterable[Sample]:
        """The groups of the file."""
        return read_samples(self.file(folder, options), _selection(options))

    def samples_in_answers(
        self, answers: Sequence[Prediction], split: str, options: Mapping[str, Any]
    ) -> Iterable[Sample]:
        """The groups that a file of answers is about."""
        if not _only_answers(options):
            return self.samples(None, split, options)
        return answered_samples(answers, Path(options["answers"]), _selection(options))

    def left_out_notes(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> list[str]:
        """The originals that are not sent, and the groups without a line that is."""
        if _only_answers(options):
            return []
        return left_out_notes(self.file(folder, options), _selection(options))

    def file(self, folder: Path | None, options: Mapping[str, Any]) -> Path:
        """Find the groups file: that of the option `file`, otherwise that of the data folder."""
        file = Path(options["file"]) if options["file"] is not None else self.groups_file(folder, options)
        return file / GROUPS if file.is_dir() else file

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """A query for each line of the group, or the unchanged input for Sampling (MM-R3 4.2)."""
        return line_probes(sample, _selection(options))

    def cases(self, group: Group) -> Iterator[Case]:
        """Each answer by itself, then every two that differ, which may mean the same."""
        yield from answer_cases(group)
        if all(outcome.options for outcome in group):
            return
        meant = [(outcome, _meant(outcome)) for outcome in group]
        for (first, text), (second, other) in combinations(meant, 2):
            if text != other and not (first.options and second.options):
                yield Case((first.key, second.key), "same_meaning", first.question, (text, other))

    def pair_verdicts(self, group: Group) -> Iterator[Verdict]:
        """Whether answers to questions with options choose the same one."""
        return same_option(group)

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """Containment for answers, embeddings for similarity (3.3), a model for equal meaning."""
        rules = RuleScorer("mmr3/contains", "correct", partial(_judge_answer, task=options["task"]))
        judges = [same_meaning_by_model()]
        if options["judge_answers"]:
            judges.append(seeing(right_answer(), options["judge_image"]))
        if options["embedder"] == "none":
            return [rules, *judges]
        form = post_process_as_printed if options["form"] == "printed" else post_process
        by_similarity = similarity(options["embedder"], partial(form, task=options["task"]))
        return [rules, *judges, by_similarity]

    def text_scores(self, outcome: Outcome, options: Mapping[str, Any]) -> Mapping[str, float]:
        """Whether the response declines to answer, and which properties of its mask it names (A.9.3)."""
        return flags(
            {
                "refused": is_refusal(outcome.response),
                **named_properties(outcome.response, outcome.labels),
            }
        )

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Section 3.3 of MM-R3, and metrics beyond the paper."""
        return consistency_metrics(
            embedded=options["embedder"] != "none",
            ignore_empty=options["empty"] == "ignore",
            sampling=not options["unchanged"],
            task_metrics=MASK_METRICS if options["task"] == "context" else (),
        )

    def value_notes(self, values: Mapping[str, MetricValue], options: Mapping[str, Any]) -> list[str]:
        """The pairs that metrics of consistency do not compare, where there are others."""
        left_out = values.get(PAIRS_LEFT_OUT.name)
        if left_out is None or not left_out.value or left_out.value == 100:
            return []
        number, pairs = round(left_out.value * left_out.n / 100), counted(int(left_out.n), "pair")
        return [f"{number:,} of {pairs} are not compared: an answer is missing or empty"]

    def partner(self, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The unchanged input, sent repeatedly: Sampling."""
        return {**options, "unchanged": True}

    def in_order(self, sample: Sample) -> Sample:
        """The lines of a group may stand anywhere in the file."""
        return sorted_sample(sample)

    def own_answers(self, folder: Path | None, options: Mapping[str, Any]) -> tuple[Path, list[Prediction]]:
        """The responses in the lines of the groups file."""
        file = self.file(folder, options)
        return file, responses_in_lines(file, _selection(options))

    def unread_answers_notes(self, folder: Path | None, options: Mapping[str, Any]) -> list[str]:
        """The lines that hold a response."""
        return [] if _only_answers(options) else unread_responses(self.file(folder, options))

    def sample_content(self, sample: Sample) -> Any:
        return [
            (line.variant, line.prompt, line.question, line.references, line.options)
            for line in sample.record
        ]

    def pools_draws(self, options: Mapping[str, Any]) -> bool:
        """Sampling compares the draws of one input with each other."""
        return bool(options.get(UNCHANGED))

    def task_arguments(self, options: Mapping[str, Any]) -> str:
        """Sampling is a task of its own."""
        return f"--set {UNCHANGED}=on" if options.get(UNCHANGED) else ""

    def sampling_notes(self, options: Mapping[str, Any], sampling: Mapping[str, Any]) -> list[str]:
        """At temperature 0, repeated requests do not sample."""
        if not options[UNCHANGED] or sampling.get("temperature") != 0:
            return []
        return ["Sampling at temperature 0 measures only how deterministic the server is"]

    def options_from_answers(
        self, file: str, predictions: Sequence[Prediction], folder: Path | None
    ) -> dict[str, Any]:
        """Without a data folder, the file of answers holds the questions."""
        return {"answers": file} if folder is None else {}


def _only_answers(options: Mapping[str, Any]) -> bool:
    """Whether the questions come from a file of answers."""
    return options["file"] is None and options["answers"] is not None


def _selection(options: Mapping[str, Any]) -> LineSelection:
    return LineSelection(
        size=options["size"],
        one_size=options["task"] == "restyling",
        unchanged=options["unchanged"],
        all_variants=options["task"] == "context",
        likelihood=options["answer_by"] == "likelihood",
        images=options["image"],
        evidence=options["judge_image"],
    )


def _meant(outcome: Outcome) -> str:
    """The response, or the option that it chooses."""
    return (chosen_option(outcome) if outcome.options else None) or outcome.response


def _judge_answer(case: Case, task: Task) -> Reading:
    """Right if the answer contains a reference or, with options, chooses the right one."""
    response = case.texts[0]
    scores = flags({"refused": is_refusal(response)})
    if case.options:
        return _judge_choice(case, scores)
    extracted = post_process(response, task)
    if not case.references:
        return Reading("unscored", extracted=extracted, scores=scores, rule="no reference")
    if task == "other":
        held, rule, words = read_free_answer(response, case.references, case.probe_question)
        verdict: VerdictName = "wrong" if held is None else "right"
        return Reading(verdict, extracted=extracted, scores=scores, rule=rule, words=words)
    held = next((reference for reference in case.references if contains(response, [reference], task)), None)
    if held is None:
        return Reading("wrong", extracted=extracted, scores=scores, rule="holds no reference", words=response)
    return Reading("right", extracted=extracted, scores=scores, rule="holds the reference", words=held)


def _judge_choice(case: Case, scores: Mapping[str, float]) -> Reading:
    position, rule, words = read_choice(case.texts[0], case.options, case.probe_question)
    if position is None:
        return Reading("miss", scores=scores, rule=rule, words=words)
    right = right_positions(case.references, case.options)
    verdict: VerdictName = "unscored" if not right else "right" if position in right else "wrong"
    extracted = named_option(position, case.options)
    return Reading(verdict, extracted=extracted, scores=scores, rule=rule, words=words)


# -- Metrics of MM-R3's context task: the share of answers that name the mask and not what it hides


def mask_terms(label: str) -> Callable[[Group], Iterable[Term]]:
    """Count the answers that name a property of their mask (MM-R3 4.3.1)."""

    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            named = flag(outcome.scores, f"names_{label}")
            if isinstance(outcome.labels.get(label), str) and outcome.answered and named is not None:
                yield Term(named, 1, outcome.labels)

    return terms


MASK_METRICS = tuple(
    Metric(
        name=f"names_{label}",
        terms=mask_terms(label),
        meaning=f"answers that name the {label} of the mask",
        better="lower",
        source="MM-R3 4.3.1 and A.9.3",
        judged=None,
        absent=f"no label '{label}'",
    )
    for label in ("colour", "shape", "lines")
)
