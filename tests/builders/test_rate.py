"""Rating: what is drawn is shared and shows no model's name, and what people say comes back as verdicts."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.builders.rate import (
    Unit,
    draw_units,
    review_columns,
    shared_instances,
    verdicts_of,
    wrong_answers,
)
from sightline.builders.review_lists import Mark
from sightline.builders.synthetic import generate_contextual
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.formats.jsonl import read_outcomes
from sightline.formats.verdicts import read_verdicts
from sightline.types import Outcome, Usage, VerdictName

Capture = pytest.CaptureFixture[str]
MODELS = ("gpt-4v", "llava")


def answer(model: str, group: str, response: str = "said", **more: object) -> Outcome:
    fields: dict[str, object] = {
        "sample": group,
        "variant": "v",
        "draw": 0,
        "key": f"{model} {group}",
        "labels": {"category": "web" if int(group) % 4 else "time"},
        "response": response,
        "status": "ok",
        "finish_reason": "",
        "usage": Usage(),
        "verdict": "wrong",
        "references": ("right",),
        "question": f"Question {group}?",
        **more,
    }
    return Outcome(**fields)  # type: ignore[arg-type]


def run(model: str, groups: Sequence[int], **more: object) -> list[Outcome]:
    return [answer(model, str(group), f"{model} says {group}", **more) for group in groups]


def test_an_instance_is_shared_if_every_run_answered_all_of_it_and_it_has_a_reference() -> None:
    first = [*run("a", range(4)), answer("a", "4", references=()), answer("a", "5", variant="w")]
    first.append(answer("a", "5", status="error"))
    second = [*run("b", [2, 0, 4, 5]), answer("b", "3", "", status="empty"), answer("b", "9")]
    units = shared_instances([first, second])
    assert [[one.key for one in unit] for unit in units] == [["a 0", "b 0"], ["a 2", "b 2"], ["a 3", "b 3"]]
    with pytest.raises(UserError, match="no instance has an answer of each of the 2 runs"):
        shared_instances([first, run("b", [77])])


def test_an_instance_with_different_probes_in_two_runs_is_not_shared() -> None:
    first = [*run("a", range(3)), *run("a", [0, 1], variant="w")]
    second = [*run("b", [0, 2]), *run("b", [0, 1], variant="w"), answer("b", "1", variant="x")]
    assert {unit[0].sample for unit in shared_instances([first, second])} == {"0", "2"}


def test_wrong_answers_exclude_right_and_missing_ones() -> None:
    said: list[VerdictName] = ["right", "wrong", "miss", "refused", "error", "undecided", "unscored"]
    given = [answer("a", str(number), verdict=verdict) for number, verdict in enumerate(said)]
    assert [unit[0].verdict for unit in wrong_answers(given)] == ["wrong", "miss", "refused"]
    with pytest.raises(UserError, match="no answer is wrong"):
        wrong_answers(given[:1])


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 3))
def test_a_sample_has_distinct_units_in_order_and_in_proportion_to_a_label(
    size: int, count: int, seed: int
) -> None:
    units: list[Unit] = [(one,) for one in run("a", range(size))]
    for label in (None, "category"):
        drawn = draw_units(units, count, seed, label)
        assert drawn == draw_units(units, count, seed, label)
        places = [units.index(unit) for unit in drawn]
        assert places == sorted(set(places))
        assert len(drawn) == min(count, size)
    whole, part = (Counter(unit[0].labels["category"] for unit in of) for of in (units, drawn))
    assert all(abs(part[name] - len(drawn) * whole[name] / size) < 1 for name in whole)


def test_another_seed_samples_other_units_in_another_order() -> None:
    units = [(one,) for one in run("a", range(50))]
    assert draw_units(units, 10, 0) != draw_units(units, 10, 1)
    one, other = (list(review_columns(units, {}, seed)) for seed in (0, 1))
    assert one != other
    assert sorted(one) == sorted(other)


@pytest.mark.parametrize(
    ("count", "label", "said"), [(0, None, "draws nothing"), (1, "domain", "unknown label")]
)
def test_an_impossible_sample_is_refused(count: int, label: str | None, said: str) -> None:
    with pytest.raises(UserError, match=said):
        draw_units([(answer("a", "1"),)], count, 0, label)


def test_a_mark_on_a_changed_answer_is_refused() -> None:
    before, after = answer("a", "1", "It is red."), answer("a", "1", "It is blue.")
    (key,) = review_columns([(before,)], {}, 0)
    marks = {key: [Mark(True, "ann")]}
    assert [one.targets for one in verdicts_of([[before]], marks)] == [("a 1",)]
    with pytest.raises(UserError, match="1 of 1 marked answers are not among the answers of these runs"):
        verdicts_of([[after]], marks)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results folders of two models that answered 24 instances, and the data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)
    data = generate_contextual(tmp_path / "data", questions=6, val=24)
    with (data / "contextual_val.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    for model in MODELS:
        said = [
            row["response"] if model == "gpt-4v" else "I'm sorry, I cannot read the sign." for row in table
        ]
        lines = [{"id": row["image_url"], "response": text} for row, text in zip(table, said, strict=True)]
        Path(f"{model}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = ["score", "contextual", f"{model}.jsonl", "--data", str(data), "--split", "val"]
        assert main([*words, "--model", model, "--out", f"results/{model}", "--quiet"]) == 0
    return data


RUNS = [f"results/{model}" for model in MODELS]


def rate(*words: str) -> int:
    return main(["build", "rate", *RUNS, *words])


def rows(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def marked(by: str, errors: str = "hallucination", **changed: str) -> str:
    """A person's copy of list.csv: what a model said wrongly is marked as wrong."""
    lines = rows("list.csv")
    for line in lines:
        wrongly = line["response"] != line["reference"]
        line.update(mark="wrong" if wrongly else "right", by=by, errors=errors if wrongly else "")
        line.update(changed)
    with Path(f"{by}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return f"{by}.csv"


def test_a_list_has_all_information_for_raters_and_no_model_name(runs: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert rate("--data", str(runs), "--count", "10", "--by", "category", "--write", "list.csv") == 0
    assert "20 answers to 10 instances" in capsys.readouterr().err
    lines = rows("list.csv")
    assert list(lines[0]) == [
        *("mark", "by", "remark", "key", "errors", "image", "asked", "reference", "response"),
    ]
    assert all(Path(line["image"]).is_file() for line in lines)
    assert set(Counter(line["image"] for line in lines).values()) == {2}
    text = Path("list.csv").read_text()
    keys = [one.key for name in RUNS for one in read_outcomes(Path(name) / "answers.jsonl")]
    assert not any(name in text for name in (*MODELS, *keys))


def test_a_missing_image_has_no_path(runs: Path) -> None:
    for image in (runs / "images").rglob("*.png"):
        image.unlink()
    assert rate("--data", str(runs), "--count", "10", "--write", "list.csv") == 0
    with (runs / "contextual_val.csv").open(newline="") as file:
        names = {row["image_url"] for row in csv.DictReader(file)}
    assert {line["image"] for line in rows("list.csv")} <= names


def test_marks_of_three_humans_become_the_verdicts_of_a_judge_report(runs: Path, capsys: Capture) -> None:
    assert rate("--count", "10", "--seed", "3", "--write", "list.csv") == 0
    copies = [marked("ann"), marked("ben", "Hallucination; not  grounded"), marked("cleo", "not grounded")]
    humans = [word for copy in copies for word in ("--human", copy)]
    assert rate(*humans, "--out", "human.jsonl") == 0
    found = read_verdicts(Path("human.jsonl"))
    assert len(found) == 10 * len(MODELS) * 3
    assert {(one.judge, one.kind, one.question) for one in found} == {
        (name, "human", "correct") for name in ("ann", "ben", "cleo")
    }
    assert next(one.labels for one in found if one.judge == "ben" and one.labels) == (
        *("hallucination", "not grounded"),
    )
    capsys.readouterr()
    assert main(["judge-report", *RUNS, "--human", "human.jsonl", "--json"]) == 0
    tables = {table["title"]: table["rows"] for table in json.loads(capsys.readouterr().out)}
    accepted = tables["Answers that humans accept, by responder"]
    assert [(row["responder"], row["value"], row["n"]) for row in accepted] == [
        *(("gpt-4v", 100.0, 10), ("llava", 0.0, 10)),
    ]
    errors = tables["Errors that humans name, by responder"]
    assert {(row["responder"], row["error"], row["value"], row["n"]) for row in errors} == {
        *(("llava", "hallucination", 100.0, 10), ("llava", "not grounded", 100.0, 10)),
    }


def test_a_run_is_scored_by_the_humans_who_rated_it(runs: Path, capsys: Capture) -> None:
    assert rate("--write", "list.csv") == 0
    assert rate("--human", marked("ann"), "--out", "human.jsonl") == 0
    words = ["score", "contextual", "results/llava/answers.jsonl", "--data", str(runs), "--split", "val"]
    assert main([*words, "--judge", "human:human.jsonl", "--out", "again", "--quiet"]) == 0
    result = json.loads(Path("again/metrics.json").read_text())
    assert (result["metrics"][0]["value"], result["undecided"]) == (0, 0)


def test_wrong_answers_are_sampled_from_each_run(runs: Path, capsys: Capture) -> None:
    capsys.readouterr()
    words = ["build", "rate", "results/llava", "--wrong", "--count", "7", "--write", "list.csv"]
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "7 answers that are wrong" in said
    assert "incorrect reasoning" in said
    assert main([*words[:2], "results/gpt-4v", *words[3:-1], "none.csv"]) == 2
    assert "no answer is wrong" in capsys.readouterr().err
    assert not Path("none.csv").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"errors": "halucination"}, "did you mean 'hallucination'"),
        ({"mark": "", "errors": "hallucination"}, "names an error of an unmarked item"),
        ({"mark": "good"}, "is not a mark"),
        ({"mark": "", "errors": ""}, "no answer is marked"),
    ],
)
def test_an_invalid_list_is_refused_and_nothing_is_written(
    runs: Path, capsys: Capture, changed: dict[str, str], said: str
) -> None:
    assert rate("--write", "list.csv") == 0
    capsys.readouterr()
    assert rate("--human", marked("ann", **changed), "--out", "human.jsonl") == 2
    assert said in capsys.readouterr().err
    assert not Path("human.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "either --write or --human is needed"),
        (("--write", "a.csv", "--out", "b.jsonl"), "--human and --out need each other"),
        (("--human", "a.csv"), "--human and --out need each other"),
    ],
)
def test_an_incomplete_command_is_refused(
    runs: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    assert rate(*words) == 2
    assert said in capsys.readouterr().err


def test_runs_of_several_splits_are_refused(runs: Path, capsys: Capture) -> None:
    told = json.loads(Path("results/llava/metrics.json").read_text())
    told["options"]["split"] = "test"
    Path("results/llava/metrics.json").write_text(json.dumps(told))
    capsys.readouterr()
    assert rate("--write", "list.csv") == 2
    assert "the runs are of several splits (found 'val, test')" in capsys.readouterr().err


def test_images_are_found_for_the_answers_of_every_run(runs: Path) -> None:
    """The first run left out the eight instances that few-shot settings show."""
    Path("held").mkdir()
    told = json.loads(Path("results/llava/metrics.json").read_text())
    Path("held/metrics.json").write_text(
        json.dumps({**told, "options": {**told["options"], "held_out": True}})
    )
    answers = Path("results/llava/answers.jsonl").read_text().splitlines(keepends=True)
    Path("held/answers.jsonl").write_text(answers[0])
    words = ["build", "rate", "held", "results/llava", "--wrong", "--data", str(runs), "--write", "list.csv"]
    assert main(words) == 0
    lines = rows("list.csv")
    assert len({line["image"] for line in lines}) == 24
    assert all(Path(line["image"]).is_file() for line in lines)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file, told: file.unlink(), "no run names its data"),
        (
            lambda file, told: file.write_text(json.dumps({**told, "options": {}})),
            "metrics.json, field options.split: does not name the split of its answers",
        ),
    ],
)
def test_only_explicit_data_must_match_the_runs(
    runs: Path,
    change: Callable[[Path, dict[str, object]], object],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    for name in RUNS:
        file = Path(name, "metrics.json")
        change(file, json.loads(file.read_text()))
    capsys.readouterr()
    assert rate("--data", str(runs), "--write", "list.csv") == 2
    assert said in capsys.readouterr().err
    assert not Path("list.csv").exists()
    monkeypatch.setenv("SIGHTLINE_DATA", str(runs))
    assert rate("--write", "list.csv") == 0
    assert "no paths of images by SIGHTLINE_DATA: " in (told := capsys.readouterr().err)
    assert said in told
    assert {line["image"] for line in rows("list.csv")} == {f"images/val-{n:03}.png" for n in range(1, 25)}


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (("--write", "results/llava/answers.jsonl"), "results/llava/answers.jsonl"),
        (("--human", "ann.csv", "--out", "ann.csv"), "ann.csv"),
        (("--human", "ann.csv", "--out", "results/llava/answers.jsonl"), "results/llava/answers.jsonl"),
    ],
)
def test_answers_and_marks_are_not_replaced(
    runs: Path, capsys: Capture, words: tuple[str, ...], read: str
) -> None:
    assert rate("--write", "list.csv") == 0
    marked("ann")
    before = Path(read).read_bytes()
    capsys.readouterr()
    assert rate(*words, "--force") == 2
    assert f"{read}: is an input of this command and would be replaced" in capsys.readouterr().err
    assert Path(read).read_bytes() == before


def test_two_equal_marks_of_one_rater_count_once(runs: Path, capsys: Capture) -> None:
    assert rate("--count", "2", "--write", "list.csv") == 0
    again = Path(marked("Ann")).rename("again.csv")
    ann = marked("ann")
    assert rate("--human", str(again), "--human", ann, "--out", "human.jsonl") == 0
    assert [one.judge for one in read_verdicts(Path("human.jsonl"))] == 4 * ["Ann"]
    against = marked("ANN", mark="wrong")
    capsys.readouterr()
    assert rate("--human", ann, "--human", against, "--out", "other.jsonl") == 2
    assert "'ann' has marked one item with both marks" in capsys.readouterr().err
