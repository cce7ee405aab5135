"""Charts of pages: images for light and dark pages, with their numbers as text; ROC curves of judges."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image
from tests.reporting.conftest import Make

from sightline.evaluation.judge_data import JudgedAnswer, JudgeData
from sightline.evaluation.judge_report import judge_report
from sightline.reporting.chart_kinds import roc
from sightline.reporting.judges import JudgeResult
from sightline.types import Verdict, VerdictName
from sightline.viewer.environment import environment
from sightline.viewer.plots import NamedResult, PageChart, chart_image, page_chart, radar_chart, roc_chart

pytest.importorskip("matplotlib")


def verdict(number: int, judge: str, name: VerdictName) -> Verdict:
    return Verdict(
        targets=(str(number),),
        question="correct",
        scorer="s",
        judge=judge,
        kind="human" if judge == "anna" else "model",
        verdict=name,
    )


def judged(human: Sequence[VerdictName], judge: Sequence[VerdictName]) -> list[JudgeResult]:
    """A judge and a score that falls with the number of the answer, against a human."""
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
    return [row for row in report.rows if row.subset == "all"]


HUMAN: list[VerdictName] = ["right", "right", "wrong", "right", "wrong", "wrong"]
JUDGE: list[VerdictName] = ["right", "undecided", "right", "right", "wrong", "wrong"]


def shown(chart: PageChart, *, inline: bool) -> str:
    macros = environment().get_template("plots.html").make_module()
    return str(macros.page_chart(chart, inline))  # type: ignore[attr-defined]


def test_the_area_under_each_drawn_curve_is_the_roc_auc_beside_it() -> None:
    rows = judged(HUMAN, JUDGE)
    chance, *lines = roc(rows, 4.6).axes[0].lines
    assert str(chance.get_label()).startswith("_")
    for row, line in zip(rows, lines, strict=True):
        area = np.trapezoid(np.asarray(line.get_ydata()), np.asarray(line.get_xdata())) / 100
        assert area == pytest.approx(row.roc_auc.value)
    marked = {row.judge: line.get_markevery() for row, line in zip(rows, lines, strict=True)}
    assert marked["gpt"] == [1, 2]  # a point for each verdict between the corners
    found = roc_chart(rows)
    assert found is not None
    assert all(f"{row.judge}: area {row.roc_auc.value:.1f} percent" in found.label for row in rows)


def test_there_is_no_chart_if_humans_call_all_answers_right() -> None:
    assert roc_chart(judged(["right"] * 6, JUDGE)) is None


def test_a_chart_has_an_image_for_each_theme_in_the_page_or_at_an_address(iibench: Make) -> None:
    chart = radar_chart([NamedResult("m", iibench())], "accuracy", "domain")
    assert chart is not None
    sources = dict(re.findall(r'(srcset|src)="([^"]+)"', shown(chart, inline=False)))
    light, dark = (chart_image(sources[name].removeprefix("/charts/")) for name in ("src", "srcset"))
    assert light is not None
    assert dark is not None
    assert [Image.open(io.BytesIO(one)).convert("L").getpixel((0, 0)) for one in (light, dark)] == [255, 23]
    inside = dict(re.findall(r'(srcset|src)="data:image/png;base64,([^"]+)"', shown(chart, inline=True)))
    assert [base64.b64decode(inside[name]) for name in ("src", "srcset")] == [light, dark]


def test_equal_content_is_one_chart_and_an_unknown_one_has_no_image(iibench: Make) -> None:
    first, again, other = (
        radar_chart([NamedResult(name, iibench())], "accuracy", "domain") for name in ("m", "m", "n")
    )
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.digest == again.digest != other.digest
    assert chart_image(f"{first.digest}-grey.png") is None
    assert chart_image("0-light.png") is None


def test_without_matplotlib_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.viewer.plots.can_draw", lambda: False)
    page = shown(page_chart("<script>", [], lambda: None), inline=True)  # type: ignore[arg-type,return-value]
    assert "<img" not in page
    assert "pip install" in page


def test_the_text_of_a_picture_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.viewer.plots.can_draw", lambda: True)
    page = shown(page_chart('</svg><script>"', [], lambda: None), inline=False)  # type: ignore[arg-type,return-value]
    assert "<script" not in page
