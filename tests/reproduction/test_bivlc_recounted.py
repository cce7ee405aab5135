"""BiVLC's metrics against a recount by the comparisons of the released VQAScore_BiVLC.py."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from pathlib import Path

import pytest
from tests.reproduction.recount import Row, Unit, check, draw, evaluate, write_lines

CHOICES = ("ipos_2t", "ineg_2t", "tpos_2i", "tneg_2i")
METRICS = ("group", "i2t", "t2i", *CHOICES)
STATED = (
    *("{0}", "({0})", "**{0}**", "Answer: {0}", "\\boxed{{{0}}}", "The answer is ({0})."),
    *(
        '{{"answer": "{0}"}}',
        "It is not {1}. Answer: {0}",
        "Answer: {1}. Wait, no. Answer: {0}",
        "All of this speaks for ({0})",
    ),
)
UNSTATED = ("Neither.", "It cannot be told.", "Answer: A. Answer: B", "The answer is (E).")


def records(folder: Path, count: int) -> list[Row]:
    """Instances of which some have the COCO image of the one before, and some its negative image."""
    made: list[Row] = []
    for number in range(count):
        image, negative = (draw(folder, f"images/{number}-{side}.png", 2 * number + side) for side in (0, 1))
        if number % 9 in (4, 5):
            image = made[-1]["image"]
        if number % 9 == 6:
            negative = made[-1]["negative_image"]
        made.append(
            {
                "image": image,
                "caption": f"A man carries {number} apples.",
                "negative_caption": f"A man carries {number} pears.",
                "negative_image": negative,
                "type": ("replace", "swap", "add")[number % 3],
                "subtype": ("obj", "att")[number % 2],
            }
        )
    write_lines(folder / "records.jsonl", made)
    return made


def clusters(made: Sequence[Row]) -> Sequence[str]:
    """The first of the rows that share images, directly or through others."""
    of = list(range(len(made)))
    for (one, first), (two, second) in product(enumerate(made), repeat=2):
        if {first["image"], first["negative_image"]} & {second["image"], second["negative_image"]}:
            of = [of[one] if cluster == of[two] else cluster for cluster in of]
    return [str(cluster) for cluster in of]


def units(rights: Sequence[Mapping[str, bool]], of: Sequence[str]) -> Mapping[str, list[Unit]]:
    """The units of each metric: one an instance."""
    parts: Mapping[str, Sequence[str]] = {
        "group": CHOICES,
        "i2t": CHOICES[:2],
        "t2i": CHOICES[2:],
        **{choice: (choice,) for choice in CHOICES},
    }
    return {
        metric: [
            (cluster, all(right[choice] for choice in part))
            for right, cluster in zip(rights, of, strict=True)
        ]
        for metric, part in parts.items()
    }


def check_rows(found: Row, made: Sequence[Row], rights: Sequence[Mapping[str, bool]]) -> None:
    of = clusters(made)
    for label in (None, "type", "subtype"):
        for value in {record[label] for record in made} if label else ("all",):
            part = [place for place, record in enumerate(made) if not label or record[label] == value]
            counted = units([rights[place] for place in part], [of[place] for place in part])
            for metric, members in counted.items():
                check(found["rows"][metric, f"{label}={value}" if label else "all"], members)


def right_letters(folder: Path, made: Sequence[Row]) -> Mapping[tuple[str, str], str]:
    """The right letter of each question, read from what a model was shown."""
    letters = {}
    for line in (folder / "answers.jsonl").read_text().splitlines():
        asked = json.loads(line)
        record, variant = made[int(asked["sample"])], asked["variant"]
        prefix = "" if "pos" in variant else "negative_"
        image, caption = record[f"{prefix}image"], record[f"{prefix}caption"]
        if variant.endswith("2t"):
            assert asked["images"] == [image]
            offered = sorted(
                ("caption", "negative_caption"), key=lambda name: asked["prompt"].index(record[name])
            )
            place = [record[name] for name in offered].index(caption)
        else:
            assert caption in asked["prompt"]
            assert sorted(asked["images"]) == sorted([record["image"], record["negative_image"]])
            place = asked["images"].index(image)
        letters[asked["sample"], variant] = "AB"[place]
    return letters


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_shares_of_choices_and_their_intervals_are_those_of_a_recount(tmp_path: Path, seed: int) -> None:
    data = tmp_path / "data"
    made, pick = records(data, 60), random.Random(seed)
    command = ("run", "bivlc", "--model", "baseline/chance", "--seed", str(seed))
    evaluate(*command, data=data, out=tmp_path / "shown")
    letters = right_letters(tmp_path / "shown", made)
    lines, rights, fates = [], [], []
    for number in range(60):
        right = {}
        for choice in CHOICES:
            letter = letters[str(number), choice]
            other = "B" if letter == "A" else "A"
            weights = (70, 15, 5, 4, 3, 3)
            fate = pick.choices(("right", "wrong", "miss", "empty", "failed", "missing"), weights)[0]
            right[choice] = fate == "right"
            fates.append(fate)
            line: Row = {"id": str(number), "variant": choice}
            if fate in ("right", "wrong"):
                said = (letter, other) if fate == "right" else (other, letter)
                line["response"] = pick.choice(STATED).format(*said)
            elif fate == "failed":
                line["error"] = "the server closed the connection"
            else:
                line["response"] = pick.choice(UNSTATED) if fate == "miss" else ""
            if fate != "missing":
                lines.append(line)
        rights.append(right)
    file = str(write_lines(tmp_path / "answers.jsonl", lines))
    rest = ("--allow-missing", "--seed", str(seed))
    found = evaluate("score", "bivlc", file, *rest, data=data, out=tmp_path / "out", status=1)
    check_rows(found, made, rights)
    assert found["rows"]["miss", "all"]["value"] == pytest.approx(100 * fates.count("miss") / 240)
    assert found["errors"] == fates.count("failed") + fates.count("missing")
    command = ("run", "bivlc", "--model", f"replay/{file}", "--seed", str(seed))
    replayed = evaluate(*command, data=data, out=tmp_path / "run", status=1)
    assert replayed["metrics"] == found["metrics"]


def test_a_letter_that_is_always_given_is_right_once_in_each_direction(tmp_path: Path) -> None:
    data = tmp_path / "data"
    records(data, 12)
    lines = [
        {"id": str(number), "variant": name, "response": "A"} for number in range(12) for name in CHOICES
    ]
    file = str(write_lines(tmp_path / "answers.jsonl", lines))
    rows = evaluate("score", "bivlc", file, data=data, out=tmp_path / "out")["rows"]
    value = {metric: rows[metric, "all"]["value"] for metric in METRICS}
    assert (value["group"], value["i2t"], value["t2i"]) == (0, 0, 0)
    assert value["ipos_2t"] + value["ineg_2t"] == value["tpos_2i"] + value["tneg_2i"] == 100


def chosen(scores: Mapping[tuple[int, int], float]) -> Mapping[str, bool]:
    """The four comparisons of the released script, by (caption, image)."""
    return {
        "ipos_2t": scores[0, 0] > scores[1, 0],
        "ineg_2t": scores[1, 1] > scores[0, 1],
        "tpos_2i": scores[0, 0] > scores[0, 1],
        "tneg_2i": scores[1, 1] > scores[1, 0],
    }


def score_pairs(folder: Path, made: Sequence[Row], values: Sequence[Mapping[tuple[int, int], float]]) -> Row:
    """The metrics of these scores; a score that is not a number is a failed call."""
    lines = []
    for number, scores in enumerate(values):
        for (caption, image), score in scores.items():
            said = {"response": repr(score)} if score == score else {"error": "out of memory"}
            lines.append({"id": str(number), "variant": f"c{caption}_i{image}", **said})
    file = str(write_lines(folder / "answers.jsonl", lines))
    status = int(any("error" in line for line in lines))
    return evaluate(
        "score", "bivlc:likelihood", file, data=folder / "data", out=folder / "out", status=status
    )


PAIRS = ((0, 0), (0, 1), (1, 0), (1, 1))


@pytest.mark.parametrize("seed", [1, 2])
def test_four_scores_decide_the_choices_as_in_the_script_and_equal_or_failed_ones_decide_none(
    tmp_path: Path, seed: int
) -> None:
    made, pick = records(tmp_path / "data", 60), random.Random(seed)
    values = [
        {pair: pick.choice((-0.25, -0.5, -1.5, -2e-5, -3.0, float("nan"))) for pair in PAIRS} for _ in made
    ]
    found = score_pairs(tmp_path, made, values)
    check_rows(found, made, [chosen(scores) for scores in values])
    assert found["errors"] == sum(score != score for scores in values for score in scores.values())


def test_all_orders_of_four_scores_have_the_chance_values(tmp_path: Path) -> None:
    made = records(tmp_path / "data", 24)
    values = [dict(zip(PAIRS, order, strict=True)) for order in permutations((-0.1, -0.2, -0.3, -0.4))]
    rows = score_pairs(tmp_path, made, values)["rows"]
    assert rows["group", "all"]["value"] == pytest.approx(100 / 6)
    assert [rows[metric, "all"]["value"] for metric in METRICS[1:]] == [25, 25, 50, 50, 50, 50]
