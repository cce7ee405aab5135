"""ConTextual: instructions that need the text in an image and what is around it (Wadhawan et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.base import (
    TEXT_METRICS,
    Benchmark,
    BenchmarkOption,
    ByJudge,
    ByLabel,
    Release,
    ReleasedRecords,
    Setting,
    UserRecords,
    by_name,
    text_metrics,
)
from sightline.benchmarks.contextual.acceptance import read_acceptance
from sightline.benchmarks.contextual.data import (
    IMAGE,
    NAME,
    SPLITS,
    SYNTHETIC,
    Shots,
    image_of,
    image_path,
    read_released,
    read_samples,
    table_name,
)
from sightline.benchmarks.contextual.formats import ANSWER_FILES, ERRORS, EXPORT_FORMATS, add_judgements
from sightline.formats.prediction import Prediction
from sightline.metrics import choice
from sightline.scoring.non_answers import is_refusal
from sightline.scoring.scorer import Reading, RuleScorer, Scorer, accepted, flags, seeing
from sightline.text import load
from sightline.types import Case, Group, ImageRef, Message, Metric, Probe, Sample, Term, Text, user

# -- ConTextual's data set: repository, pinned revision, digests, licence, citation

RELEASE = Release(
    name=NAME,
    repository="rohan598/ConTextual",
    # The commit that brought the data.
    revision="6e199b8b5cd7ec99e57d28bc1ef0b7693218365d",
    records=(
        ReleasedRecords(
            split="test",
            path="data/contextual_test.csv",
            name=table_name("test"),
            sha256="428ec237bbedc69eed125a162269a9f60154391fb7c5b9c9c4db55500c050391",
            samples=506,
            images=506,
        ),
        ReleasedRecords(
            split="val",
            path="data/contextual_val.csv",
            name=table_name("val"),
            sha256="db5426b8a5c96537b88e34f1c7bbb606d57295190c1c74777653a220daf473e9",
            samples=100,
            images=100,
        ),
    ),
    image_urls=IMAGE,
    image_path=image_path,
    user_records=(UserRecords(SYNTHETIC, table_name(SYNTHETIC)),),
    paper="Wadhawan et al. 2024, ConTextual: Evaluating Context-Sensitive Text-Rich Visual Reasoning "
    "in Large Multimodal Models, arXiv:2401.13311",
    licence="none is stated; the images come from LAION-5B, Rico, Open WebText, InfographicVQA, "
    "ST-VQA and ESTVQA (section 2.2 of the paper)",
)


SAMPLING = {"temperature": 0, "max_tokens": 1024}
SAMPLING_SOURCE = "unpublished for most models; temperature 0 and 1024 tokens here"

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "released": {"temperature": None, "max_tokens": 300},
    "released-gemini": {"temperature": 0.4, "top_p": 1, "top_k": 32, "max_tokens": 2048},
}
"""`--preset NAME`: the sampling options of the released scripts for GPT-4V and for Gemini. The first script
also sends the instruction before the image: `--set first=instruction`."""

TASKS = ("extractive", "math")
"""The kinds of tasks (Appendix G.1), which were not released."""

NOTHING = (
    "the references of test (--split val, or --answers FILE) and the task types "
    "(--set labels=FILE) are not released"
)


def _setting(name: str, summary: str, reproduces: str, **options: Any) -> Setting:
    return Setting(name, summary, reproduces, options, SAMPLING, SAMPLING_SOURCE)


def _few_shot(shots: int, summary: str) -> Setting:
    name = f"{shots}-shot"
    return _setting(name, summary, "Figure 16", shots=shots, held_out=True, variant=name)


class Contextual(Benchmark):
    """506 test and 100 val instructions with an image each; every instruction is a group of its own.

    `sightline build synthesize` writes the split `synthetic`.
    """

    name = NAME
    title = "ConTextual: context-sensitive text-rich visual reasoning"
    citation = (
        "Wadhawan et al. 2024, ConTextual: Evaluating Context-Sensitive Text-Rich Visual Reasoning in LMMs"
    )
    splits = SPLITS
    judged_by = ("rules", "model", "human")
    presets = PRESETS
    release = RELEASE
    published = Path(__file__).with_name("published.json")
    released_digests = Path(__file__).with_name("released.json")
    answer_files = ANSWER_FILES
    export_formats = EXPORT_FORMATS
    leading_metrics = ("accepted",)
    report_sections = (
        ByLabel("accepted", "category"),
        ByLabel("accepted", "task"),
        ByLabel("accepted", "scene"),
        ByJudge("accepted"),
    )
    error_types = ERRORS
    has_commands = True
    settings = by_name(
        _setting("default", "image and instruction only", "Tables 3 and 5, Figure 21"),
        _few_shot(0, "the same, without the eight instances that few-shot settings use"),
        _setting("no-image", "the instruction alone: test of leakage", "beyond the paper", image=False),
        *(_few_shot(shots, f"{shots} solved instances of val before the instruction") for shots in (2, 4, 8)),
    )
    options: Mapping[str, BenchmarkOption] = {
        "shots": BenchmarkOption(
            0, "number of solved instances before the instruction (Appendix D)", (0, 2, 4, 8)
        ),
        "image": BenchmarkOption(True, "show the image", (True, False)),
        "first": BenchmarkOption("image", "first part of a turn", ("image", "instruction")),
        "held_out": BenchmarkOption(
            False, "leave out the eight instances that few-shot settings use", (True, False)
        ),
        "variant": BenchmarkOption("0-shot", "the variant's name", internal=True),
        "answers": BenchmarkOption(None, "file of references: image_url and response (csv, JSON, JSONL)"),
        "labels": BenchmarkOption(
            None, "file of tasks: image_url and task, extractive or math (csv, JSON, JSONL)"
        ),
        "judge_image": BenchmarkOption(
            False, "send the image to the judge too (3.2.2: GPT-4V)", (True, False)
        ),
        "judge_parse": BenchmarkOption(
            "last", "which 'Judgement:' of a reply counts: the last, or as released", ("last", "released")
        ),
        **TEXT_METRICS,
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """The instances of a split, in the order of its table."""
        held_out = options["held_out"] or options["shots"] > 0
        shots = Shots(options["shots"], held_out, options["seed"])
        return read_samples(folder, split, shots, options["answers"], options["labels"])

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """One query: image, instruction and response of each example, then image and instruction, alone."""
        first = options["first"] if options["image"] else None
        yield Probe(
            sample=sample.id,
            variant=options["variant"],
            messages=(*_examples(sample, first), _turn(sample.images[0], sample.question, first)),
            question=sample.question,
            references=sample.references,
            labels=sample.labels,
            evidence=sample.images if options["judge_image"] else (),
        )

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """Rules for short references; a model with the prompt of Figure 20."""
        prompt, released = load(__package__)["judge"]["text"], options["judge_parse"] == "released"
        by_model = seeing(accepted(prompt, released=released), options["judge_image"])
        return [RuleScorer("contextual/rules", "correct", _judge_response), by_model]

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Section 3.2."""
        return [ACCEPTED, choice.ERROR, choice.EMPTY, *text_metrics(options)]

    def released_records(
        self, folder: Path | None, split: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The lines of the split's table."""
        return read_released(folder, split)

    def sample_content(self, sample: Sample) -> Any:
        """The line of the table without the examples, which few-shot settings add."""
        return super().sample_content(replace(sample, record=replace(sample.record, examples=())))

    def add_judgements(self, predictions: Sequence[Prediction], path: Path) -> list[Prediction]:
        """The verdicts of gpt4_judgments.json."""
        return add_judgements(predictions, path)


def accepted_terms(group: Group) -> Iterator[Term]:
    """Count accepted responses of those with a reference (3.2.1)."""
    for outcome in group:
        if outcome.scored:
            yield Term(outcome.right, 1)
        if "task" not in outcome.labels:
            for task in TASKS:
                yield Term(0, 0, {"task": task}, overall=False)


ACCEPTED = Metric(
    name="accepted",
    terms=accepted_terms,
    meaning="responses that the judge accepts",
    better="higher",
    source="ConTextual 3.2, Tables 3 and 5",
    absent=NOTHING,
)


def _turn(image: ImageRef, instruction: str, first: str | None) -> Message:
    """A turn with the image or the instruction first, without image for None."""
    if first is None:
        return user(instruction)
    return user(image, instruction) if first == "image" else user(instruction, image)


def _examples(sample: Sample, first: str | None) -> Iterator[Message]:
    for example in sample.record.examples:
        yield _turn(image_of(example, sample.images[0].root), example.instruction, first)
        yield Message("assistant", (Text(example.response),))


def _judge_response(case: Case) -> Reading:
    if not case.references:
        return Reading("unscored")
    response = case.texts[0]
    scores = flags({"refused": is_refusal(response)})
    verdict, rule, words = read_acceptance(case.references[0], response)
    return Reading(verdict, scores=scores, rule=rule, words=words)
