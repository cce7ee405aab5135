"""II-Bench: questions with six options about the implied meaning of an image (Liu et al. 2024)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from math import factorial, prod
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.base import (
    ANSWER_BY,
    Benchmark,
    BenchmarkOption,
    ByLabel,
    Release,
    ReleasedRecords,
    Setting,
    Together,
    by_name,
)
from sightline.benchmarks.iibench.data import (
    LABELS,
    images_by_path,
    read_explanations,
    read_released,
    read_samples,
)
from sightline.benchmarks.iibench.formats import ANSWER_FILES, EXPORT_FORMATS, SPLITS
from sightline.formats.jsonl import ExportFormat
from sightline.formats.prediction import Prediction
from sightline.metrics import choice
from sightline.scoring.chosen import chosen_letter
from sightline.scoring.letters import carry_letter
from sightline.scoring.options import most_frequent, read_option, released_letters
from sightline.scoring.scorer import RuleScorer, Scorer
from sightline.text import fill, load
from sightline.types import LETTERS, Group, ImageRef, Metric, MetricValue, Outcome, Probe, Sample, Term, user

# -- II-Bench's data set: repository, pinned revision, digests, licence, citation

RELEASE = Release(
    name="iibench",
    repository="II-Bench/II-Bench",
    # The commit that brought the data; at 1cf741d the two files of records are the same.
    revision="7cf618771f814ed6db9a2683549c7da83a77909b",
    records=(
        ReleasedRecords(
            split="test",
            path="data/test.json",
            name="test.json",
            sha256="f267ee1a402aa971e1558e1ce071a1bd3b0efe01626cae3e927abab3063a65e1",
            samples=1399,
            images=1187,
        ),
        ReleasedRecords(
            split="dev",
            path="data/dev.json",
            name="dev.json",
            sha256="c6852395e8212d949ff85317b2509522158745074d248d186e977bb26bf69bb7",
            samples=35,
            images=35,
        ),
    ),
    images="images",
    paper="Liu et al. 2024, II-Bench: An Image Implication Understanding Benchmark for Multimodal "
    "Large Language Models, arXiv:2406.05862",
    licence="none is stated; the images come from third-party websites (Appendix B of the paper)",
)


SAMPLING = {"temperature": 0, "max_tokens": 1000}
SAMPLING_SOURCE = "max_tokens as in the released infer/models/gpt4v.py; temperature unpublished, 0 here"
SHOTS = {"1-shot": 1, "2-shot": 2, "3-shot": 3}

ERRORS = (
    "metaphorical misunderstanding",
    "detail misunderstanding",
    "detail ignorance",
    "surface-level interpretation",
    "reasoning error",
    "reject to answer",
    "answer extraction error",
)
"""The errors of GPT-4V that humans distinguished (4.3, Figure 4)."""


def _setting(name: str, summary: str, reproduces: str, **options: Any) -> Setting:
    fixed = {"prompt": name, "variant": name, **options}
    return Setting(name, summary, reproduces, fixed, SAMPLING, SAMPLING_SOURCE)


class IIBench(Benchmark):
    """1,399 test and 35 dev questions with six options each; every question is a group of its own."""

    name = "iibench"
    title = "II-Bench: image implication understanding"
    citation = "Liu et al. 2024, II-Bench: An Image Implication Understanding Benchmark for MLLMs"
    splits = SPLITS
    judged_by = ("rules",)
    presets: Mapping[str, Mapping[str, Any]] = {"released": {"temperature": None, "max_tokens": 1000}}
    release = RELEASE
    published: Path | None = Path(__file__).with_name("published.json")
    released_digests: Path | None = Path(__file__).with_name("released.json")
    answer_files = ANSWER_FILES
    export_formats: Mapping[str, ExportFormat] = EXPORT_FORMATS
    leading_metrics = ("accuracy",)
    radar_labels: tuple[str, ...] = ("domain",)
    chance_notes: Mapping[str, str] = {"accuracy": "chance: accuracy 16.7 (one of six options)"}
    chance_levels: Mapping[str, float] = {"accuracy": 100 / 6, "accuracy_by_position": 100 / 6}
    report_sections = (
        ByLabel("accuracy", "domain", radar=True),
        ByLabel("accuracy", "emotion"),
        ByLabel("accuracy", "difficulty"),
        ByLabel("accuracy", "image_type"),
        ByLabel("accuracy_by_position", "position"),
        Together("Options chosen", tuple(metric.name for metric in choice.ANSWERED)),
    )
    error_types: tuple[str, ...] = ERRORS
    settings = by_name(
        _setting("none", "the question only", "Tables 3, 4, 7 and 8"),
        _setting("cot", "chain of thought", "Table 4"),
        _setting("domain", "with the image's domain as keyword", "Table 4"),
        _setting("emotion", "with the image's emotion as keyword", "Table 4"),
        _setting("rhetoric", "with the image's rhetoric as keywords", "Table 4"),
        *(
            _setting(name, f"{n} solved example(s) before the question", "Table 5")
            for name, n in SHOTS.items()
        ),
        _setting("no-image", "without the image: test of leakage", "Table 6", prompt="none", image=False),
        _setting("shuffled", "several option orders", "beyond the paper", prompt="none", orders=3),
    )
    options: Mapping[str, BenchmarkOption] = {
        "prompt": BenchmarkOption(
            "none", "the prompt (Appendix C)", ("none", "cot", *LABELS[:2], "rhetoric", *SHOTS)
        ),
        "image": BenchmarkOption(True, "show the image", (True, False)),
        "orders": BenchmarkOption(
            1, "number of option orders: the order of the file, then shuffled ones", least=1
        ),
        "variant": BenchmarkOption("none", "the variant's name", internal=True),
        "options": BenchmarkOption(
            None, "released predictions file with the question texts and option orders to use"
        ),
        "answers": BenchmarkOption(
            None, "answers file: {id: letter or option text}, letters in test.json's order"
        ),
        "answer_by": ANSWER_BY,
        "extraction": BenchmarkOption(
            "released", "how the option letter is extracted", ("released", "strict")
        ),
    }
    released_letters = staticmethod(released_letters)
    """The rule of the released script that finds letters in a response, and the letters."""

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """The questions of a split; few-shot settings leave their examples out."""
        return read_samples(folder, split, options["options"], options["answers"], _few_shot_ids(options))

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """One query, or one for each option order; `references` holds the right letter in that order."""
        first_order: tuple[str, ...] = sample.record.options
        root = sample.images[0].root if sample.images else ""
        orders = option_orders(first_order, options["orders"], f"{options['seed']}/{sample.id}")
        for number, order in enumerate(orders):
            letter = carry_letter(sample.references[0], sample.options, order) if sample.references else None
            images = [ImageRef(f"{root}/{path}", root) for path in _examples(options).values()]
            images.extend(sample.images)
            yield Probe(
                sample=sample.id,
                variant=options["variant"] if options["orders"] == 1 else f"order_{number}",
                messages=(user(self.prompt(sample, order, options), *(images if options["image"] else ())),),
                question=sample.question,
                references=(letter,) if letter else (),
                options=order,
                labels=sample.labels,
                choices=_letters(order) if options["answer_by"] == "likelihood" else (),
            )

    def prompt(self, sample: Sample, order: tuple[str, ...], options: Mapping[str, Any]) -> str:
        """The prompt of a question whose options are shown in this order."""
        label = sample.labels.get(options["prompt"], ())
        keywords = label if isinstance(label, str) else ",".join(label)
        return _recent_prompt(sample.question, order, options["prompt"], sample.record.keywords or keywords)

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """The released extraction, or the stricter one."""
        name = options["extraction"]
        rule = partial(read_option, extraction=name, released=self.released_letters)
        return [RuleScorer(f"{self.name}/{name}", "correct", rule)]

    def text_scores(self, outcome: Outcome, options: Mapping[str, Any]) -> Mapping[str, float]:
        """Whether the released and the strict extraction read the response differently."""
        if outcome.status != "ok":
            return {}
        released = most_frequent(self.released_letters(outcome.response, outcome.options)[1])
        strict = chosen_letter(outcome.response, outcome.options, outcome.question)
        return {"extractions_differ": 1.0} if released != strict else {}

    def value_notes(self, values: Mapping[str, MetricValue], options: Mapping[str, Any]) -> list[str]:
        """The released extraction is the paper's, and guesses where a response says more than a letter."""
        differ = values.get(EXTRACTIONS_DIFFER.name)
        if options["extraction"] != "released" or differ is None or not differ.value:
            return []
        return [
            f"the released extraction takes letters wherever they stand; for {differ.value:.1f} % of the "
            "responses the strict one, which takes what they state, reads something else "
            "(--set extraction=strict)"
        ]

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Sections 4.1 and Appendix E; `image_gain` is the drop in Table 6."""
        leaks = options["prompt"] == "none" and options["image"] and options["orders"] == 1
        return [
            *((choice.CONSISTENT,) if options["orders"] > 1 else ()),
            choice.ACCURACY,
            choice.ACCURACY_BY_POSITION,
            choice.ERROR,
            choice.MISS,
            choice.EMPTY,
            choice.REFUSED,
            *((choice.IMAGE_GAIN,) if leaks else ()),
            EXTRACTIONS_DIFFER,
            *choice.ANSWERED,
        ]

    def options_from_answers(
        self, file: str, predictions: Sequence[Prediction], folder: Path | None
    ) -> dict[str, Any]:
        """Question text and option order, if the file has them, in one order for each question."""
        orders = {(prediction.sample, prediction.options) for prediction in predictions}
        complete = all(options for _, options in orders)
        one_each = len({name for name, _ in orders}) == len(orders)
        return {"options": file} if complete and one_each else {}

    def partner(self, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The same prompt without the image."""
        return {**options, "image": False, "variant": setting}

    def released_records(
        self, folder: Path | None, split: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The questions as the split's file has them; there are none without a data folder."""
        return read_released(folder, split) if folder is not None else {}

    def sample_content(self, sample: Sample) -> Any:
        """Everything but the order of the options, which a predictions file may change."""
        return super().sample_content(replace(sample, record=None))

    def images_by_id(self, folder: Path) -> Mapping[str, ImageRef] | None:
        """The images of every split in the folder by their `local_path`."""
        return images_by_path(folder)

    def extra_texts(self, folder: Path, split: str) -> Mapping[str, list[str]]:
        """The explanations of the images."""
        return read_explanations(folder, split)


def extractions_differ(group: Group) -> Iterator[Term]:
    """1 for a response that the released and the strict extraction read differently, of 1 with text."""
    for outcome in group:
        if outcome.status == "ok":
            yield Term(outcome.scores.get("extractions_differ", 0.0), 1)


EXTRACTIONS_DIFFER = Metric(
    name="extractions_differ",
    terms=extractions_differ,
    meaning="responses that the released and the strict extraction read differently",
    better="lower",
    source="beyond the paper",
    judged=None,
    reads="verdicts",
)


def prompt_text(question: str, order: Sequence[str], name: str = "none", keywords: str = "") -> str:
    """Fill in a prompt of Appendix C, byte for byte as the released data_loader.py does."""
    shots = SHOTS.get(name, 0)
    parts = load(__package__)["few_shot" if shots else "keywords" if name in LABELS else name]
    listed = "\n".join(f"{letter} {option}" for letter, option in zip(_letters(order), order, strict=False))
    body = fill(
        parts["format"],
        question=question,
        options=listed,
        keywords=keywords,
        number=str(shots + 1),
    )
    if not shots:
        return f"{parts['instruction']}\n{body}"
    instruction = parts["instruction_one" if shots == 1 else "instruction_several"]
    return f"{instruction}\n" + "\n".join([*(e["text"] for e in parts["examples"][:shots]), body])


_recent_prompt = lru_cache(maxsize=4096)(prompt_text)
"""A run needs each prompt three times: to check it, to send it, and for the probe without the image. One with
more prompts than this makes them anew to send them."""


def _examples(options: Mapping[str, Any]) -> dict[str, str]:
    """The examples of a few-shot prompt: id -> image."""
    shots = SHOTS.get(options["prompt"], 0)
    return {example["id"]: example["image"] for example in load(__package__)["few_shot"]["examples"][:shots]}


def _few_shot_ids(options: Mapping[str, Any]) -> Sequence[str]:
    """The questions that few-shot settings leave out, the same for every number of shots."""
    few = options["prompt"] in SHOTS
    return [example["id"] for example in load(__package__)["few_shot"]["examples"]] if few else []


def _letters(order: Sequence[str]) -> tuple[str, ...]:
    """The possible answers, written as in the few-shot examples."""
    return tuple(f"({letter})" for letter, _ in zip(LETTERS, order, strict=False))


# -- The orders in which the options of a question are shown


def option_orders(options: Sequence[str], count: int, seed: str) -> Iterator[tuple[str, ...]]:
    """The order of the file, then shuffled ones."""
    order = tuple(options)
    yield order
    if count == 1:
        return  # Most settings show one order, and need none of what follows.
    distinct = factorial(len(options)) // prod(map(factorial, Counter(options).values()))
    shown = {order}
    for number in range(1, count):
        if len(shown) == distinct:
            shown.clear()
        generator = random.Random(f"{seed}/{number}")
        order = tuple(generator.sample(options, len(options)))
        while order in shown:
            order = tuple(generator.sample(options, len(options)))
        shown.add(order)
        yield order
