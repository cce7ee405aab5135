"""NaturalBench on records of its released layout, by hand and by the released script."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.benchmarks.naturalbench.benchmark import NaturalBench
from sightline.cli.main import main

VARIANTS = ("q0_i0", "q0_i1", "q1_i0", "q1_i1")
MEANT: dict[str, dict[str, int | None]] = {
    "yes_no": {"Yes.": 0, "no": 1, "There is no doubt: yes.": 0, "I cannot tell.": None},
    "multiple_choice": {"A": 0, "The answer is B.": 1, "It is a helmet.": 1, "Unclear.": None},
}
"""Responses to each type of question, and the position of the option that a reader would understand."""

# What extract_answer and get_scores of naturalbench_vqa.py (Baiqi-Li/NaturalBench at 99676059) make of
# `drawn()`, with the answers in the order of VARIANTS as its `output_file`.
RELEASED = {"g_acc": 12.5, "q_acc": 27.5, "i_acc": 28.75, "acc": 51.875}


def record(number: int, kind: str, images: tuple[str, str]) -> dict[str, Any]:
    listed = "\nOption: A:Knit cap; B:Helmet;" if kind == "multiple_choice" else ""
    first, second = ("A", "B") if kind == "multiple_choice" else ("Yes", "No")
    return {
        "Index": number,
        "Image_0": images[0],
        "Image_1": images[1],
        "Question_0": f"Is it worn by rider {number}?{listed}",
        "Question_1": f"Is it carried by rider {number}?{listed}",
        "Image_0_Question_0": first,
        "Image_1_Question_0": second,
        "Image_0_Question_1": second,
        "Image_1_Question_1": first,
        "Question_Type": kind,
        "Source": "Flickr30K" if number % 3 else "DOCCI",
    }


def drawn() -> list[tuple[dict[str, Any], list[str]]]:
    """Seeded rows, each with an answer to every question; answers tend to be right."""
    chance = random.Random(11)
    found = []
    for number in range(40):
        kind = ("yes_no", "multiple_choice")[number % 2]
        right = chance.random() < 0.4
        answers = [
            chance.choice([said for said, meant in MEANT[kind].items() if not right or meant == side])
            for side in (0, 1, 1, 0)
        ]
        found.append((record(number, kind, (f"images/{number}_0.png", f"images/{number}_1.png")), answers))
    return found


def write(folder: Path, records: list[dict[str, Any]]) -> None:
    (folder / "images").mkdir(parents=True)
    for number, name in enumerate({name for one in records for name in (one["Image_0"], one["Image_1"])}):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / name)
    (folder / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, float]:
    assert main(["score", "naturalbench", "answers.jsonl", "--data", "data", *words, "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    return {one["metric"]: one["value"] for one in metrics if one["subset"] == "all"}


def write_answers(folder: Path, answered: list[tuple[dict[str, Any], list[str]]]) -> None:
    lines = [
        {"id": str(one["Index"]), "variant": variant, "response": said}
        for one, answers in answered
        for variant, said in zip(VARIANTS, answers, strict=True)
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_four_metrics_count_what_is_stated_and_as_released_what_the_script_finds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "data", [one for one, _ in drawn()])
    write_answers(folder, drawn())
    right = [
        [MEANT[one["Question_Type"]][said] == side for said, side in zip(said_of, (0, 1, 1, 0), strict=True)]
        for one, said_of in drawn()
    ]
    n = len(right)
    expected = {
        "g_acc": 100 * sum(map(all, right)) / n,
        "q_acc": 100 * sum((a and b) + (c and d) for a, b, c, d in right) / (2 * n),
        "i_acc": 100 * sum((a and c) + (b and d) for a, b, c, d in right) / (2 * n),
        "acc": 100 * sum(map(sum, right)) / (4 * n),
    }
    found = values(capsys)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    found = values(capsys, "--set", "extraction=released")
    assert {name: found[name] for name in RELEASED} == pytest.approx(RELEASED)


def test_all_combinations_of_guesses_give_the_chance_levels(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guesses = [["Yes" if guess else "No" for guess in four] for four in product((0, 1), repeat=4)]
    rows = [record(n, "yes_no", (f"images/{n}_0.png", f"images/{n}_1.png")) for n in range(len(guesses))]
    write(folder / "data", rows)
    write_answers(folder, list(zip(rows, guesses, strict=True)))
    found = values(capsys)
    assert {name: found[name] for name in NaturalBench.chance_levels} == NaturalBench.chance_levels


def test_the_suffix_follows_the_question_without_a_space_and_rows_that_share_an_image_are_one_cluster(
    folder: Path,
) -> None:
    shown = [("a", "b"), ("c", "d"), ("d", "e"), ("f", "a")]
    write(
        folder / "data",
        [
            record(number, ("yes_no", "multiple_choice")[number % 2], (f"images/{x}.png", f"images/{y}.png"))
            for number, (x, y) in enumerate(shown)
        ],
    )
    benchmark = NaturalBench()
    samples = list(benchmark.samples(folder / "data", "test", {}))
    clusters = [sample.cluster for sample in samples]
    assert [clusters.index(name) for name in clusters] == [0, 1, 1, 0]
    first, *_, last = (list(benchmark.probes(sample, {})) for sample in samples[:2])
    assert first[2].messages[0].parts[0] == samples[0].images[0]
    assert getattr(first[2].messages[0].parts[1], "text", "") == (
        "Is it carried by rider 0?Please answer Yes or No."
    )
    assert getattr(last[0].messages[0].parts[1], "text", "") == (
        "Is it worn by rider 1?\nOption: A:Knit cap; B:Helmet;"
        "Please output the letter corresponding to the correct option."
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"Image_1_Question_0": "Maybe"}, ("Image_1_Question_0", "Maybe", "Yes or No")),
        ({"Question_Type": "open"}, ("Question_Type", "open")),
        ({"Source": None}, ("Source",)),
    ],
)
def test_a_wrong_field_is_named_with_file_and_record(
    change: dict[str, Any], named: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = record(7, "yes_no", ("images/a.png", "images/b.png"))
    write(folder / "data", [one])
    (folder / "data/records.jsonl").write_text(json.dumps({**one, **change}))
    assert main(["run", "naturalbench", "--data", "data", "--model", "baseline/chance"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(word in said for word in ("7", *named))


def test_the_column_with_a_space_in_its_name_is_the_same_data(folder: Path) -> None:
    one = record(7, "yes_no", ("images/a.png", "images/b.png"))
    one["Question_0"] = 'Does the sign read "Question Type"?'
    write(folder / "data", [one])
    samples = list(NaturalBench().samples(folder / "data", "test", {}))
    spaced = {name.replace("Question_Type", "Question Type"): value for name, value in one.items()}
    (folder / "data/records.jsonl").write_text(json.dumps(spaced))
    assert list(NaturalBench().samples(folder / "data", "test", {})) == samples


def test_an_empty_folder_gets_the_remedy_of_a_missing_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    said = []
    for name in ("empty", "nowhere"):
        assert main(["run", "naturalbench", "--data", name, "--model", "baseline/chance"]) == 2
        said.append(capsys.readouterr().err)
    assert "records.jsonl is not in this folder" in said[0]
    assert "`sightline data unpack FILE... --name naturalbench`" in said[0]
    assert said[0].partition("; expected")[2] == said[1].partition("; expected")[2]
