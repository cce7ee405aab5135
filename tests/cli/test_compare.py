"""`sightline compare` and `--fail-if` as a user meets them: tables, tests, exit statuses, wrong words."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.cli.main import main
from sightline.metrics.significance import holm
from sightline.models.offline import OfflineModel
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request
from training.scenes.build import generate_codis, generate_contextual

Capture = pytest.CaptureFixture[str]
PAIRS = 40


class Runs:
    """Runs of 40 drawn pairs: 1 answers all rightly, 2 has one pair wrong, 3 has 12, 4 is run 1 of fewer."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, generate_codis(folder / "codis", pairs=PAIRS)
        self.store = ["--store", str(folder / "s.db")]
        for wrong in (0, 1, 12):
            self.run(self.answers(wrong), "--out", str(folder / f"wrong-{wrong}"))
        self.run(self.answers(0), "--limit", "1")

    def answers(self, wrong: int) -> str:
        """A file of right answers, but the first pairs answer as in the other context."""
        file = self.folder / f"answers-{wrong}.jsonl"
        lines = []
        for number, record in enumerate(json.loads((self.data / "data.json").read_text())):
            for place in ("1", "2"):
                other = {"1": "2", "2": "1"}[place] if number < wrong else place
                response = record["answer"][f"answer_{other}"]
                line = {"id": record["id"], "variant": f"context_{place}", "response": response}
                lines.append(json.dumps(line) + "\n")
        file.write_text("".join(lines))
        return str(file)

    def run(self, answers: str, *more: str) -> int:
        words = ["run", "codis", "--model", f"replay/{answers}", "--data", str(self.data), "--quiet"]
        return main([*words, *self.store, *more])

    def compare(self, *words: str) -> int:
        return main(["compare", *words, *self.store])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Made once."""
    return Runs(tmp_path_factory.mktemp("runs"))


def _tables(capsys: Capture) -> list[dict[str, Any]]:
    """The tables of differences and tests; the last three are about answers."""
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return tables[:-3]


def _answers(capsys: Capture) -> list[dict[str, Any]]:
    """The tables of changed answers, of the sides, and of all answers."""
    tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return tables[-3:]


def _rows(table: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["metric"], row["subset"]): row for row in table["rows"]}


def test_a_table_says_which_differences_are_significant_and_what_decides(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "3", "--json") == 0
    (table,) = _tables(capsys)
    row = _rows(table)["acc_p", "all"]
    assert row["difference value"] == pytest.approx(-100 * 12 / PAIRS)
    assert 0 < row["holm"] <= 0.05
    assert "with Holm's correction for the 2 rows of this table" in " ".join(table["notes"])
    assert runs.compare("1", "2", "--json") == 0
    (table,) = _tables(capsys)
    # One pair of one image: it might as well have gone the other way.
    assert _rows(table)["acc_p", "all"]["holm"] == 1


def test_a_sentence_first_says_who_is_ahead_or_what_could_have_been_seen(runs: Runs, capsys: Capture) -> None:
    for words in (("1", "3"), ("3", "1")):
        assert runs.compare(*words) == 0
        out = capsys.readouterr().out
        shown = " ".join(out.split())
        sentence = "codis:default run 1 is ahead of run 3 by 30.0 points of acc_p (40 groups). Right in run "
        assert shown.startswith(sentence)
        changed = {
            ("1", "3"): "Right in run 3 only: 0 of 80 answers and 0 of 40 groups; in run 1 only: 24 and 12",
            ("3", "1"): "Right in run 1 only: 24 of 80 answers and 12 of 40 groups; in run 3 only: 0 and 0",
        }
        assert changed[words] in shown
        assert len(out.splitlines()) <= 25
    assert runs.compare("1", "2", "--tests", "--json") == 0
    table, tests = _tables(capsys)
    seen = _rows(tests)["acc_p", "all"]["detectable value"]
    sentence = "No difference of acc_p is shown between run 1 and run 2; 40 groups detect "
    sentence += f"{seen:.1f} points with a power of 80 %"
    assert table["lead"] == sentence
    assert runs.compare("1", "2", "--format", "markdown") == 0
    assert capsys.readouterr().out.splitlines()[2] == sentence


def test_several_runs_are_rows_whose_p_values_are_corrected_together(runs: Runs, capsys: Capture) -> None:
    pairs = []
    for other in ("2", "3"):
        assert runs.compare("1", other, "--tests", "--json") == 0
        table, tests = _tables(capsys)
        pairs += [
            (one["metric"], one["second value"], one["difference low"], plain["p"])
            for one, plain in zip(table["rows"], tests["rows"], strict=True)
        ]
    assert runs.compare("1", "2", "3", "--json") == 0
    (table,) = json.loads(capsys.readouterr().out)
    rows = sorted(table["rows"], key=lambda one: one["second run"])
    assert [(one["metric"], one["second value"], one["difference low"]) for one in rows] == [
        one[:3] for one in pairs
    ]
    assert [one["holm"] for one in rows] == holm([p for *_, p in pairs])
    assert runs.compare("1", "2", "3", "--fail-if", "acc_p: worse") == 5
    assert "--fail-if run 3: acc_p" in capsys.readouterr().err
    assert runs.compare("1", "2", "3", "--margin", "2") == 2
    assert "--margin shows one comparison" in capsys.readouterr().err


def test_all_tests_stand_in_a_second_table(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "3", "--metric", "acc_p", "--by", "category", "--tests", "--json") == 0
    short, full = _tables(capsys)
    whole = _rows(full)["acc_p", "all"]
    # 12 pairs lost and none won, every pair for itself: 2 of 2 ** 12.
    assert whole["mcnemar"] == pytest.approx(2 / 2**12)
    assert whole["t"] < 0.001
    assert 5 < whole["detectable value"] < 30
    assert [row["holm"] for row in short["rows"]] == [row["holm"] for row in full["rows"]]
    assert all(row["p"] <= row["benjamini_hochberg"] <= row["holm"] for row in full["rows"])
    assert any("take groups as independent" in note for note in full["notes"])
    assert len(full["rows"]) > 3


def test_a_margin_adds_both_verdicts_and_the_rule(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "3", "--margin", "40", "--metric", "acc_p", "--json") == 0
    table, within = _tables(capsys)
    row = _rows(within)["acc_p", "all"]
    assert (row["non_inferior"], row["equivalent"]) == (
        "yes" if _rows(table)["acc_p", "all"]["difference low"] > -40 else "no",
        "yes" if row["difference_90 low"] > -40 and row["difference_90 high"] < 40 else "no",
    )
    assert "two one-sided tests at 5 %" in " ".join(within["notes"])
    assert runs.compare("1", "3", "--margin", "1", "--fail-if", "acc_p: not-non-inferior") == 5
    assert "acc_p is not shown to be non-inferior" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rule", "pair", "state", "status"),
    [
        ('test = "not-worse"', ("1", "3"), "not met", 5),
        ('test = "not-worse"', ("1", "2"), "met", 0),
        ('test = "better"', ("3", "1"), "met", 0),
        ('test = "better"', ("1", "2"), "not decided", 1),
        ("margin = 50", ("1", "3"), "met", 0),
        ("margin = 30", ("1", "3"), "not decided", 1),
        ("margin = 5", ("1", "3"), "not met", 5),
        ('margin = 50\ntest = "equivalent"', ("3", "1"), "met", 0),
        ('margin = 5\ntest = "equivalent"', ("3", "1"), "not met", 5),
    ],
)
def test_a_rule_of_a_policy_decides_about_a_difference(
    runs: Runs, tmp_path: Path, capsys: Capture, rule: str, pair: tuple[str, str], state: str, status: int
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(f"[codis.acc_p]\n{rule}\n")
    assert runs.compare(*pair, "--policy", str(file), "--json") == status
    (table, *_) = _tables(capsys)
    assert [row["state"] for row in table["rows"]] == [state]
    assert main(["report", "1", "--policy", str(file), *runs.store]) == 2
    assert "no rule with min or max" in capsys.readouterr().err


def test_a_missing_answer_leaves_a_rule_open_that_would_be_met(
    runs: Runs, tmp_path: Path, capsys: Capture
) -> None:
    few, file = tmp_path / "few.jsonl", tmp_path / "policy.toml"
    few.write_text("\n".join(Path(runs.answers(0)).read_text().splitlines()[:-1]))
    assert runs.run(str(few), "--out", str(tmp_path / "few")) == 1
    file.write_text("[codis.acc_p]\nmin = 60\nmargin = 50\n")
    capsys.readouterr()
    for command in (["report"], ["compare", str(runs.folder / "wrong-0")]):
        assert main([*command, str(tmp_path / "few"), "--policy", str(file), "--json"]) == 1
        table = json.loads(capsys.readouterr().out)[0]
        (row,) = table["rows"]
        assert (row["state"], row["why"]) == ("not decided", "1 answer of its groups missing")


class First(OfflineModel):
    """A judge that prefers the answer that it sees first."""

    name = identity = "first"
    host = "tests"
    said = "[[A]]"

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for place, _ in enumerate(requests):
            yield place, Answer(self.said)


def test_a_judge_compares_the_answers_that_differ_and_goes_on_where_it_stopped(
    runs: Runs, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.replicas.fleet.resolve", lambda *_: [First()])
    folders = [str(runs.folder / f"wrong-{wrong}") for wrong in (0, 12)]
    judging = [
        "compare",
        *folders,
        "--judge",
        "baseline/chance",
        "--store",
        str(tmp_path / "s.db"),
        "--quiet",
    ]
    assert main([*judging, "--dry-run"]) == 0
    (estimate,) = capsys.readouterr().out.splitlines()
    assert estimate.startswith("judge baseline/chance: 48 requests, 0 cached, 48 to ask (at most 144)")
    assert main([*judging, "--max-requests", "10"]) == 4
    assert "judging stopped at the budget" in capsys.readouterr().err
    # No number of the comparison depends on the judge: what is not met is said at any budget.
    (tmp_path / "policy.toml").write_text("[codis.acc_p]\nmargin = 1\n")
    for rule in (["--policy", str(tmp_path / "policy.toml")], ["--fail-if", "worse"]):
        assert main([*judging, "--max-requests", "1", *rule]) == 5
    capsys.readouterr()
    assert main([*judging, "--json"]) == 0
    table, pairs, *_ = json.loads(capsys.readouterr().out)
    (row,) = table["rows"]
    # 24 of 80 answers differ; of the others, no judge is asked.
    assert (row["order_dependent"], row["tie"], row["win"] + row["loss"]) == (24, 2 * PAIRS - 24, 0)
    assert (row["win_rate value"], row["holm"], len(pairs["rows"])) == (50, 1, 2 * PAIRS)
    for more in (["--dry-run"], ["--judge-gen", "top_p=1"]):
        assert main(["compare", *folders, *more]) == 2
        assert f"{more[0]} needs a judge" in capsys.readouterr().err


def test_a_judge_without_a_verdict_shows_no_preference_and_exits_with_status_1(
    runs: Runs, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = First()
    judge.said = "I cannot say."
    monkeypatch.setattr("sightline.replicas.fleet.resolve", lambda *_: [judge])
    folders = [str(runs.folder / f"wrong-{wrong}") for wrong in (0, 12)]
    judging = ["compare", *folders, "--judge", "baseline/chance", "--store", str(tmp_path / "s.db")]
    for more, status in ((["--max-requests", "10"], 4), ([], 1)):
        assert main([*judging, "--quiet", *more]) == status
        shown = capsys.readouterr().out
        assert "24 of 24 different pairs have no verdict" in shown
        assert "No preference" not in shown


@pytest.mark.parametrize("margin", ["0", "-1", "nan", "inf", "two"])
def test_a_margin_is_a_number_above_0(runs: Runs, capsys: Capture, margin: str) -> None:
    assert runs.compare("1", "3", f"--margin={margin}") == 2
    assert "is not a number of percentage points above 0" in capsys.readouterr().err


def test_differences_in_judges_and_options_are_reported(runs: Runs, capsys: Capture) -> None:
    verdicts = (runs.folder / "wrong-1/verdicts.jsonl").read_text()
    humans = runs.folder / "human.jsonl"
    humans.write_text(verdicts.replace('"judge":"rules"', '"judge":"ann"'))
    assert runs.run(runs.answers(1), "--judge", f"human:{humans}", "--seed", "1") == 0
    capsys.readouterr()
    assert main(["runs", "list", "--json", *runs.store]) == 0
    last = max(run["run"] for run in json.loads(capsys.readouterr().out))
    assert runs.compare("2", str(last), "--json") == 0
    ((_, told, *_),) = [table["notes"] for table in _tables(capsys)]
    assert told == f"these runs also differ in: judge rules, then human:{humans}; seed 0, then 1"
    assert runs.compare("1", "2", "--json") == 0
    (notes,) = [table["notes"] for table in _tables(capsys)]
    assert not any(note.startswith("these runs also differ") for note in notes), (
        "other answers are what is compared"
    )


def test_a_refused_run_is_not_stored(runs: Runs, capsys: Capture) -> None:
    """A replayed file is read when the first answer is wanted, and a server is looked for no earlier."""
    bad = runs.folder / "bad.jsonl"
    bad.write_text('{"foo": 1}\n')
    assert main(["runs", "list", "--json", *runs.store]) == 0
    before = capsys.readouterr().out
    assert runs.run(str(bad)) == 2
    assert "the format is unknown" in capsys.readouterr().err
    assert main(["runs", "list", "--json", *runs.store]) == 0
    assert capsys.readouterr().out == before


def test_no_two_runs_with_other_options_are_one_line_of_the_list(tmp_path: Path, capsys: Capture) -> None:
    generate_contextual(tmp_path, questions=2, val=2)
    store = ["--store", str(tmp_path / "s.db")]
    asked = (
        "split=test",
        "split=val",
        "split=val text_metrics=rouge_l",
        "split=val first=instruction",
        "split=val seed=3",
        "split=val limit=1 repeats=2",
    )
    for chosen in asked:
        call = ["run", "contextual", "--model", "baseline/chance", "--data", str(tmp_path), "--quiet"]
        for word in chosen.split():
            own = word.startswith(("text_metrics", "first"))
            call += ["--set", word] if own else f"--{word}".split("=")
        assert main([*call, *store]) == 0
    capsys.readouterr()
    assert main(["runs", "list", "--format", "csv", *store]) == 0
    listed = csv.DictReader(capsys.readouterr().out.splitlines())
    lines = [run["options"].split(", ") for run in listed]
    assert len(set(map(tuple, lines))) == len(asked)
    for told, chosen in zip(lines, asked, strict=True):
        assert set(chosen.split()) <= set(told)


def test_an_unfinished_run_is_not_compared_and_is_reported_as_such(runs: Runs, capsys: Capture) -> None:
    store = Store.open(runs.store[1], create=False)
    body, _ = store.runs.get(1)
    begun = str(store.runs.start(body))
    store.runs.add_probes(int(begun), list(enumerate(store.runs.probes(1)))[:2])
    for pair in (["1", begun], [begun, "1"]):
        assert runs.compare(*pair, "--fail-if", "worse") == 2
        assert f"run {begun} is not finished" in capsys.readouterr().err
    assert main(["report", begun, "--json", *runs.store]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(f"run {begun} is not finished" in note for note in notes)
    store.runs.drop(int(begun))
    store.close()


def test_probes_without_an_answer_are_reported_under_the_table(runs: Runs, capsys: Capture) -> None:
    few = runs.folder / "few.jsonl"
    few.write_text("\n".join(Path(runs.answers(0)).read_text().splitlines()[:-3]))
    assert runs.run(str(few)) == 1
    capsys.readouterr()
    assert main(["runs", "list", "--json", *runs.store]) == 0
    last = max(run["run"] for run in json.loads(capsys.readouterr().out))
    assert runs.compare("1", str(last), "--json") == 0
    (table,) = _tables(capsys)
    told = [note for note in table["notes"] if note.startswith(f"run {last}: of 80 probes 3 (3.8 %)")]
    assert len(told) == 1


def test_runs_and_results_folders_are_compared_in_any_mixture(
    runs: Runs, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [str(runs.folder / f"wrong-{wrong}") for wrong in (0, 12)]
    found = []
    for pair in (("1", "3"), (folders[0], "3"), ("1", folders[1])):
        assert runs.compare(*pair, "--json") == 0
        found.append(_tables(capsys)[0]["rows"])
    monkeypatch.chdir(tmp_path)  # folders need no store
    assert main(["compare", *folders, "--json"]) == 0
    found.append(_tables(capsys)[0]["rows"])
    assert found[0][0]["difference value"] == pytest.approx(-30)
    named = {"first run", "second run"}
    numbers = [[{key: row[key] for key in row.keys() - named} for row in rows] for rows in found]
    assert all(rows == numbers[0] for rows in numbers)


def test_a_folder_holds_the_same_metrics_as_its_run(runs: Runs, capsys: Capture) -> None:
    metrics = ["acc_p", "acc_q", "context_awareness", "context_awareness_left_out"]
    words = [word for name in metrics for word in ("--metric", name)]
    assert runs.compare("3", str(runs.folder / "wrong-12"), *words, "--json") == 0
    rows = _tables(capsys)[0]["rows"]
    assert [row["metric"] for row in rows] == metrics
    assert all(row["first value"] == row["second value"] for row in rows)
    assert all(row["difference value"] == 0 for row in rows)


def test_runs_with_a_limit_are_compared_on_the_samples_that_both_have(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("3", "4", "--json") == 0
    (table,) = _tables(capsys)
    row = _rows(table)["acc_p", "all"]
    assert (row["groups"], row["difference value"]) == (1, 100)
    assert f"run 4 lacks {PAIRS - 1} samples of the other side, which are left out" in table["notes"]


def test_settings_are_compared(runs: Runs, capsys: Capture) -> None:
    words = ["run", "codis:no-cot", "--model", f"replay/{runs.answers(12)}", "--data", str(runs.data)]
    assert main([*words, "--quiet", *runs.store, "--out", str(runs.folder / "no-cot")]) == 0
    capsys.readouterr()
    assert runs.compare("1", str(runs.folder / "no-cot"), "--json") == 0
    (table,) = _tables(capsys)
    assert table["title"] == "codis:default and codis:no-cot"
    assert _rows(table)["acc_p", "all"]["difference value"] == pytest.approx(-30)
    assert any("cot on, then off" in note for note in table["notes"])


def test_csv_names_the_runs_of_both_sides(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "3", "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {(row["first run"], row["second run"]) for row in rows} == {("run 1", "run 3")}
    assert float(rows[0]["second value"]) - float(rows[0]["first value"]) == pytest.approx(-30)


def test_changed_answers_are_counted_and_listed(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "3", "--json") == 0
    counts, sides, answers = _answers(capsys)
    of_answers, of_groups = counts["rows"]
    assert (of_answers["lost"], of_answers["gained"], of_answers["scored"]) == (24, 0, 2 * PAIRS)
    assert (of_groups["lost"], of_groups["both_right"]) == (12, PAIRS - 12)
    assert of_answers["identical"] == 2 * (PAIRS - 12)
    assert len(answers["rows"]) == 2 * PAIRS
    assert [side["probes"] for side in sides["rows"]] == [2 * PAIRS] * 2
    assert runs.compare("1", "3", "--list", "lost", "--format", "csv") == 0
    listed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(listed) == 24
    assert {line["change"] for line in listed} == {"lost"}


def test_a_folder_of_failed_requests_has_no_value_and_no_difference(
    runs: Runs, tmp_path: Path, capsys: Capture
) -> None:
    failed = tmp_path / "failed.jsonl"
    lines = [json.loads(line) for line in Path(runs.answers(0)).read_text().splitlines()]
    errors = [{"id": line["id"], "variant": line["variant"], "error": "500"} for line in lines]
    failed.write_text("".join(json.dumps(line) + "\n" for line in errors))
    out = tmp_path / "out"
    runs.run(str(failed), "--out", str(out))
    assert (out / "verdicts.jsonl").read_text() == ""
    capsys.readouterr()
    assert runs.compare("1", str(out), "--json") == 0
    row = _rows(_tables(capsys)[0])["acc_q", "all"]
    assert (row["second value"], row["difference value"], row["groups"], row["clusters"]) == (
        None,
        None,
        0,
        0,
    )


def test_a_row_without_a_number_says_why(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "2", "--metric", "acc_p", "--metric", "bias_first", "--json") == 0
    (table,) = _tables(capsys)
    rows = _rows(table)
    nulls = [" ".join(place) for place in rows if rows[place]["difference value"] is None]
    for place in nulls:
        assert any("no value, no group has a value in both runs" in note for note in table["notes"]), place
    assert nulls


def test_every_form_prints(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "3", "--tests") == 0
    said = capsys.readouterr().out
    assert "<0.001" in said
    assert "codis:default, tests" in said
    assert runs.compare("1", "3", "--format", "csv") == 0
    (first, *_) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert 0 < float(first["holm"]) < 0.05
    assert runs.compare("1", "2", "--format", "markdown") == 0
    assert "| 1.000 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("1", "3", "--fail-if", "worse"), 5, "--fail-if worse: acc_p differs by -30"),
        (("3", "1", "--fail-if", "worse", "--fail-if", "acc_q: higher"), 5, "acc_q differs by +30"),
        (("1", "2", "--fail-if", "worse"), 0, ""),
        (("1", "3", "--fail-if", "acc_x: worse"), 2, "the metric is not in this table"),
    ],
)
def test_a_comparison_fails_where_a_condition_holds(
    runs: Runs, capsys: Capture, words: tuple[str, ...], status: int, told: str
) -> None:
    assert runs.compare(*words) == status
    said = capsys.readouterr()
    assert told in said.err
    assert bool(said.err) == bool(status)
    assert bool(said.out) == (status != 2)


def test_no_run_is_worse_than_itself_whatever_metrics_its_questions_have(
    tmp_path: Path, capsys: Capture
) -> None:
    """Questions with options have no similarities, on either side."""
    line = {"prompt": "(A) cat (B) dog?", "options": ["cat", "dog"], "references": ["cat"]}
    variants = [
        {"group": str(n // 2), "variant": f"v{n % 2}", "labels": {"style": f"s{n % 2}"}, **line}
        for n in range(12)
    ]
    data, answers, out = tmp_path / "g.jsonl", tmp_path / "a.jsonl", str(tmp_path / "o")
    data.write_text("".join(json.dumps(one) + "\n" for one in variants))
    answers.write_text(
        "".join(
            json.dumps({"group": one["group"], "variant": one["variant"], "response": "A"}) + "\n"
            for one in variants
        )
    )
    words = ["score", f"groups:{data}", str(answers), "--store", str(tmp_path / "s.db"), "--out", out]
    assert main([*words, "--quiet"]) == 0
    copy = shutil.copytree(out, tmp_path / "copy")
    assert main(["compare", out, str(copy), "--fail-if", "worse"]) == 0
    assert main(["compare", out, str(copy), "--fail-if", "s_c: worse"]) == 5
    assert "--fail-if s_c: worse: s_c has no difference" in capsys.readouterr().err
    assert main(["compare", out, str(copy), "--metric", "con_by_response"]) == 2
    assert "values under labels only; expected --by style" in capsys.readouterr().err


def test_a_run_is_not_compared_with_itself(runs: Runs, capsys: Capture) -> None:
    assert runs.compare("1", "1") == 2
    assert "run 1 is compared with itself; expected two different runs" in capsys.readouterr().err
    folder = runs.folder / "wrong-0"
    assert runs.compare(str(folder), f"{folder}/../wrong-0") == 2
    assert "is compared with itself" in capsys.readouterr().err


def test_a_loss_is_told_of_the_subset_that_lost(runs: Runs, capsys: Capture) -> None:
    by_category = ("--metric", "acc_p", "--by", "category")
    assert runs.compare("1", "3", *by_category, "--fail-if", "worse") == 5
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("--fail-if worse: acc_p differs by -30")
    assert all(line.startswith("--fail-if worse: acc_p[category=") for line in told[1:])


@pytest.mark.parametrize(
    ("condition", "status", "told"),
    [
        ("acc_p<70", 0, ""),
        ("acc_p<70.5", 5, "--fail-if acc_p<70.5: it is 70.00"),
        ("output_variability<1", 5, "no number to compare (needs a run of setting"),
        ("acc_x<30", 2, "unknown metric in --fail-if 'acc_x', did you mean 'acc_"),
    ],
)
def test_run_score_and_report_fail_where_a_condition_holds(
    runs: Runs, capsys: Capture, condition: str, status: int, told: str
) -> None:
    answers = runs.answers(12)
    wanted = ["--fail-if", condition]
    capsys.readouterr()
    run = ["run", "codis", "--model", f"replay/{answers}", "--data", str(runs.data), "--quiet", *runs.store]
    for words in (
        run,
        ["score", "codis", answers, "--data", str(runs.data), "--quiet"],
        ["report", str(runs.folder / "wrong-12")],
        ["report", "3", *runs.store],
    ):
        assert main([*words, *wanted]) == status
        assert told in capsys.readouterr().err


def test_of_several_results_the_one_that_fails_is_named(runs: Runs, capsys: Capture) -> None:
    folders = [str(runs.folder / name) for name in ("wrong-0", "wrong-12")]
    assert main(["report", *folders, "--fail-if", "acc_p<80"]) == 5
    (told,) = capsys.readouterr().err.splitlines()
    assert "answers-12.jsonl: acc_p<80: it is 70.00" in told


def test_a_metric_that_is_not_there_is_found_before_anything_is_asked(runs: Runs, tmp_path: Path) -> None:
    words = ["run", "codis", "--model", "baseline/chance", "--data", str(runs.data), "--quiet"]
    assert main([*words, "--store", str(tmp_path / "s.db"), "--fail-if", "accuracy<3"]) == 2
    assert not (tmp_path / "s.db").exists()


def test_in_python_an_evaluation_says_what_failed(runs: Runs, tmp_path: Path) -> None:
    run = sightline.run(
        "codis",
        model=f"replay/{runs.answers(12)}",
        data=str(runs.data),
        store=str(tmp_path / "s.db"),
        fail_if=["acc_p<80", "acc_q<1"],
    )
    assert run.conditions_met == ("acc_p<80: it is 70.00",)
    assert run.exit_status == 5


def test_a_sweep_ends_with_5_where_a_point_does(runs: Runs, tmp_path: Path, capsys: Capture) -> None:
    words = ["sweep", "codis", "--data", str(runs.data), "--quiet", "--store", str(tmp_path / "s.db")]
    for wrong in (0, 12):
        words += ["--model", f"replay/{runs.answers(wrong)}"]
    assert main([*words, "--out", str(tmp_path / "out"), "--fail-if", "acc_p<80"]) == 5
    assert capsys.readouterr().err.count("--fail-if acc_p<80: it is 70.00") == 1
    points = json.loads((tmp_path / "out/sweep.json").read_text())["points"]
    assert [point["exit_status"] for point in points] == [0, 5]
    assert points[1]["state"] == "done, but a condition of --fail-if holds"


def test_published_rows_are_beside_both_runs(shared: Path, tmp_path: Path, capsys: Capture) -> None:
    store = str(tmp_path / "s.db")
    for task in ("codis", "codis:plain"):
        data = shared / "data/codis"
        sightline.run(task, model="baseline/chance", data=data, limit=6, store=store, against="GPT-4V")
    capsys.readouterr()
    assert main(["compare", "1", "2", "--store", store, "--json"]) == 0
    assert not any("GPT-4V" in column for row in _tables(capsys)[0]["rows"] for column in row)
    rows = ["--against", "gpt-4v", "--against", "Gemini"]
    assert main(["compare", "1", "2", *rows, "--store", store, "--json"]) == 0
    first, *_ = _tables(capsys)[0]["rows"]
    of_both_settings = ("Table 3", "Table 10", "Table 13")
    columns = {f"{row} ({table})" for row in ("GPT-4V", "Gemini") for table in of_both_settings}
    assert columns <= first.keys()
    assert first["GPT-4V (Table 3)"] == 32.3
