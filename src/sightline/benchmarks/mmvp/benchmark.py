"""MMVP: one question about two images that CLIP confuses, with opposite answers (Tong et al. 2024).

Code: tsb0601/MMVP at 763500597e65c3446f09047837ceda76f4e264bf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks import base
from sightline.benchmarks.released import data_folder
from sightline.errors import UserError
from sightline.formats.files import read_bytes
from sightline.formats.prediction import (
    AnswerFiles,
    Layout,
    Prediction,
    PredictionFile,
    identifier,
    reply,
)
from sightline.formats.tables import read_table, table_rows
from sightline.metrics.choice import MISS
from sightline.metrics.paired import ACC_P, ACC_Q
from sightline.scoring.options import read_option
from sightline.scoring.scorer import ModelScorer, Reading, Scorer, seeing
from sightline.text import Records, counted, fill, load
from sightline.types import Case, ImageRef, Message, Metric, Probe, Sample, Text, user

RECORDS = "Questions.csv"
QUESTIONS = 300
SAMPLING = {"temperature": 0.2, "max_tokens": 1024}
SAMPLING_SOURCE = "released scripts/evaluate_mllm.py"
VARIANTS = ("first", "second")


class MMVPRecord(Struct, frozen=True):
    """A line of Questions.csv; `number` is that of its image."""

    number: int
    question: str
    options: tuple[str, ...]
    answer: str


def _pair_of(number: int) -> tuple[str, str]:
    """The pair and the variant of a question."""
    first = number - (number - 1) % 2
    return f"{first}-{first + 1}", VARIANTS[number - first]


def _recognises(record: dict[str, Any]) -> bool:
    return {"question_id", "response"} <= record.keys()


def _read_answers(rows: Records, source: PredictionFile) -> list[Prediction]:
    found = []
    for where, record in rows:
        number = identifier(record.get("question_id"), "question_id", source.at(where))
        if not (number.isdecimal() and 1 <= int(number) <= QUESTIONS):
            raise source.at(where).error(
                "is no number of an image", field="question_id", found=number, expected=f"1 to {QUESTIONS}"
            )
        if "response" not in record:
            expected = "a text, or {'error': ...} for a failed call"
            raise source.at(number).error("has no response", field="response", expected=expected)
        response = reply(record["response"], "response", source.at(where))
        found.append(Prediction(*_pair_of(int(number)), **response._asdict()))
    return found


ANSWER_FILES = AnswerFiles(
    layouts=(Layout("MMVP's answers (question_id, response)", _recognises, _read_answers),),
    variants=" and ".join(f"'{name}'" for name in VARIANTS),
)


class MMVP(base.Benchmark):
    """300 questions in 150 pairs."""

    name = "mmvp"
    title = "MMVP: pairs of images that CLIP confuses"
    citation = "Tong et al. 2024, Eyes Wide Shut? Exploring the Visual Shortcomings of MLLMs, CVPR 2024"
    judged_by = ("rules", "model", "human")
    elsewhere = "huggingface.co/datasets/MMVP/MMVP"
    unpinned = base.UserRecords("test", RECORDS, QUESTIONS // 2)
    corrections = Path(__file__).with_name("corrections.jsonl")
    answer_files = ANSWER_FILES
    leading_metrics = ("acc_p", "acc_q")
    chance_notes: Mapping[str, str] = {"acc_p": "chance: acc_p 25.0, acc_q 50.0"}
    chance_levels: Mapping[str, float] = {"acc_p": 25.0, "acc_q": 50.0}
    settings = base.by_name(
        base.Setting("default", "question and options", "Figure 4", {}, SAMPLING, SAMPLING_SOURCE),
        base.Setting(
            "no-image", "without the image", "nothing published", {"image": False}, SAMPLING, SAMPLING_SOURCE
        ),
    )
    options: Mapping[str, base.BenchmarkOption] = {
        "image": base.BenchmarkOption(True, "send the image", (True, False)),
        "judge_image": base.JUDGE_IMAGE,
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterator[Sample]:
        """The pairs: lines 1 and 2 of the questions, 3 and 4, and so on."""
        folder = data_folder(folder, self.name, RECORDS)
        records = _read(folder / RECORDS)
        for pair in zip(records[::2], records[1::2], strict=True):
            name, _ = _pair_of(pair[0].number)
            paths = (folder / "MMVP Images" / f"{one.number}.jpg" for one in pair)
            yield Sample(
                id=name,
                question=pair[0].question,
                images=tuple(ImageRef(str(path), str(folder)) for path in paths),
                options=pair[0].options,
                cluster=name,
                record=pair,
            )

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """The image, the question and the options, as the released script joins them."""
        for variant, image, one in zip(VARIANTS, sample.images, sample.record, strict=True):
            shown = (image,) if options["image"] else ()
            yield Probe(
                sample=sample.id,
                variant=variant,
                messages=(user(*shown, _prompt(one.question, one.options)),),
                question=one.question,
                references=(one.answer,),
                options=one.options,
                evidence=(image,) if options["judge_image"] else (),
            )

    def rule(self, case: Case) -> Reading:
        """The option that the response states; the release has no rules, it asks GPT-4."""
        return read_option(case, "strict")

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """The rules, or the released prompt for GPT-4, whose reply is yes, no or no verdict."""
        prompt = load(__package__)["judge"]

        def ask(case: Case) -> tuple[Message, ...]:
            texts = {
                "question": _prompt(case.probe_question, case.options),
                "reference": f"({case.references[0].lower()})",
                "output": case.texts[0],
            }
            return (Message("system", (Text(prompt["system"]),)), user(fill(prompt["text"], **texts)))

        judge = ModelScorer("mmvp/yes_no", "correct", ask, _read_judge)
        return [*super().scorers(options), seeing(judge, options["judge_image"])]

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """That of the released gpt_grader.py, and accuracy, which other tools print."""
        return [
            replace(ACC_P, source="released scripts/gpt_grader.py"),
            replace(ACC_Q, source="beyond the paper"),
            MISS,
        ]


def _prompt(question: str, options: Sequence[str]) -> str:
    """The question and the cell `Options`, which some lines end with a space, as the release joins them."""
    first, second = options
    return f"{question} (a) {first} (b) {second}"


def _read_judge(case: Case, reply: str) -> Reading:
    said = re.fullmatch("(yes|no)\n?", reply, re.IGNORECASE)
    if said is None:
        return Reading("undecided", reply)
    return Reading("right" if said[1].lower() == "yes" else "wrong", reply)


# -- The released table of questions


def _read(path: Path) -> list[MMVPRecord]:
    # As pandas reads it in the released script: a quotation mark within a quoted cell is no error.
    table = read_table(read_bytes(path), path, strict=False)
    index = "lndex" if "lndex" in table.header else "Index"  # some copies spell it with a small L
    for name in (index, "Question", "Options", "Correct Answer"):
        if name not in table.header:
            raise UserError("has no such column", file=path, field=name, found=", ".join(table.header))
    records = [
        _record(path, row, number, index) for number, (_, row) in enumerate(table_rows(table, path), 1)
    ]
    if not records or len(records) % 2:
        found = counted(len(records), "question")
        raise UserError("does not hold pairs", file=path, found=found, expected=f"that of {MMVP.elsewhere}")
    for first, second in zip(records[::2], records[1::2], strict=True):
        if (first.question, first.options) != (second.question, second.options):
            raise UserError(
                "has another question or other options than the line before it",
                file=path,
                record=f"question {second.number}",
                field="Question",
                found=_prompt(second.question, second.options),
                expected=_prompt(first.question, first.options),
            )
    return records


def _record(path: Path, row: Mapping[str, str], number: int, index: str) -> MMVPRecord:
    def cell(field: str, expected: str, pattern: str) -> re.Match[str]:
        found = re.fullmatch(pattern, row[field], re.DOTALL)
        if found is None:
            raise UserError(
                "is not as released",
                file=path,
                record=f"question {number}",
                field=field,
                found=row[field],
                expected=expected,
            )
        return found

    cell(index, f"{number}: the numbers of the images, in order", f"\\s*{number}\\s*")
    question = cell("Question", "a question", r".*\S.*")[0]
    options = cell("Options", "(a) ... (b) ...", r"\(a\) (.+?) \(b\) (.+)").groups()
    answer = cell("Correct Answer", "(a) or (b)", r"\s*\(([abAB])\)\s*")[1]
    return MMVPRecord(number, question, options, answer.upper())
