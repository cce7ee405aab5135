"""Reads II-Bench's answer key from the released split or from a file of the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.benchmarks.iibench.records import IIBenchQuestion
from sightline.decoding import json_records
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.scoring.letters import LETTERS


def read_answer_key(file: str | None, questions: Sequence[IIBenchQuestion]) -> dict[str, str]:
    """Read the answer key.

    An answers file is a JSON object {id: answer} or JSONL {"id", "answer"}; an answer is a letter A-F or an
    option's text.

    Args:
        file: The answers file, or None.
    """
    key = {question.id: question.answer for question in questions if question.answer}
    if file is None:
        return key
    path = Path(file)
    by_id = {question.id: question for question in questions}
    seen: set[str] = set()
    for name, answer in _entries(path):
        if name in seen:
            raise UserError("this id occurs twice", file=path, record=name, expected="one answer a question")
        seen.add(name)
        if name not in by_id:
            raise UserError(
                "this question is not in the split", file=path, record=name, expected="ids of the split"
            )
        key[name] = _letter(path, name, answer, by_id[name].options)
    return key


def _entries(path: Path) -> list[tuple[str, Any]]:
    rows = json_records(read_bytes(path), path)
    if len(rows) == 1 and not {"id", "answer"} <= rows[0][1].keys():
        return list(rows[0][1].items())
    return [(_id(path, where, row), row.get("answer")) for where, row in rows]


def _id(path: Path, where: str, row: Mapping[str, Any]) -> str:
    name = row.get("id")
    if not isinstance(name, str):
        raise UserError("lacks an id", file=path, record=where, field="id", expected="the question's id")
    return name


def _letter(path: Path, name: str, answer: Any, options: Sequence[str]) -> str:
    if isinstance(answer, str):
        if answer in tuple(LETTERS[: len(options)]):
            return answer
        if answer in options:
            return LETTERS[options.index(answer)]
    raise UserError(
        "is not an answer to this question",
        file=path,
        record=name,
        field="answer",
        found=answer,
        expected="a letter in the released order, or an option's text",
    )
