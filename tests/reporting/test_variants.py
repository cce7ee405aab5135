"""The tables of what happens within the groups of a run, against other counts of the same answers."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import mean, variance
from typing import Any

import numpy
import pytest
from msgspec.structs import replace
from scipy.stats import binomtest, sem, t
from tests.evaluation.test_compare import outcome

from sightline.cli.main import main
from sightline.evaluation.folder import read_judged_run
from sightline.metrics.flips import pair_groups
from sightline.metrics.variants import majority_vote
from sightline.reporting.variants import leads
from sightline.types import Group

pandas = pytest.importorskip("pandas", reason="the counts come from pandas, of the extra `table`")

ANSWERS = {
    "g1": ("bus", "bus", "car"),
    "g2": ("bus", "bus", "car"),
    "g3": ("car", "bus", "bus"),
    "g4": ("tram", "tram", "bus"),
    "g5": ("bus", "bus", "The bus."),
    "g6": ("car", "tram", "tram"),
}
VARIANTS = ("a", "b", "c")
LINES = {"a": "1", "b": "1", "c": "7"}


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    file, out = tmp_path / "answers.jsonl", tmp_path / "out"
    lines = [
        {
            "group": group,
            "variant": variant,
            "response": response,
            "references": ["bus"],
            "labels": {"lines": LINES[variant]},
        }
        for group, responses in ANSWERS.items()
        for variant, response in zip(VARIANTS, responses, strict=True)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["score", "groups", str(file), "--set", "embedder=none", "--out", str(out), "--quiet"]
    assert main(words) == 0
    return out


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    capsys.readouterr()
    assert main(["report", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def right() -> Any:
    """Whether each answer is right: a row a group, a column a variant."""
    rows = [["bus" in response.lower() for response in responses] for responses in ANSWERS.values()]
    return pandas.DataFrame(rows, columns=VARIANTS)


def test_two_variants_are_counted_as_a_table_of_both_verdicts(
    scored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, pairs = printed(capsys, scored, "--why")
    assert [(row["first"], row["second"]) for row in pairs["rows"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    for row in pairs["rows"]:
        counts = pandas.crosstab(right()[row["first"]], right()[row["second"]])
        names = {(True, True): "both_right", (True, False): "only_first"}
        names |= {(False, True): "only_second", (False, False): "both_wrong"}
        found = {key: row[name] for key, name in names.items()}
        assert found == {key: counts.get(key[1], {}).get(key[0], 0) for key in names}
        assert row["differ value"] == pytest.approx(100 * (found[True, False] + found[False, True]) / 6)


def test_the_variant_that_differs_alone_most_often_comes_first(
    scored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, variants, _ = printed(capsys, scored, "--why")
    # By hand: c is the only wrong answer of g1 and g2, a of g3; c is the only right answer of g4.
    found = [(row["variant"], row["alone_wrong value"], row["alone_right value"]) for row in variants["rows"]]
    expected = [("c", 100 * 2 / 6, 100 / 6), ("a", 100 / 6, 0), ("b", 0, 0)]
    for row, by_hand in zip(found, expected, strict=True):
        assert row == (by_hand[0], pytest.approx(by_hand[1]), pytest.approx(by_hand[2]))


def test_whole_groups_and_a_clean_variant_are_counted_as_pandas_counts_them(
    scored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups, _, pairs = printed(capsys, scored, "--why", "--clean", "b")
    found = {row["metric"]: row["value value"] for row in groups["rows"]}
    table = right()
    worst, best = table.all(axis=1), table.any(axis=1)
    by_hand = {"all right": worst, "some right": best & ~worst, "none right": ~best}
    # By hand: only the answers of g5 are all the same.
    expected = {name: 100 * held.mean() for name, held in by_hand.items()} | {"answers differ": 100 * 5 / 6}
    assert found == pytest.approx(expected)
    assert [(row["first"], row["second"]) for row in pairs["rows"]] == [("b", "a"), ("b", "c")]
    for row in pairs["rows"]:
        assert row["drop value"] == pytest.approx(100 * (table["b"].mean() - table[row["second"]].mean()))


def test_groups_flip_only_where_the_right_answers_are_the_same(
    scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who always says yes is right in one of two opposite questions, and does not flip."""
    [groups, *_] = printed(capsys, scored, "--why")
    assert any("some right: groups that flip" in note for note in groups["notes"])
    file = tmp_path / "opposite.jsonl"
    lines = [
        {"group": str(number), "variant": variant, "response": "yes", "references": [right]}
        for number in range(3)
        for variant, right in (("asked", "yes"), ("opposite", "no"))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ["score", "groups", str(file), "--set", "embedder=none", "--out", str(tmp_path / "o"), "--quiet"]
    assert main(words) == 0
    [groups, *_] = printed(capsys, tmp_path / "o", "--why")
    assert not any("flip" in note for note in groups["notes"])
    assert any("3 groups with different right answers" in note for note in groups["notes"])


def test_lines_of_the_original_are_no_variant_and_the_error_says_what_makes_them_one(
    scored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(scored), "--why", "--clean", "original"]) == 2
    said = capsys.readouterr().err
    assert all(
        part in said for part in ("unknown variant 'original'", "are not sent", "another name", "a, b, c")
    )


def two_runs(tmp_path: Path, right: Any, clusters: Any) -> list[Any]:
    """Two runs with these verdicts: an array of runs, groups, and the variants a, b and c."""
    runs = []
    for number, of_run in enumerate(right):
        file, out = tmp_path / f"{number}.jsonl", tmp_path / f"run {number}"
        lines = [
            {
                "group": f"g{place}",
                "variant": variant,
                "response": "bus" if verdict else "car",
                "references": ["bus"],
                "cluster": f"c{cluster}",
            }
            for place, (cluster, verdicts) in enumerate(zip(clusters, of_run, strict=True))
            for variant, verdict in zip(VARIANTS, verdicts, strict=True)
        ]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = ["score", "groups", str(file), "--set", "embedder=none", "--out", str(out), "--quiet"]
        assert main(words) == 0
        runs.append(out)
    return runs


def test_the_order_of_two_runs_under_each_variant_is_that_of_their_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = numpy.random.default_rng(1)
    chances = numpy.array([[0.8, 0.5, 0.8], [0.5, 0.8, 0.4]])
    right = generator.random((2, 60, 3)) < chances[:, None, :]
    runs = two_runs(tmp_path, right, range(60))
    *_, table = printed(capsys, *runs, "--why", "--clean", "a")
    lead = right[1].astype(int) - right[0]
    rows = {row["variant"]: row for row in table["rows"]}
    assert [*rows] == ["b", "c"]
    for place, variant in ((1, "b"), (2, "c")):
        row, change = rows[variant], lead[:, place] - lead[:, 0]
        assert row["clean value"] == pytest.approx(100 * lead[:, 0].mean())
        assert row["lead value"] == pytest.approx(100 * lead[:, place].mean())
        assert row["change value"] == pytest.approx(100 * change.mean())
        assert row["reversed"] == (lead[:, 0] * lead[:, place] < 0).sum()
        # The interval of scipy for the same differences is symmetrical, and close with 60 groups.
        expected = t.interval(0.95, 59, 100 * change.mean(), 100 * sem(change))
        assert (row["change low"], row["change high"]) == pytest.approx(expected, abs=3)
    assert rows["b"]["order"] == "changes, significantly"
    assert rows["c"]["order"] == "same"
    assert table["lead"] == "The order of two runs changes in 1 of 2 rows, significantly in 1"


def judged(marks: Sequence[Sequence[str]]) -> list[dict[Any, Group]]:
    """Two runs with the verdicts of `outcome`: for each, those of each group under the variants a and b."""
    return [
        {
            (f"g{place}", 0, ""): Group(
                f"g{place}",
                0,
                f"g{place}",
                tuple(outcome(f"g{place}", *one) for one in zip("ab", of, strict=True)),
            )
            for place, of in enumerate(of_run)
        }
        for of_run in marks
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["01", "01"], ["1?", "11"]),  # under b the second run is behind, or level
        (["01", "01"], ["1?", "10"]),  # behind by two, or by one
        (["1?", "10"], ["0!", "0!"]),
        (["?1", "11"], ["11", "11"]),
        (["0?", "01"], ["11", "1!"]),
    ],
)
def test_an_order_is_what_every_way_to_decide_the_verdicts_makes_it(
    first: list[str], second: list[str]
) -> None:
    (row,) = leads(pair_groups(*judged([first, second])), ("x", "y"), "a")
    orders = set()
    for way in product(*("01" if mark in "?!" else mark for mark in "".join(first + second))):
        verdicts = numpy.array(way, int).reshape(2, 2, 2)
        lead = (verdicts[1] - verdicts[0]).sum(axis=0)
        orders.add({-1: "changes", 0: "tie", 1: "same"}[int(numpy.sign(lead.prod()))])
    assert row.order == (orders.pop() if len(orders) == 1 else "not decided")


@pytest.mark.parametrize(
    ("under_b", "order"),
    [
        ("0" * 40, "changes, significantly"),
        ("0" * 30 + "?" * 10, "changes, significantly"),
        ("0" * 2 + "?" * 38, "changes"),
        ("?" * 40, "not decided"),
    ],
)
def test_an_order_that_undecided_verdicts_could_keep_does_not_change(under_b: str, order: str) -> None:
    """Under a the second run is right 40 times and the first never; under b the first run is right."""
    runs = judged([["01"] * 40, [f"1{mark}" for mark in under_b]])
    (row,) = leads(pair_groups(*runs), ("x", "y"), "a")
    assert row.order == order


def test_what_two_runs_do_not_share_is_noted_and_runs_without_a_shared_sample_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = two_runs(tmp_path, numpy.ones((2, 4, 3), bool), range(4))[0]
    lines = (tmp_path / "1.jsonl").read_text().splitlines(keepends=True)
    others = [one.replace(': "g', ': "h') for one in lines]
    given = {"few": lines[:6], "clean": lines[::3], "same": lines[::3], "others": others}
    for name, kept in given.items():
        file, out = tmp_path / f"{name}.jsonl", tmp_path / name
        file.write_text("".join(kept))
        words = ["score", "groups", str(file), "--set", "embedder=none", "--out", str(out), "--quiet"]
        assert main(words) == 0
    *_, table = printed(capsys, whole, tmp_path / "few", "--why", "--clean", "a")
    assert [row["groups"] for row in table["rows"]] == [2, 2]
    assert f"{tmp_path / 'few'} lacks 2 samples of {whole}, which are left out" in table["notes"]
    *_, table = printed(capsys, tmp_path / "clean", tmp_path / "same", "--why", "--clean", "a")
    assert (table["rows"], table["notes"][0]) == ([], "no group has another variant in both runs")
    assert main(["report", str(whole), str(tmp_path / "others"), "--why", "--clean", "a"]) == 2
    assert "have no sample in common" in capsys.readouterr().err


def test_of_100_intervals_of_the_change_95_hold_the_true_one() -> None:
    """Clusters of one to four groups with a common difficulty, verdicts of both runs and variants alike."""
    generator = numpy.random.default_rng(2)
    held = changed = 0
    trials = 400
    for _ in range(trials):
        sizes = generator.integers(1, 5, 40)
        clusters = numpy.repeat(numpy.arange(40), sizes)
        ease = generator.normal(0, 1, 40)[clusters] + generator.normal(0, 0.5, len(clusters))
        # No run leads under either variant: the true change is 0, and an order that changes is chance.
        right = ease[None, :, None] + generator.normal(0, 1, (2, len(clusters), 2)) > 0
        groups = [
            {
                (f"g{place}", 0, ""): Group(
                    f"g{place}",
                    0,
                    f"c{cluster}",
                    tuple(
                        replace(outcome(f"g{place}", name, "1" if verdict else "0"), key=f"{place} {name}")
                        for name, verdict in zip("ab", verdicts, strict=True)
                    ),
                )
                for place, (cluster, verdicts) in enumerate(zip(clusters, of_run, strict=True))
            }
            for of_run in right
        ]
        (row,) = leads(pair_groups(*groups), ("x", "y"), "a")
        change = row.values["change"]
        assert change.low is not None
        assert change.high is not None
        held += change.low <= 0 <= change.high
        changed += row.order == "changes, significantly"
    assert binomtest(held, trials, 0.95).pvalue > 0.01
    assert changed / trials < 0.025


def test_repeats_are_counted_as_every_choice_of_k_answers_gives_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"g1": "bbbb", "g2": "bbcb", "g3": "ctcb", "g4": "tttt", "g5": "bbct"}
    words = {"b": "bus", "c": "car", "t": "tram"}
    questions = [
        {"group": name, "variant": "a", "prompt": "?", "references": ["bus"], "labels": {"first": letters[0]}}
        for name, letters in given.items()
    ]
    answers = [
        {"id": name, "variant": "a", "draw": draw, "response": words[one]}
        for name, letters in given.items()
        for draw, one in enumerate(letters)
    ]
    for file, lines in (("questions", questions), ("answers", answers)):
        (tmp_path / f"{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    scoring = ["score", f"groups:{tmp_path}/questions.jsonl", f"{tmp_path}/answers.jsonl", "--quiet"]
    assert main([*scoring, "--set", "embedder=none", "--out", str(tmp_path / "out")]) == 0
    (table,) = printed(capsys, tmp_path / "out", "--repeats")
    assert len(table["rows"]) == 9
    found = {row["metric"]: row["value value"] for row in table["rows"]}

    def over_choices(size: int, holds: Any) -> float:
        return 100 * float(mean(mean(map(holds, combinations(one, size))) for one in numbers))

    numbers = [[one == "b" for one in of] for of in given.values()]
    expected = {f"pass^{size}": over_choices(size, all) for size in (2, 4)}
    expected |= {f"pass@{size}": over_choices(size, any) for size in (2, 4)}
    expected |= {
        "expected accuracy": 100 * mean(map(mean, numbers)),
        "internal variance": 100 * mean(map(variance, numbers)),
        "consistency rate": 100 * mean(len(set(of)) == 1 for of in given.values()),
        "repetition consistency": 100 * mean(one == of[0] for of in given.values() for one in of[1:]),
        # By hand: of g1, g2 and g5 'bus' is the most frequent answer.
        "consensus accuracy": 100 * 3 / 5,
    }
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("label", ["lines", "variant"])
def test_the_most_frequent_answers_are_those_that_a_counter_finds(
    scored: Path, capsys: pytest.CaptureFixture[str], label: str
) -> None:
    (table,) = printed(capsys, scored, "--answers", 1, "--by", label)
    counted: dict[str, Counter[str]] = {}
    for responses in ANSWERS.values():
        for variant, response in zip(VARIANTS, responses, strict=True):
            value = variant if label == "variant" else LINES[variant]
            counted.setdefault(value, Counter())[response.removeprefix("The ").rstrip(".").lower()] += 1
    found = {row[label]: (row["answer"], row["n"], row["of"]) for row in table["rows"]}
    assert found == {value: (*of.most_common(1)[0], of.total()) for value, of in counted.items()}


def test_the_answers_of_several_runs_stand_together_under_each_value(
    scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(scored, other)
    (table,) = printed(capsys, scored, other, "--answers", 1, "--by", "lines")
    (alone,) = printed(capsys, scored, "--answers", 1, "--by", "lines")
    assert [row.pop("run") for row in table["rows"]] == [str(scored), str(other)] * len(alone["rows"])
    assert table["rows"] == [row for row in alone["rows"] for _ in range(2)]


def test_variant_is_a_label_of_every_metric_on_request(
    scored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {
        (one["metric"], one["subset"]): one for one in printed(capsys, scored, "--by", "variant")["metrics"]
    }
    for variant in VARIANTS:
        assert values["acc", f"variant={variant}"]["value"] == pytest.approx(100 * right()[variant].mean())
    assert ("acc", "variant=a") not in {
        (one["metric"], one["subset"]) for one in printed(capsys, scored)["metrics"]
    }


def test_a_vote_makes_each_answer_the_most_frequent_one_of_its_group(scored: Path) -> None:
    groups = read_judged_run(scored).groups.values()
    voted = [majority_vote(group) for group in groups]
    for before, after in zip(groups, voted, strict=True):
        most = Counter(ANSWERS[before.id]).most_common(1)[0][0]
        assert {outcome.response for outcome in after} == {most}
        assert {outcome.right for outcome in after} == {most == "bus"}
        assert [outcome.variant for outcome in after] == [outcome.variant for outcome in before]


def test_a_vote_is_not_taken_where_the_variants_have_different_answers(scored: Path) -> None:
    group = next(iter(read_judged_run(scored).groups.values()))
    first, *rest = group.outcomes
    apart = replace(group, outcomes=(replace(first, references=("car",)), *rest))
    assert majority_vote(apart) == apart


def test_a_text_that_chooses_no_option_is_no_empty_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = {"group": "g", "options": ["red", "blue"], "references": ["A"]}
    given = {"a": "A", "b": "a bench", "c": ""}
    file, out = tmp_path / "answers.jsonl", tmp_path / "out"
    lines = [{**shared, "variant": variant, "response": response} for variant, response in given.items()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["score", "groups", str(file), "--out", str(out), "--quiet"]) == 0
    (table,) = printed(capsys, out, "--answers", 9)
    assert {row["answer"]: row["n"] for row in table["rows"]} == {"red": 1, "(no option)": 1, "(empty)": 1}


@pytest.mark.parametrize(
    ("right", "shown", "said"), [(0, 0, "all 4 verdicts are undecided"), (1, 2, "verdicts (3 of 4, 75.0 %)")]
)
def test_undecided_verdicts_are_said_before_variants_are_compared(
    right: int, shown: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair: dict[str, Any] = {
        "image_id": "a.jpg",
        "question": "Am I opening or closing my bag?",
        "context": {"context_1": "I pull the zipper to the left.", "context_2": "To the right."},
        "answer": {"answer_1": "Opening your bag.", "answer_2": "Closing your bag."},
        "category": "Location and Orientation",
    }
    (tmp_path / "data.json").write_text(json.dumps([pair | {"id": name} for name in ("000", "001")]))
    asked = [(name, n, pair["answer"][f"answer_{n}"]) for name in ("000", "001") for n in (1, 2)]
    answers = [
        {"id": name, "variant": f"context_{n}", "response": reference if nth < right else "(A)"}
        for nth, (name, n, reference) in enumerate(asked)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answers))
    out = tmp_path / "out"
    given = ("--data", str(tmp_path), "--out", str(out), "--store", str(tmp_path / "s.db"))
    assert main(["score", "codis", str(tmp_path / "a.jsonl"), *given]) == 0
    capsys.readouterr()
    assert main(["report", str(out), "--why"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert said in text
    assert "another --judge" in text
    # The rows of two variants: none where nothing is decided.
    assert text.count("context_1") == shown
