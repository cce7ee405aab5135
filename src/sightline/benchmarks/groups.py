"""Any groups file, made by anyone: the same thing asked in different lights, and how far answers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.base import FILE, Facts, Option, Setting, about
from sightline.benchmarks.groups_data import answered_samples, probes_of, read_samples
from sightline.errors import UserError
from sightline.formats.prediction import Prediction
from sightline.metrics.consistency import consistency_metrics
from sightline.prompts import load
from sightline.scoring.containment import Task, contains, post_process, post_process_as_printed
from sightline.scoring.judge import same_or_different
from sightline.scoring.options import LETTERS, is_refusal, read_option
from sightline.scoring.scorer import Reading, RuleScorer, Scorer
from sightline.scoring.similarity import SIMILAR, similarity
from sightline.types import Case, Group, Metric, Probe, Sample

TASKS = ("rephrasing", "restyling", "context")
"""The tasks of MM-R3, each with its own post-processing of answers (3.3, A.3)."""

SAMPLING = {"temperature": 0, "max_tokens": 512}
SAMPLING_SOURCE = "unpublished for most models (Table 9 varies the temperature); 0 and 512 tokens here"

FACTS = Facts(
    leading=("acc", "s_gt", "con", "s_c"),
    correlated=(("acc", "con"), ("acc", "s_c")),
    coefficient="spearman",
    spread=("acc", "s_gt", "con", "s_c"),
)

OPTIONS: Mapping[str, Option] = {
    "task": Option("other", "treat answers as this task of MM-R3 does", ("other", *TASKS)),
    "unchanged": Option(False, "ask the unchanged input again and again (Sampling)", (False, True)),
    "size": Option(None, "pictures of this size, where the file holds several", least=1),
    "empty": Option("count", "empty answers count as wrong, or are left out", ("count", "ignore")),
    "form": Option(
        "described", "what is compared: A.3's description, or its figures'", ("described", "printed")
    ),
    "embedder": Option("all-MiniLM-L6-v2", "sentence-transformers model by name or path, or none"),
    "file": Option(None, "the groups file"),
    "answers": Option(None, "file of answers that says itself what was asked"),
}


class Groups:
    """The groups of a file: lines of group, variant, images and prompt, with references where it has any."""

    name = "groups"
    title = "groups: your own probes of one thing in different lights"
    citation = "the metrics are those of MM-R3 (Chou et al. 2024, On (In-)Consistency of MLLMs)"
    splits: tuple[str, ...] = ("test",)
    judged_by: tuple[str, ...] = ("rules", "model", "people")
    presets: Mapping[str, Mapping[str, Any]] = {}
    facts = FACTS
    settings: Mapping[str, Setting] = {
        FILE: Setting(
            FILE, "any groups file by its path", "nothing: your own data", {}, SAMPLING, SAMPLING_SOURCE
        )
    }
    options: Mapping[str, Option] = OPTIONS

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """The groups of the file, or those that a file of answers is about."""
        if options["file"] is None and options["answers"] is None:
            raise UserError("no groups file", expected="groups:FILE.jsonl, such as `run groups:mine.jsonl`")
        return samples_of(Path(options["file"]) if options["file"] else None, options)

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """The lines of the group, one query each."""
        return probes_in(sample, options)

    def cases(self, group: Group) -> Iterator[Case]:
        """Each answer against its references, and each two against each other."""
        yield from cases_of(group)

    def scorer(self, question: str, kind: str, options: Mapping[str, Any]) -> Scorer | None:
        """Containment for answers, vectors for similarity, a model for sameness of meaning."""
        return scorer_of(question, kind, options)

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Section 3.3 of MM-R3, and what stands beside it."""
        return metrics_of(options)

    def partner(self, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The unchanged input."""
        return {**options, "unchanged": True}

    def shown_in(self, file: str, predictions: Sequence[Prediction], folder: Path | None) -> dict[str, Any]:
        """The answers themselves say what was asked."""
        return {"answers": file}


def samples_of(file: Path | None, options: Mapping[str, Any]) -> Sequence[Sample]:
    """The samples of a groups file, or (None) those that the answers are about."""
    how: dict[str, Any] = {
        "size": options["size"],
        "unchanged": options["unchanged"],
        "each": options["task"] == "context",
    }
    if file is not None:
        return read_samples(file, **how)
    return answered_samples(Path(options["answers"]), **how)


def probes_in(sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
    """The probes of a sample under these options."""
    return probes_of(sample, unchanged=options["unchanged"], each=options["task"] == "context")


def cases_of(group: Group) -> Iterator[Case]:
    """Each answer by itself, then every two that differ: who says the same in other words?"""
    yield from about(group)
    for first, second in combinations(group, 2):
        if first.response != second.response:
            texts = (first.response, second.response)
            yield Case((first.key, second.key), "same_meaning", first.question, texts)


def scorer_of(question: str, kind: str, options: Mapping[str, Any]) -> Scorer | None:
    """What decides a question under these options."""
    if question == "correct" and kind == "rules":
        return RuleScorer("mmr3/contains", partial(_read, task=options["task"]))
    if question == "same_meaning" and kind == "model":
        return same_or_different(load("sightline")["same_meaning"]["text"])
    if question == SIMILAR and kind == "embedder" and options["embedder"] != "none":
        form = post_process_as_printed if options["form"] == "printed" else post_process
        prepared = partial(form, task=options["task"])
        return similarity(options["embedder"], prepared, ignore_empty=options["empty"] == "ignore")
    return None


def metrics_of(options: Mapping[str, Any]) -> Sequence[Metric]:
    """The metrics under these options."""
    return consistency_metrics(
        embedded=options["embedder"] != "none",
        ignore_empty=options["empty"] == "ignore",
        sampling=not options["unchanged"],
        masks=options["task"] == "context",
    )


def _read(case: Case, task: Task) -> Reading:
    """Right where a reference is in the answer; where options were shown, where the right one is chosen."""
    if case.options:
        return read_option(replace(case, references=_letters(case)))
    response = case.texts[0]
    flags = {"refused": 1.0} if is_refusal(response) else {}
    said = post_process(response, task)
    if not case.references:
        return Reading("unscored", extracted=said, scores=flags)
    right = contains(response, case.references, task)
    return Reading("right" if right else "wrong", extracted=said, scores=flags)


def _letters(case: Case) -> tuple[str, ...]:
    """The letter of the right option, which a reference names by its letter or by its text."""
    for reference in case.references:
        for letter, option in zip(LETTERS, case.options, strict=False):
            if reference.strip() == letter or reference.strip().casefold() == option.strip().casefold():
                return (letter,)
    return ()
