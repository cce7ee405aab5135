"""NaturalBench's metrics against a recount by the released naturalbench_vqa.py and the records."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import pytest
from tests.reproduction.recount import Row, Unit, check, draw, evaluate, write_lines

VARIANTS = ("q0_i0", "q0_i1", "q1_i0", "q1_i1")
METRICS = ("g_acc", "q_acc", "i_acc", "acc")
SHAPES = ("{}\nOption: A:{}; B:{};", "{}\nOption: A: {}. B: {}.", "{} A. {}. B. {}.")
OPTIONS = (("a kite", "a drum"), ("To the left", "To the right"))
STATED = (
    *("{0}", "{0}.", "**{0}**", "Answer: {0}", "\\boxed{{{0}}}", "<answer>{0}</answer>"),
    *('{{"answer": "{0}"}}', "Answer: {1}. Wait, no. Answer: {0}", "The answer is {0}."),
)
STATED_YES_NO = (*STATED, "{0}, it is so.", "There is doubt, but the answer is {0}.")
STATED_LETTER = (
    *STATED,
    "({0})",
    "({0}) {2}, not {3}",
    "{2}",
    "It is not {1}. Answer: {0}",
    "All of this speaks for ({0})",
)
UNSTATED_YES_NO = ("Maybe.", "Yes. No.", "I cannot tell.", "Not necessarily.")
UNSTATED_LETTER = ("A dog is shown.", "The answer is (E).", "Answer: A. Answer: B", "It cannot be told.")
SAID = {"yes_no": ("Yes", "No"), "multiple_choice": ("A", "B")}


def records(folder: Path, groups: int) -> list[Row]:
    """Groups of which some share an image with the one before, and every fifth has the other answers."""
    made: list[Row] = []
    for number in range(groups):
        kind = "multiple_choice" if number % 3 == 2 else "yes_no"
        first, second = SAID[kind][:: -1 if number % 5 == 4 else 1]
        shown = (
            made[-1]["Image_1"]
            if number % 8 in (3, 4)
            else draw(folder, f"images/{number}-0.png", 2 * number)
        )
        questions = [f"Is thing {number} in place {place}?" for place in range(2)]
        if kind == "multiple_choice":
            questions = [
                SHAPES[number // 3 % 3].format(question, *OPTIONS[place])
                for place, question in enumerate(questions)
            ]
        made.append(
            {
                "Index": number,
                "Image_0": shown,
                "Image_1": draw(folder, f"images/{number}-1.png", 2 * number + 1),
                **{f"Question_{place}": question for place, question in enumerate(questions)},
                "Image_0_Question_0": first,
                "Image_1_Question_0": second,
                "Image_0_Question_1": second,
                "Image_1_Question_1": first,
                "Question_Type": kind,
                "Source": "Flickr30K" if number % 2 else "DOCCI",
            }
        )
    write_lines(folder / "records.jsonl", made)
    return made


def reference(record: Row, variant: str) -> str:
    return str(record[f"Image_{variant[4]}_Question_{variant[1]}"])


def released(record: Row, variant: str, answer: Row) -> bool:
    """The script's reading: the first of two words, compared with a fixed pattern of answers."""
    words = {}
    for word in SAID[record["Question_Type"]]:
        if found := re.search(rf"\b{word}\b", answer.get("response", ""), re.IGNORECASE):
            words[found.start()] = word
    expected = SAID[record["Question_Type"]][variant in ("q0_i1", "q1_i0")]
    return bool(words) and words[min(words)] == expected


def answers(made: list[Row], seed: int) -> tuple[list[Row], Mapping[tuple[str, str], str]]:
    """An answer to most probes in a form whose reading is known, and what became of each probe."""
    pick, lines, became = random.Random(seed), [], {}
    for record in made:
        is_open = record["Question_Type"] == "yes_no"
        for variant in VARIANTS:
            right = reference(record, variant)
            wrong = next(word for word in SAID[record["Question_Type"]] if word != right)
            fate = pick.choices(
                ("right", "wrong", "miss", "empty", "failed", "missing"), (70, 15, 5, 4, 3, 3)
            )[0]
            line: Row = {"id": str(record["Index"]), "variant": variant}
            if fate in ("right", "wrong"):
                said, other = (right, wrong) if fate == "right" else (wrong, right)
                texts = OPTIONS[int(variant[1])]
                texts = texts if said == "A" else texts[::-1]
                form = pick.choice(STATED_YES_NO if is_open else STATED_LETTER)
                line["response"] = form.format(said, other, *texts)
            elif fate == "miss":
                line["response"] = pick.choice(UNSTATED_YES_NO if is_open else UNSTATED_LETTER)
            elif fate == "empty":
                line["response"] = ""
            else:
                line["error"] = "the server closed the connection"
            became[line["id"], variant] = fate
            if fate != "missing":
                lines.append(line)
    return lines, became


def clusters(made: list[Row]) -> Mapping[str, str]:
    """Rows are joined until no two groups of rows share an image."""
    of = {str(record["Index"]): str(record["Index"]) for record in made}
    for one, other in product(made, made):
        if {one["Image_0"], one["Image_1"]} & {other["Image_0"], other["Image_1"]}:
            old, new = of[str(one["Index"])], of[str(other["Index"])]
            of = {name: new if cluster == old else cluster for name, cluster in of.items()}
    return of


def recount(
    made: list[Row], of: Mapping[str, str], is_right: Callable[[Row, str], bool]
) -> Mapping[str, list[Unit]]:
    """The units of each metric: a group, two questions, two images, four queries."""
    units: dict[str, list[Unit]] = {name: [] for name in METRICS}
    for record in made:
        cluster = of[str(record["Index"])]
        right = {variant: is_right(record, variant) for variant in VARIANTS}
        units["g_acc"].append((cluster, all(right.values())))
        for place in "01":
            units["q_acc"].append((cluster, right[f"q{place}_i0"] and right[f"q{place}_i1"]))
            units["i_acc"].append((cluster, right[f"q0_i{place}"] and right[f"q1_i{place}"]))
        units["acc"].extend((cluster, right[variant]) for variant in VARIANTS)
    return units


def subsets(made: list[Row]) -> Mapping[str, list[Row]]:
    """Every subset that metrics.json has a row for."""
    of = {"all": made}
    for record in made:
        for label in ("Question_Type", "Source"):
            of.setdefault(f"{label.lower()}={record[label]}", []).append(record)
    return of


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_four_shares_and_their_intervals_are_those_of_a_recount(tmp_path: Path, seed: int) -> None:
    made = records(tmp_path / "data", 45)
    joined = clusters(made)
    lines, became = answers(made, seed)
    file = str(write_lines(tmp_path / "answers.jsonl", lines))
    read = {(line["id"], line["variant"]): line for line in lines}
    for extraction in ("strict", "released"):

        def is_right(record: Row, variant: str, extraction: str = extraction) -> bool:
            name = (str(record["Index"]), variant)
            if extraction == "strict":
                return became[name] == "right"
            return released(record, variant, read.get(name, {}))

        out = tmp_path / extraction
        options = ("--allow-missing", "--set", f"extraction={extraction}")
        found = evaluate("score", "naturalbench", file, *options, data=tmp_path / "data", out=out, status=1)
        rows = found["rows"]
        for subset, part in subsets(made).items():
            for metric, units in recount(part, joined, is_right).items():
                check(rows[metric, subset], units)
        failed = sum(fate in ("failed", "missing") for fate in became.values())
        assert (found["samples"], found["probes"], found["errors"], found["not_sent"]) == (45, 180, failed, 0)
        assert found["empty"] == sum(fate == "empty" for fate in became.values())
        if extraction == "strict":
            assert rows["miss", "all"]["value"] == 100 * sum(fate == "miss" for fate in became.values()) / 180

    command = ("run", "naturalbench", "--model", f"replay/{file}")
    replayed = evaluate(*command, data=tmp_path / "data", out=tmp_path / "run", status=1)
    scored = json.loads((tmp_path / "strict" / "metrics.json").read_text())
    assert replayed["metrics"] == scored["metrics"]


def test_all_sixteen_outcomes_of_a_group_have_the_chance_values(tmp_path: Path) -> None:
    made = records(tmp_path / "data", 16)
    lines = [
        {
            "id": str(record["Index"]),
            "variant": variant,
            "response": next(
                word
                for word in SAID[record["Question_Type"]]
                if (word == reference(record, variant)) is is_right
            ),
        }
        for record, outcome in zip(made, product((False, True), repeat=4), strict=True)
        for variant, is_right in zip(VARIANTS, outcome, strict=True)
    ]
    file = str(write_lines(tmp_path / "answers.jsonl", lines))
    rows = evaluate("score", "naturalbench", file, data=tmp_path / "data", out=tmp_path / "out")["rows"]
    assert [rows[metric, "all"]["value"] for metric in METRICS] == [6.25, 25, 25, 50]
