"""The functions of the Python API give what the commands print, and notebooks show it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import sightline
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.evaluation.answers_frame import answers_frame
from sightline.formats.jsonl import read_outcomes
from sightline.types import Outcome, Usage

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with CODIS data of six pairs."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "data/images").mkdir(parents=True)
    records = json.loads((shared / "data/codis/data.json").read_text())[:6]
    (folder / "data/data.json").write_text(json.dumps(records))
    for record in records:
        shutil.copy(shared / "data/codis/images" / record["image_id"], folder / "data/images")
    return folder


@pytest.fixture(scope="module")
def evaluations(folder: Path) -> list[sightline.Evaluation]:
    """Two runs of one store; the first has a results folder."""
    data, store, model = folder / "data", folder / "s.db", "baseline/chance"
    return [
        sightline.run("codis", model=model, data=data, store=store, name="first", out=folder / "first"),
        sightline.run("codis", model=model, data=data, store=store, name="second", seed=1),
    ]


@pytest.fixture(autouse=True)
def _in_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def printed(capsys: Capture, *words: str) -> str:
    assert main([*words, "--store", "s.db", "--format", "csv"]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_report_gives_the_tables_of_the_command(
    evaluations: list[sightline.Evaluation], capsys: Capture
) -> None:
    capsys.readouterr()
    first, second = evaluations
    expected = printed(capsys, "report", "1", "2", "--by", "category")
    for runs in ((first, second), (1, "second"), ("first", 2)):
        tables = sightline.report(*runs, by="category", store="s.db")
        if runs[0] == "first":  # the results folder, which comes before the run of its name
            assert tables.content[0].metrics == first.metrics
        else:
            assert tables.text("csv") == expected
    assert len(tables.frame()) == len(expected.splitlines()) - 1


def test_report_reads_a_sweep_and_runs_in_the_order_given_as_the_command_does(
    evaluations: list[sightline.Evaluation], capsys: Capture
) -> None:
    sightline.sweep(
        "codis", model="baseline/chance", data="data", store="swept.db", set={"cot": [True, False]}, out="sw"
    )
    for words in (["sw"], ["sw", "2"], ["2", "first"], []):
        capsys.readouterr()
        expected = printed(capsys, "report", *words)
        shown = sightline.report(*words, store="s.db")
        assert shown.text("csv").startswith(expected)
    assert len(sightline.report("sw").content) == 2
    assert "cot" in str(sightline.report("sw"))


def test_compare_gives_the_tables_of_the_command(
    evaluations: list[sightline.Evaluation], capsys: Capture
) -> None:
    capsys.readouterr()
    shown = sightline.compare(evaluations[0], evaluations[1], by="category", margin=5)
    columns = [column.key for column in shown.tables[0].columns]
    rows = [dict(zip(columns, row, strict=True)) for row in shown.tables[0].rows]
    command = printed(capsys, "compare", "1", "2", "--by", "category").splitlines()
    assert [f"{row['metric']},{row['subset']}" for row in rows] == [
        ",".join(line.split(",")[:2]) for line in command[1:]
    ]
    assert [change.metric for change in shown.content.differences]
    assert "within a margin of 5 points" in shown.tables[1].title


def test_report_is_a_function_although_it_is_a_package(evaluations: list[sightline.Evaluation]) -> None:
    import sightline.reporting.tables

    assert len(sightline.report("second", store="s.db").content) == 1


def test_export_writes_the_format_of_another_tool(evaluations: list[sightline.Evaluation]) -> None:
    sightline.export(evaluations[0], "codis", "outputs.json", force=True)
    assert len(json.loads(Path("outputs.json").read_text())) == 6
    with pytest.raises(UserError, match="no results folder"):
        sightline.export(evaluations[1], "codis", "others.json")
    with pytest.raises(UserError, match="codsi"):
        sightline.export(evaluations[0], "codsi", "others.json")


def test_evaluations_of_two_stores_are_refused(evaluations: list[sightline.Evaluation]) -> None:
    with pytest.raises(UserError, match="in several stores"):
        sightline.compare(evaluations[0], replace(evaluations[1], store="other.db"))


def test_answers_are_those_of_the_results_folder(evaluations: list[sightline.Evaluation]) -> None:
    pytest.importorskip("pandas")
    written = list(read_outcomes(Path("first/answers.jsonl")))
    frame = evaluations[0].answers()
    assert list(frame["response"]) == [one.response for one in written]
    assert list(frame["verdict"]) == [one.verdict for one in written]
    assert list(frame["label category"]) == [one.labels["category"] for one in written]
    assert "thumbnail" not in frame


def test_thumbnails_are_shown_and_stay_when_answers_are_filtered(
    evaluations: list[sightline.Evaluation],
) -> None:
    pytest.importorskip("pandas")
    frame = evaluations[1].answers(thumbnails=40)
    assert all(url.startswith("data:image/webp;base64,") for url in frame["thumbnail"])
    few = frame[frame["variant"] == "context_1"]
    assert few._repr_html_().count("<img ") == 6


def outcome(response: str, image: str) -> Outcome:
    return Outcome(
        sample="<s>",
        variant="v",
        draw=0,
        key="k",
        labels={"<b>": "<i>"},
        response=response,
        status="ok",
        finish_reason="stop",
        usage=Usage(),
        verdict="wrong",
        images=(image,),
    )


@pytest.mark.parametrize("image", ["../outside.png", "/etc/passwd", "no.png", "data.json", "\0"])
def test_an_image_that_cannot_be_shown_is_said_to_be_none(folder: Path, image: str) -> None:
    pytest.importorskip("pandas")
    shutil.copy(next((folder / "data/images").iterdir()), folder / "outside.png")
    frame = answers_frame([outcome("a", image)], [str(folder / "data")], 40)
    assert list(frame["thumbnail"]) == [""]
    assert "no image" in frame._repr_html_()


def test_markup_of_a_response_is_text() -> None:
    pytest.importorskip("pandas")
    hostile = "<script>alert(1)</script>" + "x" * 1_000_000
    frame = answers_frame([outcome(hostile, "")], [], None)
    shown = frame._repr_html_()
    assert all(tag not in shown for tag in ("<script", "<i>", "<b>"))
    assert len(shown) < 10_000
    frame["thumbnail"] = '"><script>'
    assert "<script" not in frame._repr_html_()


def test_an_evaluation_a_comparison_and_a_table_are_shown_as_html(
    evaluations: list[sightline.Evaluation],
) -> None:
    for shown in (evaluations[0], sightline.compare(*evaluations), sightline.report(evaluations[0])):
        text = shown._repr_html_()
        assert text.count("<table>") == text.count("</table>") >= 1
        assert "acc_p" in text
        assert "95 %" in text
    assert "acc_p" in str(sightline.report(evaluations[0]))


def test_judge_report_gives_the_tables_of_the_command(shared: Path, capsys: Capture) -> None:
    data = shared / "data/contextual"
    cases = data / "appendix_cases.jsonl"
    made = sightline.judge_report(cases, task="contextual", data=data, split="val")
    words = ["--task", "contextual", "--data", str(data), "--split", "val"]
    assert main(["judge-report", str(cases), *words, "--format", "markdown"]) == 0
    assert capsys.readouterr().out == made.text("markdown")
    assert made.content.rows[0].judge == "rules"
