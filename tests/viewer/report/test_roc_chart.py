"""ROC curves of judges: their area is ROC-AUC; a judge with verdicts has a marked point for each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from sightline.evaluation.judge_data import JudgedAnswer, JudgeData
from sightline.evaluation.judge_report import judge_report
from sightline.types import Verdict, VerdictName
from sightline.viewer.environment import environment
from sightline.viewer.plots import RocChart, roc_chart


def verdict(number: int, judge: str, name: VerdictName) -> Verdict:
    return Verdict(
        targets=(str(number),),
        question="correct",
        scorer="s",
        judge=judge,
        kind="human" if judge == "anna" else "model",
        verdict=name,
    )


def chart(human: Sequence[VerdictName], judge: Sequence[VerdictName]) -> RocChart | None:
    """The curves of a judge and of a score that falls with the number of the answer."""
    answers = [
        JudgedAnswer(str(number), "", f"c{number}", ("m",), {}, {"s_gt": 100.0 - number})
        for number in range(len(human))
    ]
    report = judge_report(
        JudgeData(
            answers=answers,
            judges=[verdict(number, "gpt", name) for number, name in enumerate(judge)],
            humans=[verdict(number, "anna", name) for number, name in enumerate(human)],
        )
    )
    return roc_chart([row for row in report.rows if row.subset == "all"])


HUMAN: list[VerdictName] = ["right", "right", "wrong", "right", "wrong", "wrong"]
JUDGE: list[VerdictName] = ["right", "undecided", "right", "right", "wrong", "wrong"]


def test_the_area_under_each_drawn_curve_is_the_roc_auc_beside_it() -> None:
    drawn = chart(HUMAN, JUDGE)
    assert drawn is not None
    assert {line.judge for line in drawn.lines} == {"gpt", "s_gt"}
    for line in drawn.lines:
        x, y = np.array([point.split(",") for point in line.points.split()], dtype=float).T
        area = np.trapezoid(y.max() - y, x) / ((x.max() - x.min()) * (y.max() - y.min()))
        assert line.area.value is not None
        assert abs(100 * area - line.area.value) < 0.2  # pixels are rounded


def test_a_judge_has_a_marked_point_for_each_verdict_between_the_corners() -> None:
    drawn = chart(HUMAN, JUDGE)
    assert drawn is not None
    (gpt,) = (line for line in drawn.lines if line.judge == "gpt")
    assert len(gpt.marked) == 2
    macros = environment().get_template("plots.html").make_module()
    hostile = replace(drawn, lines=tuple(replace(line, judge="</svg><script>") for line in drawn.lines))
    page = macros.roc(hostile)  # type: ignore[attr-defined]
    assert "<script>" not in page
    assert len(re.findall("<polyline", page)) == 2


def test_there_is_no_chart_if_humans_call_all_answers_right() -> None:
    assert chart(["right"] * 6, JUDGE) is None
