"""ConBench on records of its released layout, by the released Score.py."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.benchmarks.conbench.benchmark import ABILITIES, FIELDS, ConBench, anls
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.scoring.scorer import ModelScorer
from sightline.types import Case

TASKS = [task for tasks in ABILITIES.values() for task in tasks]
PER_TASK = 8
WORDS = ("a red bus", "a green tram", "12", "13", "Coca Cola", "left")

# What Score.py of foundation-multimodal-models/ConBench at 6b5b59b6 prints as "total res" for drawn() in its
# result files, with REPLIES[len(query) % 5] as the reply of GPT-4 to each query.
RELEASED = {
    "acc_ny": 37.50,
    "acc_choice": 16.45,
    "acc_qa": 26.97,
    "con_score_d": 5.92,
    "con_choice_qa": 15.13,
    "con_choice_qa_wrong": 1.97,
    "con_cap_ny": 50.66,
    "con_cap_choice": 24.34,
    "con_cap_qa": 9.87,
    "con_score_c": 28.29,
}
REPLIES = ("Yes", "No", "yes, it is.", "**Yes**", "The answer is yes")


def drawn() -> list[tuple[str, list[dict[str, Any]], list[str]]]:
    """Task, four records and four responses of seeded images."""
    chance = random.Random(11)
    found = []
    for task in TASKS:
        for number in range(PER_TASK):
            image = f"images/{number}.png"
            right, place = chance.choice(WORDS), chance.randrange(4)
            others = chance.sample([word for word in WORDS if word != right], 3)
            options = [*others[:place], right, *others[place:]]
            listed = " ".join(f"{letter}. {text}" for letter, text in zip("ABCD", options, strict=True))
            side = chance.choice(("Yes", "No"))
            questions = (f"Is it {right}?", f"What is it? {listed}", "What is it?", "Describe the image.")
            references = (side, "ABCD"[place], right, "")
            records = [
                {"image": image, "question": question, "question_field": field, "answer": reference}
                for question, field, reference in zip(questions, FIELDS.values(), references, strict=True)
            ]
            said = chance.choice(options)
            letter = "ABCD"[options.index(said)]
            responses = [
                chance.choice(("Yes", "yes, it is", "No.", "no", "It is not", "I know it", " No")),
                chance.choice(
                    (letter, f"{letter}) {said}", f" {letter}. {said}", f"The answer is {letter}.")
                ),
                chance.choice((said, said.upper(), f"{said}s", f"It is {said}, I\nthink.")),
                f"The image shows {said}.\nNothing else.",
            ]
            found.append((task, records, responses))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = []
    for task in TASKS:
        of_task = [one for one in drawn() if one[0] == task]
        (tmp_path / "data" / task / "images").mkdir(parents=True)
        records = [record for _, four, _ in of_task for record in four]
        (tmp_path / "data" / task / f"output_w_caption_{task}.json").write_text(json.dumps(records))
        for number, (_, _, responses) in enumerate(of_task):
            file = tmp_path / "data" / task / "images" / f"{number}.png"
            Image.new("RGB", (8, 8), (TASKS.index(task), number, 0)).save(file)
            lines += [
                {"id": f"{task}/{number + 1}", "variant": variant, "response": response}
                for variant, response in zip(FIELDS, responses, strict=True)
            ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def judge() -> ModelScorer:
    return next(one for one in ConBench().scorers({"extraction": "strict"}) if isinstance(one, ModelScorer))


def values(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, float]:
    assert main(["score", "conbench", "answers.jsonl", "--data", "data", *words, "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    return {one["metric"]: one["value"] for one in metrics if one["subset"] == "all"}


def ask(outcome: dict[str, Any], caption: dict[str, Any]) -> str:
    case = Case(
        targets=(outcome["key"], caption["key"]),
        question="in_caption",
        probe_question=outcome["question"],
        texts=(outcome["response"], caption["response"]),
    )
    return "".join(getattr(part, "text", "") for message in judge().ask(case) for part in message.parts)


def test_every_number_is_that_of_the_released_script(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    released = ("--set", "extraction=released")
    values(capsys, *released, "--out", "unjudged")
    outcomes = [json.loads(line) for line in Path("unjudged/answers.jsonl").read_text().splitlines()]
    captions = {one["sample"]: one for one in outcomes if one["variant"] == "caption"}
    verdicts = []
    for one in outcomes:
        if one["variant"] != "caption":
            caption = captions[one["sample"]]
            query = ask(one, caption)
            case = Case((), "in_caption", "", ())  # the reply alone is read
            verdict = judge().read(case, REPLIES[len(query) % len(REPLIES)]).verdict
            verdicts.append(
                {
                    "targets": [one["key"], caption["key"]],
                    "question": "in_caption",
                    "verdict": verdict,
                    "judge": "GPT",
                }
            )
    Path("verdicts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in verdicts))
    found = values(capsys, *released, "--judge", "rules", "--judge", "human:verdicts.jsonl")
    assert {name: found[name] for name in RELEASED} == pytest.approx(RELEASED, abs=0.005)


def test_what_a_response_states_counts_unless_the_released_reader_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand: ours reads every letter, and takes 'I know it' and 'It is not' for no and for no answer."""
    kept = drawn()
    right = [
        responses[1].removeprefix("The answer is").strip(" .")[0] == records[1]["answer"]
        for _, records, responses in kept
    ]
    found = values(capsys)
    assert found["acc_choice"] == pytest.approx(100 * sum(right) / len(kept))
    assert found["acc_qa"] == pytest.approx(RELEASED["acc_qa"], abs=0.005)
    sides = {"Yes": "Yes", "yes, it is": "Yes", "No.": "No", "no": "No", "It is not": "No", " No": "No"}
    agree = [sides.get(responses[0]) == records[0]["answer"] for _, records, responses in kept]
    assert found["acc_ny"] == pytest.approx(100 * sum(agree) / len(kept))
    assert found["con_score_c"] is None


def rewrite_answers(change: dict[str, str]) -> None:
    lines = [json.loads(line) for line in Path("answers.jsonl").read_text().splitlines()]
    changed = [one | {"response": change.get(one["variant"], one["response"])} for one in lines]
    Path("answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed))


def test_a_group_with_an_undecided_answer_is_not_counted_as_whole(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Humans call every answer right, but for one image only that to `ny`."""
    words = ["score", "conbench", "answers.jsonl", "--data", "data", "--json"]
    assert main([*words, "--out", "unjudged"]) == 0
    capsys.readouterr()
    outcomes = [json.loads(line) for line in Path("unjudged/answers.jsonl").read_text().splitlines()]
    labelled = [
        {"targets": [one["key"]], "question": "correct", "verdict": "right", "judge": "Ann"}
        for one in outcomes
        if one["variant"] == "ny" or (one["variant"] != "caption" and one["sample"] != "math/1")
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in labelled))
    assert main([*words, "--judge", "human:labels.jsonl"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    found = {one["metric"]: one for one in metrics if one["subset"] == "all"}
    images = len(TASKS) * PER_TASK
    for name in ("con_score_d", "con_choice_qa"):
        assert found[name]["value"] == pytest.approx(100 * (images - 1) / images)
        assert (found[name]["value_decided"], found[name]["value_if_right"]) == (100.0, 100.0)


def test_the_letter_that_is_stated_counts_where_no_options_can_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite_answers({"choice": "The answer is B."})
    for task in TASKS:
        file = Path(f"data/{task}/output_w_caption_{task}.json")
        records = json.loads(file.read_text())
        for number, record in enumerate(records):
            if record["question_field"] == "Choices":
                texts = ("Choose: A、red B、blue", "a. red b. blue", "What is A. Smith? A. red B. blue")
                record |= {"question": texts[number % 3], "answer": "AB"[number // 4 % 2]}
        file.write_text(json.dumps(records))
    assert values(capsys)["acc_choice"] == 50.0
    assert main(["score", "conbench", "answers.jsonl", "--data", "data", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    listed = "questions list no options that can be read"
    assert any(note.startswith(f"{len(TASKS) * PER_TASK} {listed}") for note in notes)


def test_guesses_get_what_chance_gives(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every reply of yes and no, and of four letters, once: half and a quarter of them are right."""
    said = [(side, letter) for side in ("Yes", "No") for letter in "ABCD"]
    lines = [
        {"id": f"{task}/{number + 1}", "variant": variant, "response": response}
        for task in TASKS
        for number, (side, letter) in enumerate(said)
        for variant, response in zip(FIELDS, (side, letter, "?", "An image."), strict=True)
    ]
    for task in TASKS:
        file = Path(f"data/{task}/output_w_caption_{task}.json")
        records = json.loads(file.read_text())
        for record in records:
            record["answer"] = {"N/Y": "yes", "Choices": "B"}.get(record["question_field"], record["answer"])
        file.write_text(json.dumps(records))
    Path("answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = values(capsys)
    assert [found[name] for name in ("acc_ny", "acc_choice", "con_score_d")] == [50.0, 25.0, 0.0]


def test_the_prompts_are_the_released_ones(folder: Path) -> None:
    benchmark = ConBench()
    sample = next(iter(benchmark.samples(folder / "data", "test", {})))
    texts = {
        form: [
            [getattr(part, "text", "image") for part in probe.messages[0].parts]
            for probe in benchmark.probes(sample, {"image": True, "prompt": form})
        ]
        for form in ("formatted", "plain")
    }
    questions = [record["question"] for record in drawn()[0][1]]
    suffixes = (
        "",
        " Please output like letters) corresponding text.",
        "",
        " Please output only in a paragraph.",
    )
    assert texts["plain"] == [["image", question] for question in questions]
    assert texts["formatted"] == [["image", f"{a}{b}"] for a, b in zip(questions, suffixes, strict=True)]


@pytest.mark.parametrize(
    ("record", "change", "field"),
    [
        (1, {"question_field": "Q/A"}, "question_field"),
        (6, {"image": "images/other.png"}, "image"),
        (2, {"answer": None}, "answer"),
        (0, {"answer": ["yes"]}, "answer"),
    ],
)
def test_a_wrong_record_is_named_with_its_field(
    folder: Path, record: int, change: dict[str, Any], field: str
) -> None:
    file = folder / "data/math/output_w_caption_math.json"
    records = json.loads(file.read_text())
    records[record] |= change
    file.write_text(json.dumps(records))
    with pytest.raises(UserError) as raised:
        list(ConBench().samples(folder / "data", "test", {}))
    assert str(raised.value.file).endswith("output_w_caption_math.json")
    assert raised.value.field == field


def test_a_missing_task_and_a_missing_record_are_refused(folder: Path) -> None:
    file = folder / "data/math/output_w_caption_math.json"
    file.write_text(json.dumps(json.loads(file.read_text())[:-1]))
    with pytest.raises(UserError, match="four records"):
        list(ConBench().samples(folder / "data", "test", {}))
    file.unlink()
    with pytest.raises(UserError, match="math"):
        list(ConBench().samples(folder / "data", "test", {}))


def test_similarity_is_that_of_the_package_anls() -> None:
    """anls 0.0.2 at threshold 0.95."""
    assert anls("The  Bus", "the bus") == 1.0
    assert anls("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert anls("a" * 20, "b" * 19 + "a") == 0.0
