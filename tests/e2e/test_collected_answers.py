"""Files that other tools write, scored by the command: the same data give the same verdict in every form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from training.scenes.build import generate_codis

Capture = pytest.CaptureFixture[str]
Record = Mapping[str, Any]


def lines(path: Path, records: Iterable[Record]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def question(group: int, options: Sequence[str], reference: str, **more: Any) -> dict[str, Any]:
    fixed = {"group": str(group), "variant": "v", "prompt": "Which?"}
    return {**fixed, "options": list(options), "references": [reference], **more}


def score(groups: Path, answers: Path | None, *options: str) -> tuple[int, list[dict[str, Any]]]:
    out = groups.parent / "out"
    given = ["score", f"groups:{groups}", *([str(answers)] if answers else []), *options]
    fixed = ["--set", "embedder=none", "--out", str(out), "--force", "--store", str(groups.parent / "s.db")]
    status = main([*given, *fixed])
    if status not in (0, 1, 5):
        return status, []
    return status, [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]


def verdicts(groups: Path, answers: Path | None, *options: str) -> list[str]:
    return [line["verdict"] for line in score(groups, answers, *options)[1]]


def notes(groups: Path) -> str:
    return str((groups.parent / "out" / "report.md").read_text())


NUMBERS = [question(1, ["4", "3", "0.5"], "3")]


@pytest.mark.parametrize("cells", [(3, 4, 0.5), (3.0, 4.0, 0.5), ("3", "4", "0.5"), ("3.0", "4.0", "0.50")])
def test_options_that_are_numbers_are_options_in_every_kind_of_file(tmp_path: Path, cells: Any) -> None:
    groups = lines(tmp_path / "g.jsonl", NUMBERS)
    row = {"index": 1, "variant": "v", **dict(zip("ABC", cells, strict=True)), "prediction": "A"}
    (tmp_path / "a.json").write_text(json.dumps([row]))
    (tmp_path / "a.tsv").write_text("\t".join(row) + "\n" + "\t".join(map(str, row.values())) + "\n")
    listed = {"id": 1, "variant": "v", "options": list(cells), "response": "A"}
    plain = lines(tmp_path / "a.jsonl", [listed])
    for answers in (tmp_path / "a.json", tmp_path / "a.tsv", plain):
        assert verdicts(groups, answers) == ["right"], answers


@pytest.mark.parametrize(
    ("cells", "options", "chosen"),
    [
        (("Two", "", "Three"), ["Two", "None", "Three"], "C"),
        (("", "Two", "Three"), ["None", "Two", "Three"], "C"),
        (("Two", "Three", ""), ["Two", "Three", "None"], "B"),
        (("Three", "", "Two"), ["Two", "None", "Three"], "A"),
        (("", "", "Three"), ["None", "NA", "Three"], "C"),
        (("Two", "Three", "", ""), ["Two", "Three"], "B"),
    ],
)
def test_a_lost_option_cuts_no_option_after_it(
    tmp_path: Path, cells: Sequence[str], options: Sequence[str], chosen: str
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, options, "Three")])
    named = dict(zip("ABCD", cells, strict=False))
    row = {"index": "1", "variant": "v", **named, "prediction": chosen}
    (tmp_path / "a.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    nulls = {**row, **{name: cell or None for name, cell in named.items()}}
    (tmp_path / "a.json").write_text(json.dumps([nulls]))
    for answers in (tmp_path / "a.csv", tmp_path / "a.json"):
        assert verdicts(groups, answers) == ["right"]


def test_the_lost_option_itself_can_be_chosen(tmp_path: Path) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["Two", "Three", "None"], "None")])
    (tmp_path / "a.csv").write_text("index,variant,A,B,C,prediction\n1,v,Two,Three,,C\n")
    assert verdicts(groups, tmp_path / "a.csv") == ["right"]


def test_a_lost_option_that_the_data_do_not_hold_is_refused_with_its_cell(
    tmp_path: Path, capsys: Capture
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["Two", "Three"], "Three")])
    (tmp_path / "a.csv").write_text("index,variant,A,B,C,prediction\n1,v,Two,,Three,C\n")
    assert score(groups, tmp_path / "a.csv")[0] == 2
    assert "a.csv, record line 2, field B: is empty between options" in capsys.readouterr().err


def test_ids_that_a_table_made_numbers_of_are_those_of_the_data(tmp_path: Path) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(n, ["x", "y"], "x") for n in (1, 2)])
    (tmp_path / "a.csv").write_text("id,variant,response\n1.0,v,A\n2.0,v,B\n")
    assert verdicts(groups, tmp_path / "a.csv") == ["right", "wrong"]
    answers = lines(tmp_path / "a.jsonl", [{"id": n, "variant": "v", "response": "A"} for n in (1.0, 2)])
    assert verdicts(groups, answers) == ["right", "right"]


@pytest.mark.parametrize("layout", ["plain", "vlmevalkit", "lmms", "lmms-nested", "lmms-resps"])
def test_null_is_one_empty_answer_and_a_number_is_its_text(tmp_path: Path, layout: str) -> None:
    asked = [{"group": str(n), "variant": "v", "prompt": "How many?", "references": ["7"]} for n in (1, 2)]
    groups = lines(tmp_path / "g.jsonl", asked)

    def record(number: int, response: object) -> Record:
        document = {"doc_id": number, "doc": {"id": number, "variant": "v"}}
        return {
            "plain": {"id": number, "variant": "v", "response": response},
            "vlmevalkit": {"index": number, "variant": "v", "prediction": response},
            "lmms": {**document, "filtered_resps": [response], "resps": [["no"]]},
            "lmms-nested": {**document, "filtered_resps": [[response]]},
            "lmms-resps": {**document, "resps": [[response]]},
        }[layout]

    answers = lines(tmp_path / "a.jsonl", [record(1, None), record(2, 7.0)])
    status, found = score(groups, answers)
    assert status == 0
    assert [(one["status"], one["response"], one["verdict"]) for one in found] == [
        ("empty", "", "wrong"),
        ("ok", "7", "right"),
    ]


def test_repeated_answers_are_refused_and_named_or_the_first_or_the_last_counts(
    tmp_path: Path, capsys: Capture
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(n, ["x", "y"], "x") for n in (1, 2)])
    said = [("1", "A"), ("2", "A"), ("1", "B"), ("1", "B")]
    answers = lines(
        tmp_path / "a.jsonl", [{"id": name, "variant": "v", "response": text} for name, text in said]
    )
    assert score(groups, answers)[0] == 2
    message = capsys.readouterr().err
    assert "1 of 2 probes are answered twice or more: 1 (v, draw 0)" in message
    assert "--repeated first or last" in message
    assert verdicts(groups, answers, "--repeated", "first") == ["right", "right"]
    assert verdicts(groups, answers, "--repeated", "last") == ["wrong", "right"]
    assert "2 further answers of 1 probes are in the file and do not count" in notes(groups)


def test_the_user_names_columns_and_fields(tmp_path: Path, capsys: Capture) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(n, ["x", "y"], "x") for n in (1, 2)])
    (tmp_path / "a.csv").write_text("question_id,kind,text,answer\n1,v,thinking,A\n2,v,thinking,B\n")
    named = ["--columns", "id=question_id,response=answer", "--columns", "variant=kind"]
    assert verdicts(groups, tmp_path / "a.csv", *named) == ["right", "wrong"]
    record = {"question_id": 1, "kind": "v", "output": "B", "answer": "A"}
    answers = lines(tmp_path / "a.jsonl", [record, {**record, "question_id": 2}])
    assert verdicts(groups, answers, *named) == ["right", "right"]
    assert score(groups, answers, "--columns", "response=anwser")[0] == 2
    assert "has no column or field 'anwser'; did you mean 'answer'?" in capsys.readouterr().err.replace(
        ", did", "; did"
    )
    assert score(groups, answers, "--columns", "reply=answer")[0] == 2
    assert "unknown name in --columns 'reply'" in capsys.readouterr().err


def test_a_named_response_of_a_result_table_keeps_its_options(tmp_path: Path) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["x", "y"], "x")])
    (tmp_path / "a.csv").write_text("index,variant,A,B,prediction,second\n1,v,y,x,A,B\n")
    assert verdicts(groups, tmp_path / "a.csv") == ["wrong"]
    assert verdicts(groups, tmp_path / "a.csv", "--columns", "response=second") == ["right"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_with_a_byte_order_mark_and_named_without(
    tmp_path: Path, encoding: str, capsys: Capture
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["é", "y"], "é")])
    table = "id\tvariant\tresponse\n1\tv\té\n"
    record = json.dumps({"id": "1", "variant": "v", "response": "é"}, ensure_ascii=False)
    for text in (table, record):
        (tmp_path / "a.txt").write_bytes(text.encode(encoding))
        if encoding == "utf-16":
            assert verdicts(groups, tmp_path / "a.txt") == ["right"]
            continue
        assert score(groups, tmp_path / "a.txt")[0] == 2
        assert "a.txt: is UTF-16 text; expected UTF-8 text" in capsys.readouterr().err
    groups.write_bytes(groups.read_text().encode(encoding))
    assert score(groups, tmp_path / "a.txt")[0] == 2
    assert "is UTF-16 text" in capsys.readouterr().err


def test_responses_that_a_workbook_cuts_or_changes_are_noted(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    asked = [{"group": str(n), "variant": "v", "prompt": "p", "references": ["B"]} for n in range(4)]
    groups = lines(tmp_path / "g.jsonl", asked)
    book = openpyxl.Workbook()
    book.active.append(["id", "variant", "response"])
    for number, text in enumerate(["B" * 32_767, "https://b.example/B", "B_x000D_", "a_x005F_x0042_ B"]):
        book.active.append([number, "v", text])
    book.save(tmp_path / "a.xlsx")
    _, found = score(groups, tmp_path / "a.xlsx")
    assert [one["response"] for one in found[2:]] == ["B\r", "a_x0042_ B"]
    assert "1 of 4 responses have 32,767 characters" in notes(groups)
    assert "1 of 4 responses begin like a URL" in notes(groups)


@pytest.mark.parametrize("name", ["names", "judge-label"])
def test_each_metric_and_subset_is_named_once(
    tmp_path: Path, shared: Path, name: str, capsys: Capture
) -> None:
    cases = shared / "cases" / "replies-and-files"
    groups = tmp_path / "g.jsonl"
    groups.write_bytes((cases / f"{name}-groups.jsonl").read_bytes())
    votes = cases / "judge-label-votes.jsonl"
    judges = ["--judge", "rules", "--judge", f"human:{votes}"] if name == "judge-label" else []
    answers = cases / f"{name}-answers.jsonl"
    expected = {
        "names": {'"a=b"=c': 100, 'a="b=c"': 0},
        "judge-label": {'"judge"=rules': 100, '"judge"=other': 0, "judge=rules": 50},
    }[name]
    conditions = [f"acc[{subset}]<60" for subset in expected]
    options = [word for condition in conditions for word in ("--fail-if", condition)]
    assert score(groups, answers, *judges, *options)[0] == 5
    said = capsys.readouterr().err
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())["metrics"]
    places = [(one["metric"], one["subset"]) for one in metrics]
    assert len(places) == len(set(places))
    values = {one["subset"]: one["value"] for one in metrics if one["metric"] == "acc"}
    assert expected.items() <= values.items()
    for condition, value in zip(conditions, expected.values(), strict=True):
        assert (condition in said) == (value < 60)


def test_a_groups_file_with_responses_needs_no_second_file(tmp_path: Path, capsys: Capture) -> None:
    asked = [
        question(1, ["x", "y"], "x", response="(A) x"),
        question(1, ["x", "y"], "x", variant="w", response="y"),
        question(1, ["x", "y"], "x", variant="original", response="y"),
        question(2, ["x", "y"], "x", response=None),
    ]
    groups = lines(tmp_path / "g.jsonl", asked)
    status, found = score(groups, None)
    assert status == 0
    assert [(one["variant"], one["verdict"]) for one in found] == [
        ("v", "right"),
        ("w", "wrong"),
        ("v", "wrong"),
    ]
    assert "hold a response" not in notes(groups)
    assert "1 lines of variant 'original'" in notes(groups)
    plain = [{"id": name, "variant": v, "response": "A"} for name, v in (("1", "v"), ("1", "w"), ("2", "v"))]
    assert score(groups, lines(tmp_path / "a.jsonl", plain))[0] == 0
    assert "4 lines hold a response: only" in notes(groups)
    lines(groups, [*asked, question(3, ["x", "y"], "x")])
    assert score(groups, None)[0] == 2
    assert "1 of 4 answers are missing: 3 (v)" in capsys.readouterr().err
    assert score(groups, None, "--allow-missing")[0] == 1
    lines(groups, [question(3, ["x", "y"], "x")])
    assert score(groups, None)[0] == 2
    assert "no line has a response" in capsys.readouterr().err
    assert main(["score", "codis"]) == 2
    assert "no file of answers" in capsys.readouterr().err


COUNTS = ["1", "2", "10", "-3"]


@pytest.mark.parametrize(
    ("options", "response", "chosen"),
    [
        (COUNTS, "1.0", "1"),
        (COUNTS, " 10.00 ", "10"),
        (COUNTS, "-3.0", "-3"),
        (COUNTS, "2.5", "2.5"),
        (COUNTS, "4.0", "4.0"),
        (COUNTS, "It is 1.0", "It is 1.0"),
        (["1", "1.0"], "1.0", "1.0"),
        (["1", "one"], "1.0", "1.0"),
        (["3", "03"], "3.0", "3.0"),
    ],
)
def test_a_response_that_a_table_made_a_number_of_is_the_option(
    tmp_path: Path, options: Sequence[str], response: str, chosen: str
) -> None:
    """pandas writes 1.0 for 1 where one cell of the column is empty; only whole integers are such cells."""
    groups = lines(tmp_path / "g.jsonl", [question(n, options, options[0]) for n in (1, 2)])
    (tmp_path / "a.csv").write_text(f'id,variant,response\n1,v,"{response}"\n2,v,\n')
    plain = [{"id": 1, "variant": "v", "response": response}, {"id": 2, "variant": "v", "response": None}]
    for answers in (tmp_path / "a.csv", lines(tmp_path / "a.jsonl", plain)):
        _, found = score(groups, answers)
        assert found[0]["response"] == chosen
        if chosen in COUNTS:
            assert found[0]["verdict"] == ("right" if chosen == options[0] else "wrong")


def test_a_file_with_other_names_is_refused_with_the_option_that_names_them(
    tmp_path: Path, capsys: Capture
) -> None:
    one = question(1, ["x", "y"], "x")
    groups = lines(tmp_path / "g.jsonl", [one])
    several = lines(tmp_path / "several.jsonl", [one, {**one, "variant": "w"}])
    (tmp_path / "a.csv").write_text("qid,persp,ans\n1,v,A\n")
    answers = lines(tmp_path / "a.jsonl", [{"qid": 1, "persp": "v", "ans": "A"}])
    for file in (tmp_path / "a.csv", answers):
        assert score(groups, file)[0] == 2
        assert "--columns id=question_id,response=answer" in capsys.readouterr().err
        named = ["--columns", "id=qid,response=ans"]
        assert verdicts(groups, file, *named) == ["right"]  # of the only variant
        assert score(several, file, *named)[0] == 2
        assert "--columns variant=COLUMN" in capsys.readouterr().err
        assert verdicts(groups, file, *named, "--columns", "variant=persp") == ["right"]


@pytest.mark.parametrize("shared_probes", [True, False])
def test_model_selects_by_the_field_of_plain_records(
    tmp_path: Path, capsys: Capture, shared_probes: bool
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(n, ["x", "y"], "x") for n in (1, 2)])
    said = [("one", 1, "A"), ("one", 2, "A"), ("two", 1, "B"), ("two", 2, "A")]
    if not shared_probes:
        said = [said[0], said[3]]
    records = [{"id": name, "variant": "v", "response": text, "model": m} for m, name, text in said]
    (tmp_path / "a.csv").write_text(
        "id,variant,response,model\n" + "".join(f"{name},v,{text},{m}\n" for m, name, text in said)
    )
    for answers in (lines(tmp_path / "a.jsonl", records), tmp_path / "a.csv"):
        assert score(groups, answers)[0] == 2
        assert "2 models; expected --model with one of one, two" in capsys.readouterr().err
        found = [verdicts(groups, answers, "--model", m, "--only-answered") for m in ("one", "two")]
        assert found == ([["right", "right"], ["wrong", "right"]] if shared_probes else [["right"]] * 2)
    of_one = lines(tmp_path / "b.jsonl", [{**one, "model": "m"} for one in records[:2]])
    assert len(verdicts(groups, of_one, "--model", "any name")) == 2


def replayed(groups: Path, answers: Path) -> list[str]:
    """The verdicts of a run that replays the file."""
    out = groups.parent / "replayed"
    given = ["run", f"groups:{groups}", "--model", f"replay/{answers}", "--out", str(out), "--force"]
    assert main([*given, "--set", "embedder=none", "--store", str(groups.parent / "r.db")]) in (0, 1, 5)
    return [json.loads(line)["verdict"] for line in (out / "answers.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("options", "reference", "response", "verdict"),
    [
        (["4", "3", "2"], "3", 3.0, "right"),
        (["4", "3", "2"], "3", "3.0", "right"),
        (["Yes", "No"], "Yes", True, "right"),
        (["Yes", "No"], "No", True, "wrong"),
        (["no", "yes"], "no", False, "right"),
        (["Yes", "No"], "No", "FALSE", "right"),
        (["True", "False"], "False", False, "right"),
        (["red", "Yes"], "red", {"text": "red"}, "right"),
        (["x", "y"], "y", {"content": "B"}, "right"),
        (["x", "y"], "y", {"role": "assistant", "content": "B", "reasoning_content": "A?"}, "right"),
        (["x", "y"], "y", [{"type": "text", "text": "B"}], "right"),
        (["x", "y"], "y", [{"type": "reasoning", "text": "A"}, {"type": "text", "text": "B"}], "right"),
        (["x", "y"], "y", {"choices": [{"message": {"content": "B"}}]}, "right"),
        (["x", "y"], "y", {"error": "429"}, "error"),
        (["x", "y"], "y", "nan", "wrong"),
        (["x", "None"], "None", "None", "right"),
    ],
)
def test_a_response_in_any_form_is_the_same_in_score_replay_and_the_lines_of_a_groups_file(
    tmp_path: Path, options: Sequence[str], reference: str, response: Any, verdict: str
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, options, reference)])
    answers = lines(tmp_path / "a.jsonl", [{"id": 1, "variant": "v", "response": response}])
    assert verdicts(groups, answers) == [verdict]
    assert replayed(groups, answers) == [verdict]
    own = lines(tmp_path / "own.jsonl", [question(1, options, reference, response=response)])
    assert verdicts(own, None) == [verdict]


@pytest.mark.parametrize("response", [{"a": 1}, [{"type": "image_url", "image_url": {}}], [["B"]], {}])
def test_a_response_without_a_text_is_refused_with_its_line(
    tmp_path: Path, response: Any, capsys: Capture
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["x", "y"], "x")])
    answers = lines(tmp_path / "a.jsonl", [{"id": 1, "variant": "v", "response": response}])
    assert score(groups, answers)[0] == 2
    assert "a.jsonl, record line 1, field response: is not an answer" in capsys.readouterr().err
    own = lines(tmp_path / "own.jsonl", [question(1, ["x", "y"], "x", response=response)])
    assert score(own, None)[0] == 2
    assert "own.jsonl, record line 1, field response: is not an answer" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_column_that_occurs_twice_is_refused_by_name(tmp_path: Path, suffix: str, capsys: Capture) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["x", "y"], "x")])
    table = "id,variant,response,response\n1,v,A,B\n".replace(",", "," if suffix == "csv" else "\t")
    (tmp_path / f"a.{suffix}").write_text(table)
    assert score(groups, tmp_path / f"a.{suffix}")[0] == 2
    assert f"a.{suffix}, field response: occurs twice in the header" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cell", "verdict", "note"),
    [
        ("nan", "wrong", "1 of 1 responses are 'nan'"),
        ("NaN", "wrong", "read as empty answers"),
        ("<NA>", "wrong", "read as empty answers"),
        ("", "wrong", "1 of 1 responses are empty cells"),
        ("None", "right", "read as these words"),
        ("null", "miss", "1 of 1 responses are words that tools write for a missing value"),
        ("N/A", "miss", "read as these words"),
        ("True", "miss", ""),
        ("Nan", "miss", ""),
        ("B", "right", ""),
    ],
)
def test_a_cell_that_tools_write_for_a_missing_value_is_said(
    tmp_path: Path, cell: str, verdict: str, note: str
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["x", "None"], "None")])
    (tmp_path / "a.csv").write_text(f'id,variant,response\n1,v,"{cell}"\n')
    assert verdicts(groups, tmp_path / "a.csv") == [verdict]
    assert note in notes(groups)
    assert note or "responses are" not in notes(groups)


def test_true_and_false_are_noted_where_they_are_read_as_yes_and_no(tmp_path: Path) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["Yes", "No"], "Yes")])
    answers = lines(tmp_path / "a.jsonl", [{"id": 1, "variant": "v", "response": True}])
    score(groups, answers)
    assert "1 of 1 responses are true or false: they were read as the options yes and no" in notes(groups)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ('"response": NaN', "response"),
        ('"facts": {"a": {"b": [1, -Infinity]}}', "facts.a.b[1]"),
        ('"references": [NaN]', "references[0]"),
    ],
)
def test_a_number_outside_json_is_refused_with_line_and_field(
    tmp_path: Path, more: str, field: str, capsys: Capture
) -> None:
    good = question(1, ["x", "y"], "x")
    groups = lines(tmp_path / "g.jsonl", [good])
    bad = {**good, "group": "2"}
    bad.pop("references" if "references" in more else "none", None)
    groups.write_text(groups.read_text() + json.dumps(bad)[:-1] + f", {more}}}\n")
    assert score(groups, None)[0] == 2
    found = more.rpartition(" ")[2].strip("[]}")
    assert f"g.jsonl, record line 2, field {field}: is {found}, which is no number" in capsys.readouterr().err


def options(groups: Path) -> dict[str, Any]:
    return dict(json.loads((groups.parent / "out" / "metrics.json").read_text())["options"])


def test_the_options_on_the_file_are_those_of_the_result(tmp_path: Path) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(n, ["x", "y"], "x") for n in (1, 2)])
    answer = {"question": 1, "variant": "v", "response": "A"}
    answers = lines(tmp_path / "a.jsonl", [answer, {**answer, "response": "B"}])
    given = ["--repeated", "last", "--allow-missing", "--columns", "id=question"]
    assert verdicts(groups, answers, *given) == ["wrong", "error"]
    recorded = {name: options(groups).get(name) for name in ("repeated", "allow_missing", "columns")}
    assert recorded == {"repeated": "last", "allow_missing": True, "columns": {"id": "question"}}
    assert "1 further answers of 1 probes are in the file and do not count (--repeated last)" in notes(groups)
    lines(answers, [{**answer, "id": n} for n in (1, 2)])
    score(groups, answers)
    assert not {"repeated", "allow_missing", "only_answered", "columns"} & options(groups).keys()


def test_a_tag_that_no_response_holds_is_noted(tmp_path: Path, capsys: Capture) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["x", "y"], "x")])
    response = "<Summary lang='en'>B?</summary><think>B</think>A"
    answers = lines(tmp_path / "a.jsonl", [{"id": 1, "variant": "v", "response": response}])
    for tags, unseen in (("summary,think", []), ("sumary,summary", ["sumary"]), ("summ", ["summ"])):
        score(groups, answers, "--reasoning-tags", tags)
        found = json.loads((tmp_path / "out" / "metrics.json").read_text())["notes"]
        expected = [f"--reasoning-tags {name}: no response holds a tag <{name}>" for name in unseen]
        assert [note for note in found if "holds a tag" in note] == expected
    given = ["import", str(answers), "--task", "groups", "--reasoning-tags", "sumary", "--out"]
    assert main([*given, str(tmp_path / "imported.jsonl")]) == 0
    assert "no response holds a tag <sumary>" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tagged", "other", "tag"),
    [
        ("<mull>A?</mull>B", "B", "mull"),
        ("<My:Plan a='1'>\nA?\n</My:Plan>\n\nB", "B", "my:plan"),
        ("<answer>A</answer> It is round.", "B", None),
        ("<mull>A", "B", None),
        ("<b>B</b> is right.", "B", None),
        ("B <mull>A?</mull>", "B", None),
    ],
)
def test_tags_that_many_responses_begin_with_are_noted(
    tmp_path: Path, capsys: Capture, tagged: str, other: str, tag: str | None
) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(n, ["x", "y"], "x") for n in range(1, 42)])
    for number in (1, 3):  # of 41 responses: below and above 5 %
        responses = [tagged] * number + [other] * (41 - number)
        answers = lines(
            tmp_path / "a.jsonl",
            [{"id": n, "variant": "v", "response": text} for n, text in enumerate(responses, 1)],
        )
        score(groups, answers)
        metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
        found = [note for note in metrics["notes"] if "--reasoning-tags" in note]
        begins = f"{number} of 41 responses begin with <{tag}>...</{tag}>, which is read as their answer: "
        assert found == [f"{begins}if it is reasoning, add --reasoning-tags {tag}"] * (
            tag is not None and number == 3
        )
        score(groups, answers, "--reasoning-tags", tag or "plan")
        assert "responses begin with" not in notes(groups)


def test_sizes_of_images_are_those_of_the_file(tmp_path: Path) -> None:
    groups = lines(tmp_path / "g.jsonl", [question(1, ["x", "y"], "x")])
    answer = {"id": 1, "variant": "v", "response": "A", "images": ["a.png", "b.png"]}
    for sizes, kept in (([[30, 20], None], [[30, 20], None]), ([[30, 20]], None), ("large", None)):
        answers = lines(tmp_path / "a.jsonl", [{**answer, "image_sizes": sizes}])
        _, (line,) = score(groups, answers)
        assert line.get("image_sizes") == kept
    answers = lines(tmp_path / "a.jsonl", [{**answer, "image_sizes": [[30, 20], None]}])
    replayed(groups, answers)
    (line,) = map(json.loads, (tmp_path / "replayed" / "answers.jsonl").read_text().splitlines())
    assert line["image_sizes"] == [[30, 20], None]


def test_options_of_the_file_that_lack_the_reference_are_said(tmp_path: Path) -> None:
    groups = lines(
        tmp_path / "g.jsonl", [question(number, ["3", "4", "5"], str(number)) for number in (3, 5)]
    )
    given = [{"group": str(n), "variant": "v", "options": ["3", "4", "6"], "response": "A"} for n in (3, 5)]
    assert verdicts(groups, lines(tmp_path / "a.jsonl", given)) == ["right", "unscored"]
    assert "1 answers are not scored: the options that their file gives lack the reference: 5" in notes(
        groups
    )
    assert "humans judged" not in notes(groups)


def test_collected_answers_are_a_run_that_reports_what_score_printed_and_no_answers_of_the_model(
    tmp_path: Path, capsys: Capture
) -> None:
    """Answers of a file keep their keys, and never stand in for those of the model behind these keys."""
    data = generate_codis(tmp_path / "codis", pairs=12)
    common = ["--data", str(data), "--store", str(tmp_path / "s.db"), "--quiet", "--json"]
    for setting in ("default", "no-context"):
        words = ["run", f"codis:{setting}", "--model", "baseline/chance", "--out", str(tmp_path / setting)]
        assert main([*words, *common]) == 0
    asked = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "\n}")
    file = tmp_path / "default" / "answers.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    records[0] |= {"response": records[0]["references"][0]}
    records[1] |= {"response": "", "status": "error", "error": "content filter", "verdict": "error"}
    records[2] |= {"response": "", "status": "not_sent", "error": "not sent", "verdict": "unscored"}
    file = lines(tmp_path / "edited.jsonl", records)
    without = f"no-context={tmp_path / 'no-context' / 'answers.jsonl'}"
    scored = ["score", "codis", str(file), "--with", without, "--name", "collected", *common]
    for _ in range(2):  # the name moves to the second run of the same evaluation
        assert main([*scored, "--out", str(tmp_path / "scored")]) == 1
        printed = capsys.readouterr()
        metrics = json.loads(printed.out)
        assert main(["report", "collected", "--store", str(tmp_path / "s.db"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == metrics
    assert "the name 'collected' moved from run 3" in printed.err
    assert main(["store", "verify", "--store", str(tmp_path / "s.db")]) == 0
    assert main(["runs", "show", "collected", "--store", str(tmp_path / "s.db"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert shown["answers"]["probes"] == {"ok": 22, "empty": 0, "error": 1, "not_sent": 1}
    assert main(["run", "codis", "--model", "baseline/chance", *common]) == 0
    again = capsys.readouterr()
    assert "sent 0, cached 24" in again.err
    assert json.loads(again.out)["metrics"][:2] == asked["metrics"][:2]


def test_a_group_that_is_answered_in_part_is_named_then_counts_as_far_as_its_answers_go(
    tmp_path: Path, capsys: Capture
) -> None:
    asked = [question(n, ["x", "y"], "x", variant=variant) for n in (1, 2, 3) for variant in "vw"]
    groups = lines(tmp_path / "g.jsonl", asked)
    given = [{"id": name, "variant": v, "response": "A"} for name, v in (("1", "v"), ("1", "w"), ("2", "v"))]
    answers = lines(tmp_path / "a.jsonl", given)
    assert score(groups, answers)[0] == 2
    assert "3 of 6 answers are missing: 2 (w), 3 (v), 3 (w); expected" in (said := capsys.readouterr().err)
    assert "--only-answered" in said
    assert score(groups, answers, "--only-answered")[0] == 2
    assert "1 of 4 answers are missing: 2 (w); expected" in (said := capsys.readouterr().err)
    assert "--only-answered" not in said
    assert "--allow-missing" in said

    options = ("--only-answered", "--allow-missing", "--store", str(tmp_path / "s.db"))
    assert main(["score", f"groups:{groups}", str(answers), *options]) == 1
    printed = capsys.readouterr()
    # Three right answers of four probes; one pair of two, whose answers are the same.
    assert [line.split()[:3] for line in printed.out.splitlines() if line.startswith(("acc", "con"))] == [
        ["acc", "75.0", "4"],
        ["con", "100.0", "1"],
    ]
    text = " ".join(printed.out.split())
    assert "2 samples, 4 probes: 1 error; judged" in text
    assert "1 of 4 probes has no answer: counted as not right" in text
    assert "1 of 2 pairs are not compared: an answer is missing or empty" in text
    assert "only 2 of 3 samples count: the file has no answer to the others" in text
    assert "1 of 4 probes has no answer:" in printed.err


def test_of_questions_with_options_one_note_says_which_metrics_compare_texts(
    tmp_path: Path, capsys: Capture
) -> None:
    asked = [question(n, ["x", "y"], "x", variant=variant, response="A") for n in (1, 2) for variant in "vw"]
    groups = lines(tmp_path / "g.jsonl", asked)
    assert main(["score", f"groups:{groups}", "--store", str(tmp_path / "s.db")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "s_gt, s_c: no value, no free answers to compare" in text
    assert text.count("no free answers") == text.count("s_gt") == 1
