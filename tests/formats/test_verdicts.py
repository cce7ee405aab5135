"""verdicts.jsonl is read as it was written; a file of human verdicts needs only four fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.formats.jsonl import read_verdicts, write_verdicts
from sightline.types import Verdict

CONTRACT = ["targets", "question", "scorer", "judge", "kind", "draw", "verdict", "value", "raw"]

VERDICTS = st.builds(
    Verdict,
    targets=st.lists(st.text(), min_size=1).map(tuple),
    draw=st.integers(0, 9),
    value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    raw=st.text(),
    extracted=st.none() | st.text(),
    labels=st.lists(st.text()).map(tuple),
)


@given(st.lists(VERDICTS, min_size=1))
def test_verdicts_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, verdicts: list[Verdict]
) -> None:
    path = tmp_path_factory.mktemp("verdicts") / "verdicts.jsonl"
    write_verdicts(verdicts, path)
    assert read_verdicts(path) == verdicts


def test_a_line_has_the_fields_of_the_contract_in_order(tmp_path: Path) -> None:
    verdict = Verdict(
        targets=("k",), question="correct", scorer="codis", judge="rules", kind="rules", verdict="right"
    )
    write_verdicts([verdict], tmp_path / "v.jsonl")
    assert list(json.loads((tmp_path / "v.jsonl").read_text())) == CONTRACT


def test_a_humans_file_needs_targets_question_verdict_and_judge(tmp_path: Path) -> None:
    path = tmp_path / "human.jsonl"
    path.write_text('{"targets": ["k"], "question": "correct", "verdict": "wrong", "judge": "Ada"}\n')
    assert read_verdicts(path) == [
        Verdict(
            targets=("k",), question="correct", scorer="human", judge="Ada", kind="human", verdict="wrong"
        )
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"targets": ["k"], "question": "correct", "verdict": "fine", "judge": "Ada"}', "field verdict"),
        ('{"targets": "k", "question": "correct", "verdict": "right", "judge": "Ada"}', "field targets"),
        ('{"targets": ["k"], "question": "correct", "verdict": "right"}', "missing required field `judge`"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "human.jsonl"
    path.write_text("\n" + line)
    with pytest.raises(UserError) as caught:
        read_verdicts(path)
    assert f"{path}, record line 2" in str(caught.value)
    assert said in str(caught.value)
