"""CODIS: context-dependent image disambiguation: an image, a question, two contexts (Luo et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.base import (
    JUDGE_IMAGE,
    Benchmark,
    BenchmarkOption,
    ByLabel,
    PairCounts,
    Release,
    ReleasedRecords,
    Setting,
    Shares,
    Together,
    answer_cases,
    by_name,
)
from sightline.benchmarks.codis import rules
from sightline.benchmarks.codis.data import ANSWER_FILES, EXPORT_FORMATS, RECORDS, read_samples
from sightline.benchmarks.codis.rules import judge_answer_part, same_meaning_by_rules
from sightline.metrics import paired
from sightline.scoring.scorer import (
    Reading,
    RuleScorer,
    Scorer,
    right_or_wrong,
    same_meaning_by_model,
    seeing,
)
from sightline.scoring.text import answer_part
from sightline.text import fill, load
from sightline.types import Case, Group, ImageRef, Message, Metric, Outcome, Probe, Sample, user

# -- CODIS's data set: repository, pinned revision, digests, licence, citation

RELEASE = Release(
    name="codis",
    repository="THUNLP-MT/CODIS",
    revision="d070cf759c42676c88925004c83f1d81585675a7",
    records=(
        ReleasedRecords(
            split="test",
            path="data/data.json",
            name="data.json",
            sha256="f7823ce5efea89912dc65ca5586ff0790fe75c2cf7e4d95fa854f57ebb325709",
            samples=353,
            images=216,
        ),
    ),
    images="data/images",
    paper="Luo et al. 2024, CODIS: Benchmarking Context-Dependent Visual Comprehension for "
    "Multimodal Large Language Models, arXiv:2402.13607",
    licence="the repository's LICENSE is Apache-2.0; the images have no terms of their own",
)


SAMPLING = {"temperature": 0, "max_tokens": 1024}
SAMPLING_SOURCE = "unpublished for most models; temperature 0 and 1024 tokens here"

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "released": {"temperature": None, "max_tokens": 300},
    "released-gemini": {"temperature": 0.4, "top_p": 1, "top_k": 32, "max_tokens": 2048},
}
"""`--preset NAME`: the sampling options that the released scripts sent to GPT-4V and to Gemini."""

JUDGE_PROMPTS = {"paper": "judge", "released": "judge_released"}
"""The values of the option `judge_prompt`, and their names in prompts.toml."""


def _setting(name: str, summary: str, reproduces: str, **options: Any) -> Setting:
    return Setting(name, summary, reproduces, options, SAMPLING, SAMPLING_SOURCE)


class Codis(Benchmark):
    """353 pairs of queries: the same image and question under two contexts with different answers."""

    name = "codis"
    title = "CODIS: context-dependent visual comprehension"
    citation = "Luo et al. 2024, CODIS: Benchmarking Context-Dependent Visual Comprehension for MLLMs"
    judged_by = ("rules", "model", "human")
    presets = PRESETS
    release = RELEASE
    published = Path(__file__).with_name("published.json")
    released_digests = Path(__file__).with_name("released.json")
    answer_files = ANSWER_FILES
    export_formats = EXPORT_FORMATS
    leading_metrics = ("acc_p", "acc_q")
    chance_notes: Mapping[str, str] = {
        "acc_q": "chance on questions with two options: acc_q 50.0, acc_p 25.0; "
        "baseline/chance answers open questions with yes or no, which is wrong",
        "acc_p": "a model that ignores the context gets acc_p 0.0",
    }
    correlated_metrics = (("context_awareness", "acc_p"), ("context_awareness", "acc_q"))  # section 4.2
    report_sections = (
        PairCounts("acc_p", "context_awareness", "category"),
        ByLabel("acc_p", "category"),
        Together("Use of the context", ("context_awareness", "output_variability")),
        Shares(
            "Bias: which of two offered words the responses name (Table 6)",
            (
                ("bias_first", "first word"),
                ("bias_second", "second word"),
                ("bias_neither", "neither or both"),
            ),
            "words",
        ),
    )
    settings = by_name(
        _setting("default", "detailed instructions and chain of thought", "Tables 3 and 10"),
        _setting("no-cot", "detailed instructions, no chain of thought", "Table 13", cot=False),
        _setting("no-instructions", "chain of thought only", "Table 13", instructions=False),
        _setting("plain", "neither", "Table 13", instructions=False, cot=False),
        _setting("no-context", "image and question only", "Table 4", context=False, instructions=False),
        _setting("captions", "a caption instead of the image", "Table 5", image="caption"),
        _setting("no-image", "without the image: test of leakage", "beyond the paper", image="none"),
    )
    options: Mapping[str, BenchmarkOption] = {
        "instructions": BenchmarkOption(True, "detailed instructions (Table 11: DI)", (True, False)),
        "cot": BenchmarkOption(True, "chain of thought (Table 11: CoT)", (True, False)),
        "context": BenchmarkOption(True, "give the context", (True, False)),
        "image": BenchmarkOption(
            "shown", "send the image, its caption, or nothing", ("shown", "caption", "none")
        ),
        "captions": BenchmarkOption(
            None, "file of captions (`build caption`): JSON or JSONL, image_id -> caption"
        ),
        "bias": BenchmarkOption(rules.DEFAULT_SETS, "pairs of words for the bias metrics (Table 6)"),
        "judge_prompt": BenchmarkOption(
            "paper", "the judge's prompt: Table 12 or eval.py", tuple(JUDGE_PROMPTS)
        ),
        "judge_image": JUDGE_IMAGE,
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """The pairs of data.json; in setting captions those whose image has a caption (section 5.1)."""
        return read_samples(folder, options["image"] == "caption", options["captions"])

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """The two queries (I, Q, C1) and (I, Q, C2), asked separately (section 3.2)."""
        record, caption = sample.record
        for variant, context, answer in (
            ("context_1", record.context.context_1, record.answer.answer_1),
            ("context_2", record.context.context_2, record.answer.answer_2),
        ):
            yield Probe(
                sample=sample.id,
                variant=variant,
                messages=(_message(sample, context, caption, options),),
                question=record.question,
                references=(answer,),
                labels=sample.labels,
                context=context if options["context"] else "",
                evidence=sample.images if options["judge_image"] else (),
            )

    def cases(self, group: Group) -> Iterator[Case]:
        """Each answer against its ground truth, the other answer and the one without context."""
        yield from answer_cases(group)
        if len(group) == 2:
            yield _compare(*group)
        for outcome, without in zip(group, group.partners.get("no-context", ()), strict=False):
            yield _compare(outcome, without)

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """Rules, and a model with the prompt of Table 12 or the released one."""
        prompts = load(__package__)
        prompt = options["judge_prompt"]
        judge = right_or_wrong(prompts[JUDGE_PROMPTS[prompt]]["text"], released=prompt == "released")
        return [
            RuleScorer("codis/rules", "correct", _judge_answer),
            RuleScorer("codis/same_meaning", "same_meaning", _judge_meaning),
            seeing(judge, options["judge_image"]),
            same_meaning_by_model(),
        ]

    def text_scores(self, outcome: Outcome, options: Mapping[str, Any]) -> Mapping[str, float]:
        """The word of each pair of words that the response names (section 5.2)."""
        return rules.bias_scores(outcome, rules.word_sets(options["bias"]))

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Sections 3.3, 4.2 and 5.2."""
        return [
            paired.ACC_P,
            paired.ACC_Q,
            *((paired.ACC_P_IMAGES,) if options["image"] == "caption" else ()),
            paired.CONTEXT_AWARENESS,
            paired.CONTEXT_AWARENESS_LEFT_OUT,
            *((paired.OUTPUT_VARIABILITY, paired.OUTPUT_VARIABILITY_LEFT_OUT) if options["context"] else ()),
            *rules.bias_metrics(rules.word_sets(options["bias"])),
        ]

    def partner(self, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The same prompt without its context, or with the image instead of the caption."""
        changed = {"context": False, "instructions": False} if setting == "no-context" else {"image": "shown"}
        return {**options, **changed}

    def released_records(
        self, folder: Path | None, split: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The records of data.json."""
        return {sample.id: sample.record[0] for sample in read_samples(folder, False, None)}

    def sample_content(self, sample: Sample) -> Any:
        """The record without the caption, which setting captions adds."""
        return super().sample_content(replace(sample, record=sample.record[0]))

    def images_by_id(self, folder: Path) -> Mapping[str, ImageRef] | None:
        """The images of data.json by their `image_id`."""
        if not (folder / RECORDS).is_file():
            return None
        samples = read_samples(folder, False, None)
        return {sample.record[0].image_id: sample.images[0] for sample in samples}


def _message(sample: Sample, context: str, caption: str, options: Mapping[str, Any]) -> Message:
    """One of the four prompts of Table 11, without its context or image if an option leaves them out."""
    text = prompt_text(sample.question, context, caption, options)
    return user(sample.images[0], text) if options["image"] == "shown" else user(text)


def prompt_text(question: str, context: str, caption: str, options: Mapping[str, Any]) -> str:
    """Fill in a prompt of Table 11."""
    prompts = load(__package__)
    parts = prompts["inference" if options["context"] else "no_context"]
    instructed = options["instructions"] and options["context"]
    text = parts["opening"] + (parts["instructions"] if instructed else "")
    if options["cot"]:
        text += parts["cot_with_instructions"] if instructed else parts["cot"]
    else:
        text += parts["direct"]
    if options["image"] == "caption":
        text += fill(prompts["captions"]["line"], caption=caption)
    return str(text + fill(parts["ending"], context=context, question=question))


def _compare(first: Outcome, second: Outcome) -> Case:
    """Compares the answer parts of two outputs; their reasoning always differs."""
    texts = (answer_part(first.response), answer_part(second.response))
    return Case((first.key, second.key), "same_meaning", first.question, texts)


def _judge_answer(case: Case) -> Reading:
    answer = answer_part(case.texts[0])
    verdict, rule = judge_answer_part(case.probe_question, case.references[0], answer)
    return Reading(verdict, rule=rule, words=answer)


def _judge_meaning(case: Case) -> Reading:
    return Reading(same_meaning_by_rules(case.probe_question, *case.texts))
