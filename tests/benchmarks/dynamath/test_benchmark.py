"""DynaMath on records of its released layout: metrics of released verdicts, and what three readers read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.benchmarks.dynamath.benchmark import DynaMath, DynaMathRecord
from sightline.benchmarks.dynamath.readers import FLOAT, READERS, read_reply
from sightline.cli.main import main
from sightline.types import Case, ImageRef, Sample, Text

Trial = dict[str, dict[str, Any]]

GPT4O = int(
    "1647fbffffffbffc69e4bfffffff4fbffde6df7ffffd7e0c5410effcb8fffffffc00bd3f7fdffffffff003ffffd7fbbb"
    "a762fffbb824777ff283fffffffdfc48fffffffc02fe832307ffffc00ffffffb7ffffffffffffa0cd0ffc00fff7f0453"
    "422327bdc00fff5ffffffffffffffff9bd4efbfff00392d0337fffffffaf161000ffedbba4001020900c4900000fffff"
    "0a3ffffc65ffe59f9449fffbf823ad023ff157e33f514b7c125007a0e2fffee44ffebb00000003fffffff2ff21ff6021"
    "ee24fbf0a52000ffc18a638effdffddc01dcd7b0bff7fff9f003fffffffffc09feffffffffffd3800400b5c000020445"
    "01400000ffd204e4fbfffff0037f000000000000000ff100ffd345abfffffffffc00dbc80321c804010fcc0890bd7f4c"
    "c7e7d0ccddffb2efec34f8dfffffffffec3ff7244180002f7f4e42f7ffffff00382503ff870985f7058024852bffd2b6"
    "dfffffd5090f33ff0408f0015b96000bfff70030cf7fffdfc2034cbd003ff003c608002fc0501820029c9620800fffff"
    "ffc00fafff6fc00bfc4000022ffc40ff800ffffffffcf80200203ed80102f97ffeffbfdfc160c3bc2e7ffffc20ffc600"
    "2400ddfff003fffffaffffc7fffffffc011135e3dfff7ffffffc8c27a44e9c0408a0002800ffc8f7fc9504a73ffdffaf"
    "ffff2ea195dbeffede70fbe01000e52b965708fb27fdffffffe66beffffffffffffffffffffffffffff003ffffffffff"
    "ff003ffffc00083ffffffffffffffffffff9ea76b1ffffef6f3c592ffbffb3fce4954bdffffffffffffffdbfff76a300"
    "602082ffffffffff143bf003ffffc00e77ff73d00ffc00bcbffffffffffffdfffeffffffffffffef5793fffffff143ff"
    "dffff",
    16,
)
"""`samples and result/GPT4o-result.csv` of DynaMath/DynaMath at 598c3c3d: a bit for each verdict, Q1 to Q501
and in each line Variant 1 to 10; 1 is correct."""


def record(answer: str = "B", **changed: str) -> dict[str, Any]:
    return {
        "question": "Is it red? Choices: (A) yes (B) no",
        "answer": answer,
        "image": "image/image1.png",
        "answer_type": "multiple choice",
        "subject": "statistics",
        "level": "high school",
        **changed,
    }


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Trial]], None]:
    """Writes trials as the release lays them out; answers go to answers.jsonl."""
    monkeypatch.chdir(tmp_path)

    def write(trials: list[Trial]) -> None:
        for number, trial in enumerate(trials, 1):
            folder = tmp_path / f"data/trial{number}"
            (folder / "image").mkdir(parents=True)
            (folder / "dataset.json").write_text(json.dumps(trial))
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / "image/image1.png")

    return write


def answer(lines: dict[tuple[str, int], str]) -> None:
    Path("answers.jsonl").write_text(
        "".join(
            json.dumps({"id": name, "variant": str(number), "response": response}) + "\n"
            for (name, number), response in lines.items()
        )
    )


def score(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    assert main(["score", "dynamath", "answers.jsonl", "--data", "data", "--json", *words]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    return {one["metric"]: one for one in metrics if one["subset"] == "all"}


def test_metrics_of_the_released_verdicts_of_gpt_4o(
    written: Callable[[list[Trial]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    right = [bit == "1" for bit in f"{GPT4O:05010b}"]
    written([{str(seed): record() for seed in range(1, 502)}] * 10)
    places = product(range(1, 502), range(1, 11))
    answer({(str(seed), number): "AB"[one] for (seed, number), one in zip(places, right, strict=True)})
    found = score(capsys)
    # The file's own line: 323, 313, 309, 323, 309, 321, 323, 318, 320 and 314 of 501 are correct.
    assert found["average"]["value"] == pytest.approx(100 * 3173 / 5010)
    assert found["worst_case"]["value"] == pytest.approx(100 * 174 / 501)
    assert found["robustness"]["value"] == pytest.approx(100 * (174 / 501) / (3173 / 5010))
    assert {name: found[name]["n"] for name in ("average", "worst_case")} == {
        "average": 5010,
        "worst_case": 501,
    }


def test_guessing_one_of_two_options_in_three_variants(
    written: Callable[[list[Trial]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    every = list(product("AB", repeat=3))
    written([{str(seed): record() for seed in range(8)}] * 3)
    answer(
        {(str(seed), n): said for seed, all_said in enumerate(every) for n, said in enumerate(all_said, 1)}
    )
    found = score(capsys)
    assert [found[name]["value"] for name in ("average", "worst_case", "robustness")] == [50, 12.5, 25]
    assert main(["run", "dynamath", "--data", "data", "--model", "baseline/chance", "--store", "s.db"]) == 0
    assert "the data have 3 variants of each question, the release has 10" in capsys.readouterr().out


def case(kind: str, reference: str, response: str) -> Case:
    options = ("a bus", "the tram") if kind == "multiple choice" else ()
    question = f"Which? {FLOAT}" if kind == "float" else "Which?"
    return Case(("key",), "correct", question, (response,), (reference,), options)


def short(said: str) -> str:
    return f'{{"solution": "s", "short answer": {said}}}'


# The verdicts of the loop of evaluation/opensource_json_eval.py of DynaMath/DynaMath at 598c3c3d, and of
# DynaMath_auxeval of open-compass/VLMEvalKit at e8e78f05 with a model that raises (undecided); it ends with
# an AttributeError where `miss` stands.
@pytest.mark.parametrize(
    ("kind", "reference", "response", "stated", "released", "vlmevalkit"),
    [
        ("multiple choice", "B", short('"B"'), "right", "right", "right"),
        ("multiple choice", "B", short('"b"'), "right", "wrong", "right"),
        ("multiple choice", "B", short('"The tram, B."'), "right", "wrong", "undecided"),
        ("multiple choice", "B", "B", "right", "wrong", "right"),
        ("multiple choice", "B", "The answer is B.", "right", "wrong", "undecided"),
        ("float", "2.0944", short('"2.094 cm"'), "right", "right", "right"),
        ("float", "6.2832", short('"2π"'), "right", "right", "right"),
        ("float", "2.0944", short('"x = 2.094"'), "right", "wrong", "undecided"),
        ("float", "0.5", short('"1/2"'), "right", "wrong", "undecided"),
        ("float", "3", short("3"), "right", "right", "undecided"),
        ("float", "3", "The area is 3.", "right", "wrong", "undecided"),
        ("float", "2", short(r'"\\sqrt{2}"'), "miss", "wrong", "undecided"),
        ("float", "2.5", r'{"solution": "\(x\)", "short answer": "2.5"}', "right", "right", "right"),
        ("text", "y = 4", short('"y = 40"'), "wrong", "right", "wrong"),
        ("text", "y = 4", short('"4"'), "right", "wrong", "right"),
        ("text", "y = 4", short('"x = 4"'), "wrong", "wrong", "wrong"),
        ("text", "11/02/2006", short('"11/2/2006"'), "right", "wrong", "wrong"),
        ("float", "2.0944", short(r'"2\u03c0/3"'), "right", "wrong", "undecided"),
        ("text", "(1, 2)", short('"(1.0, 2.0)"'), "right", "wrong", "wrong"),
        ("text", "(1, 2)", short('"(-1, 2)"'), "wrong", "wrong", "wrong"),
        ("text", "Sep", short('"September"'), "right", "right", "wrong"),
        ("text", "Sep", short('""'), "wrong", "wrong", "right"),
        ("text", "135", short("135"), "right", "right", "miss"),
        ("text", "Friday", "It is Friday.", "right", "right", "wrong"),
    ],
)
def test_what_the_three_readers_read(
    kind: str, reference: str, response: str, stated: str, released: str, vlmevalkit: str
) -> None:
    found = {name: read(case(kind, reference, response)).verdict for name, read in READERS.items()}
    assert found == {"stated": stated, "released": released, "vlmevalkit": vlmevalkit}


@pytest.mark.parametrize(
    ("reference", "right", "wrong", "missed"),
    [
        (
            "5.000",
            (
                "5",
                "+5",
                "x = 5",
                "5 cm^2",
                r"5^\circ",
                r"5^{\circ}",
                "7 - 2 = 5",
                "x is not 4, x = 5",
                "0.5e1",
            ),
            ("- 5.000", "minus 5", "negative 5", "x = - 5", "−5", "–5", "it is - 5"),
            ("±5", r"\pm 5", "+/-5", "not 5", "x is not 5.", "It can't be 5.", "5+5", "5 * 5", "5x5", "5i"),
        ),
        ("5.000", (), (), ("-(5)", "x + 5", "x/5", "5^2", "5²", "(5)^2", "x ≠ 5", "x != 5", r"x \leq 5")),
        (
            "-3",
            ("-3", "- 3", "minus 3", "x = - 3", "The answer is negative 3.", "The negative root is -3."),
            ("3", "+3"),
            ("±3", "x - 3", "3 (negative)"),
        ),
        ("150", ("1.5 × 10^2", r"1.5 \times 10^{2}", "1.5e2"), ("1.5 × 10^-2",), ("15 × 10",)),
        ("0.00012", ("1.2e-4", "1.2 × 10^{-4}"), ("1.2e4",), ()),
        ("1.0472", ("π/3", "pi / 3", r"\frac{\pi}{3}"), ("-π/3",), ("π + 3",)),
        ("(0, 6)", ("(0, 6)", "0 and 6", r"\left(0, 6\right)"), ("(0, - 6)", "(0, minus 6)"), ("(0, ±6)",)),
        ("01/20/2000", ("1/20/2000", "01-20-2000"), ("01/21/2000",), ()),
        ("y = 2x - 3", ("y=2x-3",), ("y=2x+3",), ()),
        ("2 hours", ("2 hours", "2", "2.0 hours"), ("2 minutes",), ("2-3 hours",)),
        ("Bar 2", ("Bar 2", "It is bar 2."), ("Line 2",), ()),
    ],
)
def test_a_sign_or_a_denial_makes_another_answer_of_a_number(
    reference: str, right: tuple[str, ...], wrong: tuple[str, ...], missed: tuple[str, ...]
) -> None:
    kind = "float" if reference.replace(".", "").removeprefix("-").isdecimal() else "text"
    expected = {"right": right, "wrong": wrong, "miss": missed}
    for form in ("{}", '{{"short answer": "{}"}}'):
        found = {
            name: [
                one
                for one in said
                if READERS["stated"](case(kind, reference, form.format(one))).verdict != name
            ]
            for name, said in expected.items()
        }
        assert found == {"right": [], "wrong": [], "miss": []}, form


@pytest.mark.parametrize(
    ("kind", "reference", "response", "reply", "expected"),
    [
        ("float", "3", "The area is 3.", "3.000", "right"),
        ("float", "3", "The area is 3.", "about 3", "wrong"),
        ("multiple choice", "B", "The answer is B.", "B", "right"),
        ("multiple choice", "B", "(B) or (A)?", "unclear", "right"),  # the response starts with it
        ("multiple choice", "B", "A or B", "unclear", "wrong"),
    ],
)
def test_the_model_that_vlmevalkit_asks_answers_for_the_response(
    kind: str, reference: str, response: str, reply: str, expected: str
) -> None:
    assert read_reply(case(kind, reference, response), reply).verdict == expected


def test_vlmevalkit_asks_a_model_only_where_it_reads_nothing(
    written: Callable[[list[Trial]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    written([{"1": record(), "2": record(), "3": record()}])
    answer({("1", 1): short('"B"'), ("2", 1): "The answer is B.", ("3", 1): "No, that is B."})
    words = ["score", "dynamath", "answers.jsonl", "--data", "data"]
    main([*words, "--set", "reader=vlmevalkit"])
    assert "2 undecided" in capsys.readouterr().out
    main([*words, "--set", "reader=vlmevalkit", "--judge", "baseline/chance"])
    printed = capsys.readouterr()
    assert "judges: sent 2" in printed.err
    assert "undecided" not in printed.out  # the rules read the first
    assert main([*words, "--judge", "baseline/chance"]) == 2
    assert "baseline/chance' has nothing to decide" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prompt", "question", "kind", "digest"),
    [
        ("closed", "How long is the red line?", "float", "2f7fdd695c86a0a5"),
        ("closed", "Is it red? Choices: (A) yes (B) no", "multiple choice", "8ee0044ad8da976e"),
        ("open", "How long is the red line?", "float", "24cae2332d3c9146"),
        ("open", "Is it red? Choices: (A) yes (B) no", "multiple choice", "9740d23be33cfeec"),
        ("vlmevalkit", "How long is the red line?", "float", "62ff6f34a1e5a0e8"),
        ("vlmevalkit", "Is it red? Choices: (A) yes (B) no", "multiple choice", "58762855c9862b27"),
        ("vlmevalkit", "When?", "text", "d70b9a949aabe763"),
    ],
)
def test_prompts_have_the_digests_of_those_that_the_released_code_makes(
    prompt: str, question: str, kind: Any, digest: str
) -> None:
    one = DynaMathRecord(question, "1", "i.png", kind, "statistics", "high school")
    sample = Sample("1", "", images=(ImageRef("x", "y"),), record=[one])
    probe = next(DynaMath().probes(sample, {"prompt": prompt, "image": True}))
    texts = [part.text for part in probe.messages[0].parts if isinstance(part, Text)]
    assert [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts] == [digest]


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("Is AB=CD? choice: (A) Yes (B) No ", ("Yes", "No")),
        ("Which?\nA. Group 1\nB. Group 2", ("Group 1", "Group 2")),
        ("Union of A and B?\nA: [1, 4]\nB: [3]\n", ("[1, 4]", "[3]")),
        ("Which figure? (A) (B)", ("A", "B")),
        ("Is point (B) above (A)?", ()),
    ],
)
def test_options_stand_at_the_end_of_a_question(question: str, options: tuple[str, ...]) -> None:
    one = DynaMathRecord(question, "A", "i.png", "multiple choice", "statistics", "high school")
    assert one.options == options


def without(one: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != field}


@pytest.mark.parametrize(
    ("second", "named"),
    [
        ({"1": record("C")}, ("trial2/dataset.json", "record 1", "answer", "one of A, B")),
        ({"1": record(question="Is it red?")}, ("trial2", "answer", "a question that ends with its options")),
        ({"1": record("two", answer_type="float")}, ("trial2", "answer", "a number")),
        ({"1": without(record(), "subject")}, ("trial2/dataset.json", "record 1", "subject")),
        ({"1": record(answer_type="number")}, ("trial2/dataset.json", "record 1", "answer_type")),
        ({"2": record()}, ("trial2/dataset.json", "record 1", "not in every trial")),
    ],
)
def test_a_wrong_record_is_named_with_its_file_and_field(
    written: Callable[[list[Trial]], None],
    capsys: pytest.CaptureFixture[str],
    second: Trial,
    named: tuple[str, ...],
) -> None:
    written([{"1": record()}, second])
    assert main(["run", "dynamath", "--data", "data", "--model", "baseline/chance", "--store", "s.db"]) == 2
    message = capsys.readouterr().err
    assert all(part in message for part in named), message


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('[{"id": "1"}]', ("record entry 1, field id", "found '1'")),
        ('{"1": "x"}', ("record line 1, field 1", "found 'x'")),
        ('{"1": null}', ("record line 1, field 1", "found 'null'")),
    ],
)
def test_a_record_that_is_no_object_is_named_with_its_file_and_field(
    written: Callable[[list[Trial]], None],
    capsys: pytest.CaptureFixture[str],
    content: str,
    named: tuple[str, ...],
) -> None:
    written([{"1": record()}])
    Path("data/trial1/dataset.json").write_text(content)
    assert main(["run", "dynamath", "--data", "data", "--model", "baseline/chance", "--store", "s.db"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert all(part in message for part in ("data/trial1/dataset.json", "under its id", *named)), message


def test_a_trial_before_others_must_not_be_missing(
    written: Callable[[list[Trial]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    written([{"1": record()}] * 3)
    Path("data/trial2/dataset.json").unlink()
    assert main(["run", "dynamath", "--data", "data", "--model", "baseline/chance", "--store", "s.db"]) == 2
    assert "trial2/dataset.json" in capsys.readouterr().err


def test_the_report_shows_the_figures_of_pulled_data(
    written: Callable[[list[Trial]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    written([{"1": record()}] * 3)
    for number in (1, 2):  # `data pull` puts the images of a repository below images/; trial3 is the user's
        folder = Path(f"data/images/trial{number}")
        folder.mkdir(parents=True)
        Path(f"data/trial{number}/image").rename(folder / "image")
    run = ["run", "dynamath", "--data", "data", "--model", "baseline/chance", "--store", "s.db", "--out", "r"]
    assert main(run) == 0
    assert main(["report", "r", "--html", "r.html", "--data", "data"]) == 0
    page = Path("r.html").read_text()
    assert "images/trial2/image/image1.png" in page
    assert "trial3/image/image1.png" in page.replace("images/trial3", "")
    assert "not shown" not in page


def test_a_group_without_images_takes_the_whole_width_of_a_report(
    written: Callable[[list[Trial]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    written([{"1": record()}])
    answer({("1", 1): "B"})
    words = ["--set", "image=off", "--out", "r"]
    assert main(["score", "dynamath", "answers.jsonl", "--data", "data", *words]) == 0
    assert main(["report", "r", "--html", "r.html"]) == 0
    assert '<article class="pairrow keep wide">' in Path("r.html").read_text()


def test_a_missing_figure_is_an_error_of_its_answer(
    written: Callable[[list[Trial]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    written([{"1": record()}] * 2)
    Path("data/trial2/image/image1.png").unlink()
    assert main(["run", "dynamath", "--data", "data", "--model", "baseline/chance", "--store", "s.db"]) == 1
    assert "trial2/image/image1.png" in capsys.readouterr().err
