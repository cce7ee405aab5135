"""DynaMath: one mathematical question in ten variants of its values and its figure (Zou et al. 2025).

A seed question is the group and the cluster; its variants are the trials of the release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from sightline.benchmarks import base
from sightline.benchmarks.dynamath.readers import FLOAT, READERS, answer_type, parsed, read_reply, shortened
from sightline.benchmarks.released import data_folder, read_records_by_id
from sightline.errors import UserError
from sightline.formats.prediction import AnswerFiles
from sightline.metrics.choice import MISS, accuracy, consistent
from sightline.scoring.scorer import ModelScorer, RuleScorer, Scorer
from sightline.text import fill, load
from sightline.types import (
    LETTERS,
    Case,
    Group,
    ImageRef,
    Message,
    Metric,
    Probe,
    Sample,
    Term,
    Text,
    user,
)

VARIANTS = 10
TRIALS = "samples and result/10trials"
DIGESTS = (
    "c65d4cf7e150d901a9989563bfe681a3dd9ff65d14859d1bcabf0359a62592a4",
    "e3bb72e9507f05ce99e047ddeff96c40a6481f6283dbeeae6c7433e57f5ff474",
    "69521111b59644d65cba0f9d730c6f2e507dde36ccfcc9fd86870c25477cefc7",
    "a0522ecff0a3c2287840f3cd57d8a4e95f7830f0ca001580f821bed61e790bec",
    "0eef1b5850462855dbcc62968e5e7f7de3d116713ad5e55ca4aa35869136c0e6",
    "4d0fe6130b1eca53af70ad739b51f2e53adfcc7a79b4ce8ed69b92d5e5f4f205",
    "6bf273ae05085be5e5b9d6f1925a6c8cad5949fff5fd302c774e607145759532",
    "719e5daf948e7c421d81a2502510e1dd805d675192e33aca95c45bf915deebf3",
    "a39bff61d95a31599d852e58fcdcb0a65c86b67995282aec64fde82d12537e4f",
    "b0c1ac6e22f967ca3574694854c3989b0d140396f049793dc5f347d5cd57ad86",
)
"""Of dataset.json in trial1 to trial10."""


def _file(number: int) -> str:
    return f"trial{number}/dataset.json"


RELEASE = base.Release(
    name="dynamath",
    repository="DynaMath/DynaMath",
    revision="598c3c3d732422d29580e9ecf8f2a7928a068fdd",
    records=(
        base.ReleasedRecords("test", f"{TRIALS}/{_file(1)}", _file(1), DIGESTS[0], samples=501, images=4368),
    ),
    files=tuple(
        base.ReleasedFile(f"{TRIALS}/{_file(number)}", _file(number), digest)
        for number, digest in enumerate(DIGESTS[1:], 2)
    ),
    images=TRIALS,
    paper="Zou et al. 2025, DynaMath: A Dynamic Visual Benchmark for Evaluating Mathematical Reasoning "
    "Robustness of Vision Language Models, ICLR 2025, arXiv:2411.00836",
    licence="MIT by a badge of its README, Apache-2.0 by the card of the same data at the Hub",
)
SAMPLING = {"temperature": 0, "max_tokens": 8192}
SAMPLING_SOURCE = "the released evaluation/claude/claude_json_eval.py"


_FORMS = (re.compile(r"\(([A-H])\)"), re.compile(r"^([A-H])[.:]\s", re.MULTILINE))


class DynaMathRecord(Struct, frozen=True):
    """One variant of a seed question; `image` is relative to the folder of its trial."""

    question: str
    answer: str
    image: str
    answer_type: Literal["float", "multiple choice", "text"]
    subject: str
    level: str

    @property
    def options(self) -> tuple[str, ...]:
        """The options at the end of a question, as (A) ... or as lines of A. or A: ...; none otherwise."""
        for form in _FORMS:
            _, *parts = form.split(self.question)
            letters = "".join(parts[::2])
            first = letters.rfind("A")
            if "AB" in letters and letters[first:] == LETTERS[: len(letters) - first]:
                texts = tuple(part.strip() for part in parts[2 * first + 1 :: 2])
                return texts if all(texts) else tuple(letters[first:])  # the figure shows the options
        return ()


class DynaMath(base.Benchmark):
    """501 seed questions, each in ten variants."""

    name = "dynamath"
    title = "DynaMath: robustness of visual mathematical reasoning"
    citation = "Zou et al. 2025, DynaMath: A Dynamic Visual Benchmark, ICLR 2025"
    judged_by = ("rules", "model", "human")
    release = RELEASE
    answer_files = AnswerFiles(variants="'1' to '10'")
    leading_metrics = ("average", "worst_case", "robustness")
    report_sections = (
        base.Together("All variants of a seed", ("average", "worst_case", "robustness")),
        base.ByLabel("average", "subject", radar=True),
        base.ByLabel("worst_case", "subject"),
        base.ByLabel("average", "level"),
        base.ByLabel("average", "answer_type"),
    )
    settings = base.by_name(
        *(
            base.Setting(name, summary, source, {"prompt": name}, SAMPLING, SAMPLING_SOURCE)
            for name, summary, source in (
                ("closed", "the prompt of its scripts for GPT-4o and Claude", "the paper's closed models"),
                ("open", "the prompt of its script for open models", "the paper's open models"),
                ("vlmevalkit", "the prompt of VLMEvalKit", "VLMEvalKit"),
            )
        ),
        base.Setting(
            "no-image", "without the figures", options={"prompt": "closed", "image": False}, sampling=SAMPLING
        ),
    )
    options: Mapping[str, base.BenchmarkOption] = {
        "prompt": base.BenchmarkOption("closed", "the prompt", ("closed", "open", "vlmevalkit")),
        "reader": base.BenchmarkOption("stated", "how answers are read", tuple(READERS)),
        "image": base.BenchmarkOption(True, "send the figures", (True, False)),
    }

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterator[Sample]:
        """The seed questions, each with its variants in the order of the trials."""
        folder = data_folder(folder, self.name, _file(1))
        trials = _trials(folder)
        records = [read_records_by_id(folder / _file(number), DynaMathRecord) for number in trials]
        for number, trial in zip(trials, records, strict=True):
            if odd := sorted(trial.keys() ^ records[0].keys()):
                raise UserError(
                    "this seed question is not in every trial",
                    file=folder / _file(number),
                    record=odd[0],
                    expected=f"the seed questions of {_file(1)}",
                )
            for name, record in trial.items():
                _check(record, name, folder / _file(number))
        for name, first in records[0].items():
            variants = [trial[name] for trial in records]
            yield Sample(
                id=name,
                question=first.question,
                images=tuple(
                    ImageRef(str(_trial_folder(folder, number) / record.image), str(folder))
                    for number, record in zip(trials, variants, strict=True)
                ),
                references=(first.answer,),
                labels={"subject": first.subject, "level": first.level, "answer_type": first.answer_type},
                cluster=name,
                record=variants,
            )

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """The variants; a question of type float ends with the sentence that says so."""
        prompt = load(__package__)[options["prompt"]]
        for number, image, record in zip(count(1), sample.images, sample.record, strict=False):
            is_float = record.answer_type == "float"
            text = fill(
                prompt["text"],
                question=record.question,
                float=prompt.get("float", "") if is_float else "",
                instruction=prompt.get("instruction", {}).get(record.answer_type, ""),
            )
            shown: tuple[ImageRef | str, ...] = (image,) if options["image"] else ()
            parts = (text, *shown) if options["prompt"] == "closed" else (*shown, text)
            yield Probe(
                sample=sample.id,
                variant=str(number),
                messages=(user(*parts),),
                question=f"{record.question} {FLOAT}" if is_float else record.question,
                references=(record.answer,),
                options=record.options if record.answer_type == "multiple choice" else (),
                labels=sample.labels,
            )

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """A reader by rules; where VLMEvalKit reads nothing, the model that it asks."""
        name = options["reader"]
        rules = RuleScorer(f"dynamath/{name}", "correct", READERS[name])
        if name != "vlmevalkit":
            return [rules]
        prompts = load(__package__)["vlmevalkit_judge"]

        def ask(case: Case) -> tuple[Message, ...]:
            instruction = prompts["instruction"][answer_type(case)]
            values = {"response": shortened(case.texts[0]), "instruction": instruction}
            system = Message("system", (Text(prompts["system"]),))
            return (system, user(fill(prompts["text"], **values)))

        model = ModelScorer(
            "dynamath/short_answer",
            "correct",
            ask,
            read_reply,
            reads_truncated=True,
            concerns=lambda case: parsed(case) is None,
        )
        return [rules, model]

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """The accuracies of section 3 of the paper."""
        return METRICS

    def left_out_notes(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> list[str]:
        """Another number of variants changes the worst case."""
        found = len(_trials(data_folder(folder, self.name, _file(1))))
        if found == VARIANTS:
            return []
        return [f"the data have {found} variants of each question, the release has {VARIANTS}"]


def _trials(folder: Path) -> list[int]:
    """The numbers of the trials in a folder, from 1 without a gap."""
    found = sorted(
        int(path.name.removeprefix("trial"))
        for path in folder.glob("trial*")
        if path.name.removeprefix("trial").isdecimal() and (path / "dataset.json").is_file()
    )
    if missing := sorted(set(range(1, found[-1] + 1)) - set(found)):
        raise UserError(
            "a trial before others is missing",
            file=folder / _file(missing[0]),
            expected=f"all trials from {_file(1)} to {_file(found[-1])}",
        )
    return found


def _trial_folder(folder: Path, number: int) -> Path:
    """What the figures of a trial are named from: pulled ones lie below images/, a user's own do not."""
    pulled = folder / "images" / f"trial{number}"
    return pulled if pulled.is_dir() else folder / f"trial{number}"


def _check(record: DynaMathRecord, name: str, path: Path) -> None:
    """Raise UserError if the answer of a record cannot be compared with any response."""
    expected, found = "", record.answer
    if record.answer_type == "multiple choice":
        letters = LETTERS[: len(record.options)]
        if len(record.answer) != 1 or record.answer not in letters:
            expected = f"one of {', '.join(letters)}" if letters else "a question that ends with its options"
    elif record.answer_type == "float":
        try:
            float(record.answer)
        except ValueError:
            expected = "a number"
    elif not record.answer:
        expected = "a text"
    if expected:
        raise UserError(
            "is no answer of this type",
            file=path,
            record=name,
            field="answer",
            found=found,
            expected=expected,
        )


# -- Metrics


def _robustness(group: Group) -> Iterator[Term]:
    if all(outcome.scored for outcome in group):
        right = sum(outcome.right for outcome in group)
        yield Term(right if right == len(group) else 0, right)


METRICS = (
    Metric(
        name="average",
        terms=accuracy,
        meaning="right answers, over all variants (A_avg)",
        better="higher",
        source="DynaMath section 3",
    ),
    Metric(
        name="worst_case",
        terms=consistent,
        meaning="seed questions that are answered right in every variant (A_wst)",
        better="higher",
        source="DynaMath section 3",
        per_group=True,
    ),
    Metric(
        name="robustness",
        terms=_robustness,
        meaning="worst_case / average (RR): right answers whose seed question is right in every variant",
        better="higher",
        source="DynaMath section 3",
        per_group=True,
    ),
    MISS,
)
