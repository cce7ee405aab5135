"""`sightline report RUN... --html FILE`: one file with the runs, their groups and images."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from html5lib import HTMLParser
from PIL import Image

from sightline.cli.main import main
from sightline.viewer import html_report
from training.scenes.build import generate_codis

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and a store with two runs of six pairs and one of a groups file with hostile texts."""
    folder = tmp_path_factory.mktemp("reported")
    data = str(generate_codis(folder / "codis", pairs=6))
    words = ["run", "--model", "baseline/chance", "--quiet", "--store", str(folder / "sightline.db")]
    assert main([*words, "codis", "--data", data, "--name", "base"]) == 0
    assert main([*words, "codis:no-context", "--data", data]) == 0
    bad = "</style><script>alert(1)</script><img src=http://a.b/c> {{ 7*7 }} \u202e\u0000"
    lines = [
        {
            "group": f"{bad}{number}",
            "variant": variant,
            "prompt": bad * 2_000,
            "question": bad,
            "options": [bad, "b"],
            "references": ["b"],
            "labels": {"mark": bad},
        }
        for number in range(60)
        for variant in ("a", "b")
    ]
    (folder / "bad.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main([*words, f"groups:{folder / 'bad.jsonl'}", "--set", "embedder=none"]) == 0
    return folder


def report(folder: Path, *words: str) -> str:
    out = folder / "report.html"
    assert main(["report", *words, "--store", str(folder / "sightline.db"), "--html", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    parser = HTMLParser(namespaceHTMLElements=False)
    parser.parse(page)
    assert parser.errors == []
    assert not re.search(r'(?:src|href)="(?!#|data:image/webp;base64,)', page)
    assert "<script" not in page
    return page


def test_the_report_says_where_it_is_and_prints_the_tables(folder: Path, capsys: Capture) -> None:
    report(folder, "base")
    printed = capsys.readouterr()
    assert f"report: {folder / 'report.html'}" in printed.err
    assert "acc_p" in printed.out


def test_a_run_is_shown_with_its_most_informative_groups_and_their_images(folder: Path) -> None:
    page = report(folder, "1", "--groups", "4")
    assert page.count('<article class="pairrow') == 4
    assert page.count("data:image/webp;base64,") == 4
    assert "4 of 6 groups" in page


def test_two_runs_are_compared(folder: Path) -> None:
    page = report(folder, "1", "2")
    assert "groups that both hold" in page
    assert "codis:default" in page
    assert "codis:no-context" in page


def test_results_folders_have_a_report_too(folder: Path) -> None:
    data, out = str(folder / "codis"), str(folder / "results")
    words = ["run", "codis:plain", "--model", "baseline/chance", "--quiet", "--data", data, "--out", out]
    assert main([*words, "--store", str(folder / "other.db")]) == 0
    page = report(folder, out, "--data", data, "--groups", "2")
    assert page.count("data:image/webp;base64,") == 2


def test_hostile_texts_are_escaped_and_cut(folder: Path) -> None:
    page = report(folder, "3", "--groups", "50")
    assert "alert(1)" in page
    assert "{{ 7*7 }}" in page
    assert not {"\u202e", "\0"} & set(page)
    assert page.count('<article class="pairrow') == 50
    assert len(page.encode()) < html_report.MOST_BYTES


def test_an_image_that_changed_is_reported_and_not_shown(folder: Path) -> None:
    data = generate_codis(folder / "changed", pairs=6, seed=5)
    words = ["run", "codis", "--model", "baseline/chance", "--quiet", "--data", str(data)]
    assert main([*words, "--name", "changed", "--store", str(folder / "sightline.db")]) == 0
    for file in (data / "images").iterdir():
        Image.new("RGB", (9, 9), "red").save(file)
    page = report(folder, "changed")
    assert "data:image" not in page
    assert "not shown, this is not the image that was sent" in page


def test_a_report_that_would_be_too_large_has_fewer_groups(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_report, "WIDTHS", (200,))
    whole = len(report(folder, "1", "--groups", "6").encode())
    monkeypatch.setattr(html_report, "MOST_BYTES", whole - 500)
    page = report(folder, "1", "--groups", "6")
    assert "6 groups of each part were asked for; 3 fit" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--groups", "3"], "--groups and --data need --html"),
        (["--html", "a.html", "--groups", "-1"], "--groups is negative"),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys: Capture, words: list[str], message: str) -> None:
    assert main(["report", *words]) == 2
    assert message in capsys.readouterr().err
