"""CII-Bench on records of its released layout: prompts and letters as its released files give them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.benchmarks.ciibench.benchmark import CIIBench
from sightline.cli.main import main
from sightline.scoring.chosen import chosen_letter
from sightline.scoring.options import most_frequent
from sightline.types import Text

OPTIONS = [f"图片表达了第{number}种含义。" for number in "一二三四五六"]
REPLIES = (
    "分析如下。\n答案：{0}",
    "\n**答案：{0}**\n因为{1}不对",
    "先看\n答案：{1}，再看\n答案：{0}或{1}",
    "我选({0})，不选{1}",
    "{0}",
    "答案{0}",
    "无法判断\n答案",
    "图片表达了第三种含义。",
    "难以判断",
    "G",
)

# What src/eval_cii.py of MING-ZCH/CII-Bench at ba8e9952 (calculate_accuracy) gives for `answered()`:
# 5 of 60 right, 12 without an option, 1 failed.
RELEASED = {"accuracy": 100 * 5 / 60, "miss": 100 * 12 / 60, "error": 100 / 60}


def records() -> list[dict[str, Any]]:
    chance = random.Random(7)
    return [
        {
            "local_path": f"images/test/test-{number}.jpg",
            "questions": [
                {
                    "id": f"test-{number}",
                    "question": f"第{number}张图片有什么隐喻？",
                    "options": OPTIONS,
                    "correct_option": OPTIONS["ABCDEF".index(letter := chance.choice("ABCDEF"))],
                    "answer": letter,
                }
            ],
            "meta_data": {
                "image_type": "海报(Poster)" if number % 2 else {"choices": ["海报(Poster)", "梗图(Meme)"]},
                "difficulty": "简单",
                "domain": "生活",
                "emotion": "中性",
                "rhetoric": {"choices": ["隐喻", "象征"]} if number % 3 else "隐喻",
                "metaphorical_meaning": "含义",
                "explanation": "解释",
            },
        }
        for number in range(60)
    ]


def answered() -> list[dict[str, Any]]:
    """The lines that the released infer.py writes, each with a seeded reply; one failed, one is empty."""
    chance = random.Random(8)
    lines = []
    for number, record in enumerate(records()):
        reply: Any = REPLIES[number % len(REPLIES)].format(*chance.sample("ABCDEF", 2))
        if number in (10, 20):
            reply = {"error": "timeout"} if number == 10 else ""
        question = {**record["questions"][0], "local_path": record["local_path"], **record["meta_data"]}
        lines.append({**question, "prompt": {"prompt": "", "id": question["id"]}, "response": reply})
    return lines


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data/images/test").mkdir(parents=True)
    for number, record in enumerate(records()):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / "data" / record["local_path"])
    (tmp_path / "data/test.json").write_text(json.dumps(records()))
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in answered()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def score(capsys: pytest.CaptureFixture[str], *words: str) -> dict[tuple[str, str], Any]:
    assert (
        main(["score", "ciibench", "answers.jsonl", "--data", "data", "--json", *words]) == 1
    )  # a call failed
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    return {(one["metric"], one["subset"]): one for one in metrics}


def test_the_released_reader_counts_as_the_released_script(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = score(capsys, "--set", "extraction=released")
    assert {name: found[name, "all"]["value"] for name in RELEASED} == pytest.approx(RELEASED)


def test_a_label_of_several_choices_counts_under_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = score(capsys)
    counts = {subset: one["n"] for (metric, subset), one in found.items() if metric == "accuracy"}
    assert (counts["rhetoric=隐喻"], counts["rhetoric=象征"], counts["image_type=梗图(Meme)"]) == (60, 40, 30)


@pytest.mark.parametrize(
    ("reply", "released", "stated"),
    [
        ("A 和 B 不对。\n答案：C，而不是A", "A", "C"),  # the lowest letter after the mark
        ("\n答案C", None, "C"),  # a mark at the start has lost its line break, and C follows a word character
        ("选 B。\n答案：B\n答案：(D)", "D", None),  # two statements that differ are no choice
        ("综上\n**答案：E**", "E", "E"),
        ("说明\n答案", "F", None),  # nothing is left, and is contained in each option: the last one counts
    ],
)
def test_where_the_released_reader_differs_from_ours(
    folder: Path, reply: str, released: str | None, stated: str | None
) -> None:
    assert most_frequent(CIIBench.released_letters(reply, OPTIONS)[1]) == released
    assert chosen_letter(reply, OPTIONS, "") == stated


def test_prompts_are_the_released_ones_with_the_options_of_ii_bench(folder: Path) -> None:
    benchmark = CIIBench()
    options = {"orders": 1, "image": True, "variant": "rhetoric", "answer_by": "text", "seed": 0}
    sample = benchmark.samples(Path("data"), "test", options)[1]
    prompts = {}
    for name in ("none", "cot", "rhetoric"):
        part = next(iter(benchmark.probes(sample, {**options, "prompt": name}))).messages[0].parts[0]
        assert isinstance(part, Text)
        prompts[name] = part.text
    listed = "\n".join(f"({letter}) {option}" for letter, option in zip("ABCDEF", OPTIONS, strict=True))
    form = "请使用以下格式：“答案：$LETTER”，其中$LETTER是你认为正确答案的字母。\n\n"
    assert prompts == {
        "none": "请根据提供的图片尝试回答下面的单选题。直接回答正确选项，不要包含额外的解释。"
        f"{form}第1张图片有什么隐喻？\n{listed}\n答案：",
        "cot": "请尝试根据提供的图片回答以下单选题。让我们逐一思考每个选项，逐步分析。"
        f"你回答的最后一行应该用以下{form.removeprefix('请使用以下')}第1张图片有什么隐喻？\n{listed}",
        "rhetoric": f"请根据提供的图片尝试回答下面的单选题。{form}"
        f"关键词：隐喻,象征\n第1张图片有什么隐喻？\n{listed}\n答案:\n",
    }


def test_what_the_release_lacks_is_not_said_to_be_from_its_scripts() -> None:
    # infer.py has the modes none, cot, domain, emotion and rhetoric; eval_cii.py three counts.
    released = {name for name, one in CIIBench.settings.items() if one.reproduces == "the released scripts"}
    assert released == {"none", "cot", "domain", "emotion", "rhetoric"}
    metrics = CIIBench().metrics({"prompt": "none", "image": True, "orders": 1})
    assert {one.name for one in metrics if "eval_cii.py" in one.source} == {"accuracy", "error", "miss"}


def test_a_record_without_an_answer_is_an_error_that_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = records()
    broken[4]["questions"][0]["answer"] = "H"
    (folder / "data/test.json").write_text(json.dumps(broken))
    assert main(["score", "ciibench", "answers.jsonl", "--data", "data"]) == 2
    message = capsys.readouterr().err
    assert "data/test.json" in message
    assert "test-4" in message
    assert "questions.answer" in message
    assert "A to F" in message
