"""HallusionBench on records of its released layout, by hand and by the released script."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.cli.main import main

Record = dict[str, Any]

# What utils.py of tianyi-lab/HallusionBench at 744007c2 computes of `drawn()`: LH_cg, VI_cg and Mix_cg are 4,
# 32 and 8, Pct. Diff is -0.0556 and FP Ratio 0.4545.
RELEASED = {
    "language_hallucination": 100 * 4 / 44,
    "visual_illusion": 100 * 32 / 44,
    "mixed": 100 * 8 / 44,
    "yes_difference": -100 / 18,
    "false_positives": 100 * 20 / 44,
}


def drawn() -> list[tuple[Record, str]]:
    """Seeded records of eight sets, two of them with one number in both categories, and an answer to each."""
    chance = random.Random(3)
    found = []
    for number in range(8):
        category = ("VD", "VS")[number % 2]
        for figure in range(3):
            shown = category == "VD" or figure > 0
            for question in range(3):
                right = chance.choice("01")
                record = {
                    "category": category,
                    "subcategory": "chart",
                    "visual_input": "0" if not shown else "1" if figure < 2 else "2",
                    "set_id": str(number // 2),
                    "figure_id": str(figure),
                    "sample_note": "drawn",
                    "question_id": str(question),
                    "question": f"Is bar {question} the highest?",
                    "gt_answer_details": f"Bar {question} is {'' if right == '1' else 'not '}the highest.",
                    "gt_answer": right,
                    "filename": f"./{category}/chart/{number // 2}_{figure}.png" if shown else None,
                }
                answer = chance.choices(("Yes.", "No, it is not.", "It is hard to tell."), (4, 4, 2))[0]
                found.append((record, answer))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines: list[dict[str, str]] = []
    for record, answer in drawn():
        if record["filename"]:
            file = tmp_path / "data/hallusion_bench" / record["filename"]
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (len(lines), 0, 0)).save(file)
        figure = record["figure_id"] if record["filename"] else "none"
        name = f"{record['category']}/chart/{record['set_id']}"
        variant = f"{record['category']} {figure} {record['question_id']}"
        lines.append({"id": name, "variant": variant, "response": answer})
    (tmp_path / "data/HallusionBench.json").write_text(json.dumps([record for record, _ in drawn()]))
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pooled = [{**line, "id": line["id"][3:]} for line in lines if "none" not in line["variant"]]
    (tmp_path / "pooled.jsonl").write_text("".join(json.dumps(line) + "\n" for line in pooled))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, float]:
    assert main(["score", *words, "--data", "data", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    return {one["metric"]: one["value"] for one in metrics if one["subset"] == "all"}


def share(kept: list[tuple[Record, bool]], *key: str) -> float:
    """The share in percent of the groups of these fields whose answers are all right."""
    groups = defaultdict(list)
    for record, right in kept:
        groups[tuple(record[field] for field in key)].append(right)
    return 100 * sum(map(all, groups.values())) / len(groups)


def judged() -> list[tuple[Record, bool]]:
    """Whether each answer counts as right: without a figure, one that states neither side does."""
    sides = {"Yes.": "1", "No, it is not.": "0", "It is hard to tell.": "2"}
    return [
        (record, sides[said] == record["gt_answer"] or (sides[said] == "2" and not record["filename"]))
        for record, said in drawn()
    ]


PAIR = ("category", "subcategory", "set_id", "question_id")
FIGURE = ("category", "subcategory", "set_id", "figure_id")


def test_both_groupings_count_the_same_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, kept = values(capsys, "hallusionbench", "answers.jsonl"), judged()
    shown = [one for one in kept if one[0]["filename"]]
    expected = {
        "a_acc": share(kept, *PAIR, "figure_id"),
        "q_acc": share(kept, *PAIR),
        "f_acc": share(shown, *FIGURE),
        "easy_acc": share([one for one in kept if one[0]["visual_input"] != "2"], *PAIR),
        "hard_acc": share([one for one in kept if one[0]["visual_input"] == "2"], *PAIR),
        **RELEASED,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["f_acc"] + found["figures_inconsistent"] + found["figures_wrong"] == pytest.approx(100)


def test_keys_without_the_category_join_two_sets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = values(capsys, "hallusionbench:with-figure", "pooled.jsonl")
    shown = [one for one in judged() if one[0]["filename"]]
    expected = {
        "q_acc": share(shown, *PAIR),
        "f_acc": share(shown, *FIGURE),
        "q_acc_pooled": share(shown, *PAIR[1:]),
        "f_acc_pooled": share(shown, *FIGURE[1:]),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert "mixed" not in found


def corrected(answer: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, int]:
    """Correct the reference of the first answer that is 'Yes.' about a question whose answer is yes."""
    lines = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    line = next(
        line
        for line, (record, said) in zip(lines, drawn(), strict=True)
        if said == "Yes." and record["gt_answer"] == "1"
    )
    correction = {"id": line["id"], "variant": line["variant"], "value": [answer]}
    correction |= {"reason": "the key is wrong", "source": "a remark"}
    Path("c.jsonl").write_text("\n" + json.dumps(correction) + "\n")
    words = ["--data", "data", "--quiet", "--name", "scored"]
    assert main(["score", "hallusionbench", "answers.jsonl", *words]) == 0
    capsys.readouterr()
    words = ["--corrections", "c.jsonl", "--metric", "a_acc", "--json"]
    return line["id"], line["variant"], main(["report", "scored", *words])


@pytest.mark.parametrize(("answer", "fewer"), [("yes", 0), ("Yes", 0), ("YES.", 0), ("No", 1)])
def test_a_corrected_reference_is_yes_or_no_in_any_spelling(
    answer: str, fewer: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, status = corrected(answer, capsys)
    assert status == 0
    table = json.loads(capsys.readouterr().out)
    (row,) = (table[0] if isinstance(table, list) else table)["rows"]
    right = sum(right for _, right in judged())
    assert row["released value"] == pytest.approx(100 * right / row["n"])
    assert row["revised value"] == pytest.approx(100 * (right - fewer) / row["n"])


@pytest.mark.parametrize("answer", ["1", "banana", "A", ""])
def test_a_corrected_reference_that_is_neither_yes_nor_no_is_refused_with_its_place(
    answer: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample, variant, status = corrected(answer, capsys)
    assert status == 2
    said = capsys.readouterr().err
    assert f"c.jsonl, record line 2 ({sample}, {variant}), field value: " in said
    assert f"(found '{answer}'); expected yes or no" in said
