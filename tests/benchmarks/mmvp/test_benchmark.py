"""MMVP on tables of its released layout, by the released grader, and with the disputed references."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
from PIL import Image

from sightline.benchmarks.mmvp.benchmark import MMVP
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.scoring.scorer import ModelScorer
from sightline.types import Case

HEADER = ["Index", "Question", "Options", "Correct Answer"]
PAIRS = 140

# scripts/gpt_grader.py of tsb0601/MMVP at 76350059 prints "The accuracy is 0.2642857142857143" for answers(),
# with a grader that says yes where the letter of the answer is the reference.
RELEASED = 100 * 37 / 140


def questions() -> list[list[str]]:
    """Released lines 99, 100, 279 and 280, among others of the same form."""
    lines = []
    for number in range(1, 2 * PAIRS + 1):
        question, first, second = f"Is lamp {(number + 1) // 2} on or off?", "On", "Off"
        if number in (99, 100):
            question, first, second = "Does the elephant have long or short tusks?", "Long", "Short"
        if number in (279, 280):
            question = "Is the elderly person standing or sitting in the picture?"
            first, second = "Standing", "Sitting"
        lines.append([str(number), question, f"(a) {first} (b) {second}", f"({'ba'[number % 2]})"])
    return lines


def answers() -> list[str]:
    """A seeded letter for each question; to the four disputed ones, what their images are said to show."""
    chance = random.Random(5)
    drawn = [f"({chance.choice('ab')})" for _ in questions()]
    for number, letter in ((99, "b"), (100, "a"), (279, "b"), (280, "a")):
        drawn[number - 1] = f"({letter})"
    return drawn


def write(folder: Path, lines: list[list[str]], header: list[str] = HEADER) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / "Questions.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data", questions())
    released = [
        {"question_id": int(number), "prompt": f"{question} {listed}", "answer": right, "response": answer}
        for (number, question, listed, right), answer in zip(questions(), answers(), strict=True)
    ]
    (tmp_path / "answer.jsonl").write_text("".join(json.dumps(one) + "\n" for one in released))
    return tmp_path


def test_a_pair_counts_as_the_released_grader_counts_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "mmvp", "answer.jsonl", "--data", "data", "--json"]) == 0
    found = {one["metric"]: one for one in json.loads(capsys.readouterr().out)["metrics"]}
    assert (found["acc_p"]["n"], found["acc_q"]["n"]) == (PAIRS, 2 * PAIRS)
    assert found["acc_p"]["value"] == pytest.approx(RELEASED)
    right = sum(line[3] == answer for line, answer in zip(questions(), answers(), strict=True))
    assert found["acc_q"]["value"] == pytest.approx(100 * right / (2 * PAIRS))


def test_the_disputed_references_count_only_if_they_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "mmvp", "answer.jsonl", "--data", "data", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["report", "run", "--corrections", "mmvp", "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    row = next(one for one in table["rows"] if one["metric"] == "acc_p")
    assert row["released value"] == pytest.approx(RELEASED)
    assert row["revised value"] == pytest.approx(RELEASED + 100 * 2 / PAIRS)


def test_disputed_references_of_pairs_that_a_run_does_not_have_are_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the disputed pairs, a run of the first 100 has 99-100 only."""
    few = ["--limit", "100", "--only-answered"]
    assert main(["score", "mmvp", "answer.jsonl", "--data", "data", *few, "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["report", "run", "--corrections", "mmvp", "--format", "json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    disputed = Path(str(MMVP.corrections)).read_text().splitlines()
    others = {json.loads(line)["id"] for line in disputed} - {"99-100"}
    assert f"{len(others)} corrected samples are not in run" in table["notes"]
    assert main(["report", "run", "--corrections", "codis"]) == 2
    assert "codis comes with no corrections; expected a file, or one of mmvp" in capsys.readouterr().err


def test_the_prompt_is_the_image_then_question_and_options_with_one_space(folder: Path) -> None:
    benchmark = MMVP()
    options = {"image": True, "judge_image": False}
    sample = list(benchmark.samples(folder / "data", "test", options))[49]
    first, second = benchmark.probes(sample, options)
    image, text = first.messages[0].parts
    assert getattr(image, "path", "").endswith("MMVP Images/99.jpg")
    assert getattr(text, "text", "") == "Does the elephant have long or short tusks? (a) Long (b) Short"
    assert (first.references, second.references) == (("A",), ("B",))


def test_the_judge_is_asked_as_released() -> None:
    judge = next(one for one in MMVP().scorers({"judge_image": False}) if isinstance(one, ModelScorer))
    case = Case(("key",), "correct", "Is it on?", ("It is on",), ("A",), ("Yes", "No "))
    system, asked = (getattr(one.parts[0], "text", "") for one in judge.ask(case))
    assert system.endswith("Please answer in only yes or no.")
    assert asked == (
        "Given the following question Is it on? (a) Yes (b) No , the correct answer is (a). "
        "Does the following answer correctly answers the question, answer:It is on?"
    )
    read = [judge.read(case, reply).verdict for reply in ("Yes", "no", "Yes.")]
    assert read == ["right", "wrong", "undecided"]


@pytest.mark.parametrize(
    ("line", "field", "value", "named"),
    [
        (3, "Index", "7", "question 3"),
        (3, "Options", "Yes or no", "question 3"),
        (3, "Correct Answer", "a, b", "question 3"),
        (4, "Question", "Another?", "question 4"),
        (5, "Question", "", "question 5"),
    ],
)
def test_a_wrong_line_is_named_with_its_field(
    folder: Path, line: int, field: str, value: str, named: str
) -> None:
    lines = questions()
    lines[line - 1][HEADER.index(field)] = value
    write(folder / "data", lines)
    with pytest.raises(UserError) as raised:
        list(MMVP().samples(folder / "data", "test", {}))
    assert (str(raised.value.file).endswith("Questions.csv"), raised.value.record, raised.value.field) == (
        True,
        named,
        field,
    )


def test_a_table_without_a_column_and_a_half_pair_are_refused(folder: Path) -> None:
    write(folder / "data", [line[:3] for line in questions()], HEADER[:3])
    with pytest.raises(UserError, match="no such column"):
        list(MMVP().samples(folder / "data", "test", {}))
    write(folder / "data", questions()[:3])
    with pytest.raises(UserError, match="does not hold pairs"):
        list(MMVP().samples(folder / "data", "test", {}))


def test_a_table_in_another_encoding_is_named(folder: Path) -> None:
    lines = questions()
    lines[0][1] = lines[1][1] = "Is the café open or closed?"
    write(folder / "data", lines)
    file = folder / "data" / "Questions.csv"
    file.write_bytes(file.read_text("utf-8").encode("cp1252"))
    with pytest.raises(UserError, match="UTF-8") as raised:
        list(MMVP().samples(folder / "data", "test", {}))
    assert raised.value.file == file


def test_a_quotation_mark_within_a_cell_is_read_as_pandas_reads_it(folder: Path) -> None:
    write(folder / "data", questions())
    file = folder / "data" / "Questions.csv"
    text = file.read_text()
    for number in (1, 2):
        text = text.replace(f"{number},Is lamp 1 on or off?", f'{number},"Is "lamp" 1 on or off?"')
    file.write_text(text)
    read = pytest.importorskip("pandas").read_csv(file)["Question"]
    found = [one.question for sample in MMVP().samples(folder / "data", "test", {}) for one in sample.record]
    assert found == list(read)
    assert found[0] != questions()[0][1]


@pytest.mark.parametrize("number", [0, 301])
def test_an_answer_to_a_question_that_does_not_exist_is_named(
    folder: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"question_id": number, "prompt": "", "answer": "(a)", "response": "(a)"}
    with Path("answer.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert main(["score", "mmvp", "answer.jsonl", "--data", "data"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(word in said for word in ("answer.jsonl", "line 281", "question_id", str(number), "1 to 300"))


def test_data_that_are_not_whole_are_noted_and_can_be_checked_and_described(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = folder / "data" / "MMVP Images"
    images.mkdir()
    for number in range(1, 2 * PAIRS + 1):
        Image.new("RGB", (8, 8), (number % 256, number // 256, 0)).save(images / f"{number}.jpg", quality=100)
    guesses = ["run", "mmvp", "--model", "baseline/chance", "--limit", "3", "--quiet"]
    for words in (["score", "mmvp", "answer.jsonl"], guesses):
        assert main([*words, "--data", "data", "--json"]) == 0
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert "the data have 140 samples, the release has 150" in notes
    assert main(["data", "check", "mmvp", "--data", "data", "--json", "--quiet"]) == 0
    (split,) = json.loads(capsys.readouterr().out)["splits"]
    assert (split["samples"], split["images"], split["published_samples"]) == (140, 280, 150)
    assert (split["as_published"], split["released"]) == (False, None)
    assert main(["data", "check", "mmvp", "--data", "data", "--quiet"]) == 0
    assert "the release has 150 samples: different" in " ".join(capsys.readouterr().out.split())
    assert main(["data", "describe", "mmvp", "--data", "data", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 140
    (images / "7.jpg").unlink()
    assert main(["data", "check", "mmvp", "--data", "data", "--quiet"]) == 1
    assert "MMVP Images/7.jpg" in capsys.readouterr().err


def test_letters_by_chance_get_a_quarter_of_the_pairs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All four combinations of two letters, once a pair: one of them is right."""
    lines, said = questions()[:8], ["aa", "ab", "ba", "bb"]
    write(folder / "data", lines)
    images = folder / "data" / "MMVP Images"
    images.mkdir()
    for number in range(1, 9):
        Image.new("RGB", (16, 16), (20 * number, 0, 0)).save(images / f"{number}.jpg")
    replies = [
        {"id": f"{2 * pair + 1}-{2 * pair + 2}", "variant": variant, "response": letter}
        for pair, letters in enumerate(said)
        for variant, letter in zip(("first", "second"), letters, strict=True)
    ]
    (folder / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies))
    words = ["--data", "data", "--model", "replay/replies.jsonl", "--json", "--quiet"]
    assert main(["run", "mmvp", *words]) == 0
    found = {one["metric"]: one["value"] for one in json.loads(capsys.readouterr().out)["metrics"]}
    assert (found["acc_p"], found["acc_q"]) == (25.0, 50.0)
