"""ConBench: one point of knowledge about an image asked in four ways (Zhang et al. 2024).

Code: foundation-multimodal-models/ConBench at 6b5b59b6dbc97d98910df3645383731140fb6aa7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.benchmarks import base
from sightline.benchmarks.released import data_folder, read_records
from sightline.errors import UserError, some_of
from sightline.formats.prediction import AnswerFiles
from sightline.scoring.chosen import read_choice
from sightline.scoring.letters import named_option, right_positions
from sightline.scoring.scorer import ModelScorer, Reading, RuleScorer, Scorer
from sightline.text import fill, load
from sightline.types import (
    LETTERS,
    Case,
    Group,
    ImageRef,
    Message,
    Metric,
    Outcome,
    Probe,
    Sample,
    Term,
    VerdictName,
    user,
)

ABILITIES = {
    "Sensation": ("count", "color", "scene", "poster", "attribute_recognition", "ocr", "position"),
    "Cognition": (
        "calculation",
        "code",
        "translation",
        "math",
        "cross_instance_reason",
        "attribute_reason",
    ),
    "Knowledge": ("celebrity", "chemistry", "physics", "biology", "landmark", "artwork"),
}
"""The tasks, each a folder of the data, in the order of Score.py."""

FIELDS = {"ny": "N/Y", "choice": "Choices", "qa": "Q/A", "caption": "Caption"}
"""The variants, in the order of the records of an image, and their `question_field`."""

ASKED = ("ny", "choice", "qa")
SIDES = ("yes", "no")
ANLS_RIGHT, ANLS_SAME, FARTHEST = 0.4, 0.2, 0.95
"""The similarities of Score.py: of a right answer, of equal wrong ones, and the threshold of ANLS."""

SAMPLING = {"temperature": 0, "max_tokens": 512}
SAMPLING_SOURCE = "released eval/InternVL-Chat-V1-2-Plus-40B.py"

_LISTED = re.compile(r"(?:^|(?<=[\s(]))([A-Z])[.):] *(.*?)\s*(?=$|\n|[\s(][A-Z][.):])", re.MULTILINE)


class ConBenchRecord(Struct, frozen=True):
    """One released record: a question about an image, or the request to describe it."""

    image: str
    question: str
    question_field: str
    answer: str | int | float | None


class ConBench(base.Benchmark):
    """1,000 images of 19 tasks, each with a question to be answered in three forms, and a caption."""

    name = "conbench"
    title = "ConBench: consistency of answers in four forms"
    citation = "Zhang et al. 2024, Unveiling the Tapestry of Consistency in LVLMs, NeurIPS 2024"
    judged_by = ("rules", "model", "human")
    elsewhere = "huggingface.co/datasets/ConBench/ConBench"
    unpinned = base.UserRecords("test", "count/output_w_caption_count.json", 1000)
    answer_files = AnswerFiles(variants=", ".join(f"'{name}'" for name in FIELDS))
    leading_metrics = ("con_score_d", "acc_ny", "acc_choice", "acc_qa")
    chance_levels: Mapping[str, float] = {"acc_ny": 50.0}
    report_sections = (
        base.ByLabel("con_score_d", "ability"),
        base.ByLabel("con_score_d", "task"),
        base.Together("Answers that the caption confirms", tuple(f"con_cap_{name}" for name in ASKED)),
    )
    settings = base.by_name(
        base.Setting(
            "default",
            "choices and captions with a request for their form",
            "its leaderboards",
            {},
            SAMPLING,
            SAMPLING_SOURCE,
        ),
        base.Setting(
            "plain", "the questions alone", "lmms-eval", {"prompt": "plain"}, SAMPLING, SAMPLING_SOURCE
        ),
    )
    options: Mapping[str, base.BenchmarkOption] = {
        "prompt": base.BenchmarkOption("formatted", "the form of the prompts", ("formatted", "plain")),
        "image": base.BenchmarkOption(True, "send the image", (True, False)),
        "extraction": base.BenchmarkOption(
            "strict",
            "how yes, no and letters are read: what is stated, or as Score.py",
            ("strict", "released"),
        ),
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterator[Sample]:
        """The images of each task, each with its four records."""
        folder = data_folder(folder, self.name, _records("count"))
        for ability, tasks in ABILITIES.items():
            for task in tasks:
                path = folder / _records(task)
                records = read_records(path, ConBenchRecord, name="image")
                for start in range(0, len(records), len(FIELDS)):
                    four = records[start : start + len(FIELDS)]
                    _check(path, start, four)
                    yield Sample(
                        id=f"{task}/{start // len(FIELDS) + 1}",
                        question=four[0].question,
                        images=(ImageRef(str(path.parent / four[0].image), str(folder)),),
                        labels={"ability": ability, "task": task},
                        record=four,
                    )

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """The image and each question; the caption has no reference."""
        suffixes = load(__package__)["suffixes"] if options["prompt"] == "formatted" else {}
        shown = sample.images if options["image"] else ()
        for variant, one in zip(FIELDS, sample.record, strict=True):
            answer = str(one.answer)
            yield Probe(
                sample=sample.id,
                variant=variant,
                messages=(user(*shown, one.question + suffixes.get(variant, "")),),
                question=one.question,
                references={"caption": (), "choice": (answer.upper(),)}.get(variant, (answer,)),
                options=(_options(one.question) or _letters(answer)) if variant == "choice" else (),
                labels=sample.labels,
            )

    def left_out_notes(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> list[str]:
        """Say how many references Score.py cannot find, and how many questions list no readable options."""
        asked = [
            (f"{sample.id} {variant}", variant, one)
            for sample in self.samples(folder, split, options)
            for variant, one in zip(ASKED, sample.record, strict=False)
        ]
        odd = [
            name
            for name, variant, one in asked
            if (variant == "ny" and str(one.answer).lower() not in SIDES)
            or (variant == "choice" and len(str(one.answer)) != 1)
        ]
        unlisted = [
            name for name, variant, one in asked if variant == "choice" and not _options(one.question)
        ]
        found = (
            (odd, "references are not yes or no, or no letter, and never right, as released"),
            (unlisted, "questions list no options that can be read; only a letter answers them"),
        )
        return [f"{len(names)} {what}: {some_of(names, 3)}" for names, what in found if names]

    def cases(self, group: Group) -> Iterator[Case]:
        """Each answer, then each beside the caption, whose words a judge looks for it in."""
        yield from (case for case in base.answer_cases(group) if case.references)
        for outcome, caption in _with_caption(group):
            texts = (outcome.response, caption.response)
            yield Case((outcome.key, caption.key), "in_caption", outcome.question, texts)

    def reference_sides(self, outcome: Outcome) -> Sequence[str]:
        return SIDES if outcome.variant == "ny" else ()

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """The rules for answers, and the released prompt for GPT-4 about answer and caption."""
        prompt = load(__package__)["judge"]["text"]

        def ask(case: Case) -> tuple[Message, ...]:
            answer, caption = (_one_line(text) for text in case.texts)
            texts = {"caption": caption, "question": case.probe_question, "output": answer.lower()}
            return (user(fill(prompt, **texts)),)

        name = options["extraction"]
        return [
            RuleScorer(f"conbench/{name}", "correct", partial(_judge, extraction=name)),
            ModelScorer("conbench/in_caption", "in_caption", ask, _read_judge, reads_truncated=True),
        ]

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Those of the released Score.py."""
        return METRICS


def _records(task: str) -> str:
    return f"{task}/output_w_caption_{task}.json"


def _check(path: Path, start: int, four: Sequence[ConBenchRecord]) -> None:
    """Raise UserError unless these are the four records of one image, in their order."""
    for number, (one, expected) in enumerate(zip(four, FIELDS.values(), strict=False), start + 1):
        if (one.question_field, one.image) != (expected, four[0].image):
            field = "image" if one.question_field == expected else "question_field"
            raise UserError(
                "is not the next of the four records of an image",
                file=path,
                record=f"record {number}",
                field=field,
                found=getattr(one, field),
                expected=four[0].image if field == "image" else expected,
            )
        if one.answer is None and expected != "Caption":
            raise UserError(
                "has no answer", file=path, record=f"record {number}", field="answer", expected="a text"
            )
    if len(four) < len(FIELDS):
        record = f"records from {start + 1}"
        raise UserError("ends within the four records of an image", file=path, record=record, found=len(four))


# -- Reading one answer


def _options(question: str) -> tuple[str, ...]:
    """The options that a question lists by letters from A; none if it lists fewer than two.

    >>> _options("Which one? A. red B. light blue")
    ('red', 'light blue')
    """
    listed = _LISTED.findall(question)
    letters = "".join(letter for letter, _ in listed)
    return tuple(text for _, text in listed) if len(listed) > 1 and LETTERS.startswith(letters) else ()


def _letters(reference: str) -> tuple[str, ...]:
    """The options of a question that lists none: A to D, or to the letter of its reference."""
    return tuple(LETTERS[: max(4, 1 + LETTERS.find(reference.upper()))])


def _one_line(response: str) -> str:
    """The response as the release writes it into a line of its result files."""
    return response.replace("\n", "")


def _side(text: str) -> str | None:
    """Yes or no by the first four characters, as released: 'know' and 'none' say no."""
    return text if text in SIDES else next((side for side in SIDES if side in text[:4]), None)


def _judge(case: Case, extraction: str) -> Reading:
    response, reference = case.texts[0], case.references[0]
    said: str | None
    text = _one_line(response).lower()
    if case.variant == "qa":
        score = anls(text, reference)
        verdict: VerdictName = "right" if score >= ANLS_RIGHT else "wrong"
        return Reading(verdict, extracted=text, scores={"anls": score}, rule=f"ANLS {score:.2f}")
    if extraction == "released":
        said = _side(text) if case.variant == "ny" else text.replace(" ", "")[:1].upper()
        rule, words = "first characters", text[:4]
        is_right = said is not None and said.lower() == reference.lower()
    else:
        offered = case.options or SIDES
        position, rule, words = read_choice(response, offered, case.probe_question)
        said = (
            None if position is None else named_option(position, offered) if case.options else SIDES[position]
        )
        right = right_positions((reference if case.options else reference.lower(),), offered)
        is_right = position in right
    if not said:
        return Reading("miss", rule=rule, words=words)
    return Reading("right" if is_right else "wrong", extracted=said, rule=rule, words=words)


def _read_judge(case: Case, reply: str) -> Reading:
    return Reading("right" if _side(reply.lower()) == "yes" else "wrong", reply)


def anls(answer: str, reference: str) -> float:
    """The similarity of two texts by edits, from 0 to 1: that of the package `anls` at its threshold 0.95.

    >>> anls("coca  cola", "Coca Cola"), anls("13", "12"), anls("a", "b")
    (1.0, 0.5, 0.0)
    """
    first, second = (" ".join(text.lower().split()) for text in (answer, reference))
    row = list(range(len(second) + 1))
    for number, character in enumerate(first, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(second, 1):
            before, row[place] = (
                row[place],
                min(before + (character != other), row[place] + 1, row[place - 1] + 1),
            )
    distance = row[-1] / max(len(first), len(second), 1)
    return 1 - distance if distance < FARTHEST else 0.0


# -- Metrics


def _with_caption(group: Group) -> Iterator[tuple[Outcome, Outcome]]:
    caption = next((one for one in group if one.variant == "caption"), None)
    if caption is not None:
        yield from ((one, caption) for one in group if one.variant in ASKED)


def _right(variant: str, group: Group) -> Iterator[Term]:
    for outcome in group:
        if outcome.variant == variant and outcome.scored:
            yield Term(outcome.right, 1)


def _all_right(group: Group) -> Iterator[Term]:
    right = {outcome.variant: outcome.right for outcome in group if outcome.scored}
    if all(name in right for name in ASKED):
        yield Term(all(right[name] for name in ASKED), 1)


def _agree(counts_right: bool, group: Group) -> Iterator[Term]:
    found = {outcome.variant: outcome for outcome in group if outcome.scored}
    if "choice" in found and "qa" in found:
        choice, answer = found["choice"], found["qa"]
        both, neither = choice.right and answer.right, not (choice.right or answer.right)
        # Two answers of which nothing was read, as of two failed calls, are not the same answer.
        letter, text = choice.extracted or "", answer.extracted or ""
        same = neither and "" not in (letter, text) and anls(letter, text) > ANLS_SAME
        yield Term(same or (counts_right and both), 1)


def _confirmed(variants: Collection[str], group: Group) -> Iterator[Term]:
    for outcome, caption in _with_caption(group):
        verdict = group.judgement("in_caption", outcome.key, caption.key)
        if outcome.variant in variants and verdict is not None and verdict.verdict in ("right", "wrong"):
            yield Term(verdict.verdict == "right", 1)


def _metric(name: str, terms: Callable[[Group], Iterator[Term]], meaning: str, **more: Any) -> Metric:
    return Metric(
        name=name, terms=terms, meaning=meaning, better="higher", source="released Score.py", **more
    )


_CAPTION = {"judged": "in_caption", "absent": "no judge compared answers with captions: --judge MODEL"}
METRICS = (
    _metric("con_score_d", _all_right, "images whose three answers are right: ConScore[D]", per_group=True),
    _metric("acc_ny", partial(_right, "ny"), "right answers to questions for yes or no"),
    _metric("acc_choice", partial(_right, "choice"), "right answers to questions with options"),
    _metric("acc_qa", partial(_right, "qa"), "right answers to open questions: ANLS of 0.4 or more"),
    _metric(
        "con_choice_qa",
        partial(_agree, True),
        "images whose choice and open answer are both right, or both wrong and similar",
        per_group=True,
    ),
    _metric(
        "con_choice_qa_wrong",
        partial(_agree, False),
        "images whose choice and open answer are both wrong, and the letter similar to the text",
        per_group=True,
    ),
    _metric(
        "con_score_c",
        partial(_confirmed, ASKED),
        "answers that the caption confirms: ConScore[C]",
        **_CAPTION,
    ),
    *(
        _metric(
            f"con_cap_{name}",
            partial(_confirmed, (name,)),
            f"answers ({name}) that the caption confirms",
            **_CAPTION,
        )
        for name in ASKED
    ),
)
