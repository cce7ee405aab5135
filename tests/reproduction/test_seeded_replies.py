"""The readers called released read seeded replies as the released scripts do.

The digests are those of the scripts: `extract_option_labels` of src/eval_cii.py (MING-ZCH/CII-Bench at
ba8e9952); the loop of evaluation/opensource_json_eval.py (DynaMath/DynaMath at 598c3c3d);
`DynaMath_auxeval` of vlmeval/dataset/dynamath.py (open-compass/VLMEvalKit at e8e78f05) with a model that
raises.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable

import pytest

from sightline.benchmarks.ciibench.benchmark import CIIBench
from sightline.benchmarks.dynamath.readers import FLOAT, READERS
from sightline.scoring.options import most_frequent
from sightline.types import Case

REPLIES = 10_000
CHINESE = [f"图片表达了第{number}种含义。" for number in "一二三四五六"]
CHINESE_PARTS = (
    *(
        "\n答案：",
        "\n答案",
        "答案：",
        "\n**答案：",
        "**",
        "我选",
        "而不是",
        "，",
        "\n",
        "因为HARD",
        "G",
        "\nNot ",
    ),
    *("({})", "{}", "{}。", " {} ", "（{}）", CHINESE[2], "表达", "BDF"),
)
REFERENCES = {
    "float": ("3", "2.0944", "-1.5", "0.001", "150"),
    "multiple choice": ("A", "B", "E"),
    "text": ("y = 4", "(1, 2)", "Sep", "Q1", "11/02/2006"),
}
PARTS = (
    *("{", "}", '"', "\\", "\n", " ", ".", "A", "b", "B.", "3", "3.0005", "-1.5", "2π/3", "0.6667π", "π"),
    *('{"short answer": ', '{"solution": "x\\n", "short answer": "', '"}', '{"short answer": ["A"]}', "null"),
    *("The answer is ", "y = 40", "(1, 2)", "September", "[1]", "nan", "1e2", "١"),
)


def chinese_replies() -> list[str]:
    chance = random.Random(1)
    return [
        "".join(part.format(chance.choice("ABCDEFGH")) for part in chance.choices(CHINESE_PARTS, k=length))
        for length in chance.choices(range(1, 7), k=REPLIES)
    ]


def cases() -> list[Case]:
    """Questions of each type with replies: a short answer in JSON, whole or broken, or parts of one."""
    chance = random.Random(2)
    found = []
    for _ in range(REPLIES):
        kind = chance.choice(list(REFERENCES))
        reference = chance.choice(REFERENCES[kind])
        said = chance.choice([reference, "".join(chance.choices(PARTS, k=chance.randint(1, 3)))])
        form = chance.choice(
            ['{{"solution": "s", "short answer": "{}"}}', '{{"short answer": {}}}', "{}", "{}.\n{}"]
        )
        reply = form.format(said, said)
        if chance.random() < 0.3:
            reply = "".join(chance.choices((*PARTS, said), k=4))
        options = ("one", "two", "three", "four", "five") if kind == "multiple choice" else ()
        question = f"Which? {FLOAT}" if kind == "float" else "Which?"
        found.append(Case(("key",), "correct", question, (reply,), (reference,), options))
    return found


def digest(read: Iterable[str]) -> str:
    return hashlib.sha256("".join(read).encode()).hexdigest()[:16]


def test_the_released_reader_of_cii_bench_reads_as_its_script() -> None:
    read = [most_frequent(CIIBench.released_letters(one, CHINESE)[1]) or "-" for one in chinese_replies()]
    assert len(Counter(read)) == 9
    assert digest(read) == "ec86f7e804a17fa3"


@pytest.mark.parametrize(
    ("name", "letters", "expected"),
    [
        ("released", {"right": "r", "wrong": "w"}, "e13592bfcdbe7ab7"),
        ("vlmevalkit", {"right": "r", "wrong": "w", "undecided": "u", "miss": "m"}, "4607af4e6e679180"),
    ],
)
def test_the_readers_of_dynamath_read_as_their_scripts(
    name: str, letters: dict[str, str], expected: str
) -> None:
    read = [letters[READERS[name](one).verdict] for one in cases()]
    assert min(Counter(read).values()) > REPLIES / 100
    assert digest(read) == expected
