"""A judge that is asked several times, a judge that is named twice, and the majority of judges."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sightline
from sightline.benchmarks.contextual.benchmark import Contextual
from sightline.errors import UserError
from sightline.evaluation.judges import ModelJudge, combine_repeats, select_verdict
from sightline.evaluation.options import JudgeModel, effective
from sightline.evaluation.spec import Spec
from sightline.types import Answer, Case, Verdict, VerdictName
from training.scenes.build import generate_codis

CASE = Case(("k",), "correct", "Which number?", ("It is 16.",), ("16",))
DECIDING: tuple[VerdictName, ...] = ("right", "wrong", "miss", "refused")
OTHERS: tuple[VerdictName, ...] = ("undecided", "error", "unscored")


def verdict(name: VerdictName, judge: str, draw: int = 0) -> Verdict:
    return Verdict(
        targets=("k",), question="correct", scorer="s", judge=judge, kind="model", draw=draw, verdict=name
    )


def judge_of(repeats: int) -> ModelJudge:
    """A judge of ConTextual at temperature 0; a reply without a verdict is requested once more."""
    benchmark = Contextual()
    options = effective(benchmark, benchmark.settings["default"], Spec(task="contextual"))
    model = JudgeModel("identity", {"temperature": 0})
    return ModelJudge("gpt", model, benchmark, options.benchmark, repeats)


def keys_of(judge: ModelJudge) -> dict[tuple[int, int], str]:
    """The key of each request of the judge by repeat and attempt."""
    requests = {
        (repeat, attempt): judge.request(CASE, repeat, attempt)
        for repeat in range(judge.repeats)
        for attempt in range(judge.max_attempts)
    }
    return {where: keyed.request.key for where, keyed in requests.items() if keyed is not None}


@given(st.lists(st.sampled_from((*DECIDING, *OTHERS)), min_size=2, max_size=7))
def test_a_majority_is_one_over_right_and_not_right(names: list[VerdictName]) -> None:
    right = names.count("right")
    not_right = sum(name in DECIDING for name in names) - right
    by_judge = [[verdict(name, f"judge {number}")] for number, name in enumerate(names)]
    selected = select_verdict(CASE, by_judge, "majority").verdict
    repeated = [verdict(name, "gpt", draw) for draw, name in enumerate(names)]
    (combined,) = combine_repeats(repeated)
    for found in (selected, combined.verdict):
        assert (found == "right") == (right > not_right)
        assert (found in ("wrong", "miss", "refused")) == (not_right > right)


def test_a_model_has_one_vote_however_often_it_is_asked() -> None:
    model = [verdict("right", "gpt", draw) for draw in range(5)]
    others = [[verdict("wrong", "rules")], [verdict("refused", "ann")]]
    selected = select_verdict(CASE, [model, *others], "majority")
    assert (selected.verdict, selected.judge) == ("wrong", "majority of gpt, rules, ann")


def test_repeats_are_distinct_draws_that_do_not_depend_on_their_number() -> None:
    three = keys_of(judge_of(3))
    assert len(set(three.values())) == 6
    for fewer in (1, 2):
        assert keys_of(judge_of(fewer)).items() <= three.items()


def test_each_repeat_has_its_own_verdict_and_its_own_second_attempt() -> None:
    judge = judge_of(3)
    keys = keys_of(judge)
    texts = {(0, 0): "Yes", (1, 0): "Hm.", (1, 1): "No", (2, 0): "Hm.", (2, 1): "Hm."}
    verdicts = judge.decide(CASE, {keys[where]: Answer(text) for where, text in texts.items()})
    assert [one.verdict for one in verdicts] == ["right", "wrong", "undecided"]
    assert len({one.draw for one in verdicts}) == 3


def test_tied_repeats_are_undecided_and_failed_ones_are_errors() -> None:
    tied = [verdict("right", "gpt"), verdict("wrong", "gpt", 1), verdict("error", "gpt", 2)]
    failed = [verdict("error", "gpt"), verdict("error", "gpt", 1)]
    assert [one.verdict for one in combine_repeats(tied)] == ["undecided"]
    assert [one.verdict for one in combine_repeats(failed)] == ["error"]


@pytest.mark.parametrize(
    "names",
    [("rules", "rules"), ("mini", "rules", "mini"), ("human:{0}/h.jsonl", "human:{0}/../{0.name}/h.jsonl")],
)
def test_a_judge_named_twice_is_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    data = generate_codis(tmp_path / "codis", pairs=1)
    line = {"targets": ["k"], "question": "correct", "verdict": "right", "judge": "ann"}
    (tmp_path / "h.jsonl").write_text(json.dumps(line))
    judges = [name.format(tmp_path) for name in names]
    with pytest.raises(UserError, match=r"is named twice.*expected each judge once"):
        sightline.run("codis", model="baseline/chance", data=data, judge=judges, store=str(tmp_path / "s.db"))


def test_repeats_without_a_judge_model_are_refused(tmp_path: Path) -> None:
    data = generate_codis(tmp_path / "codis", pairs=1)
    with pytest.raises(UserError, match="--judge-repeats 2 has no effect: no judge is a model"):
        sightline.run("codis", model="baseline/chance", data=data, judge_repeats=2, store=str(tmp_path / "s"))


def test_a_run_keeps_the_repeats_apart_and_reports_how_far_they_agree(tmp_path: Path) -> None:
    data = generate_codis(tmp_path / "codis", pairs=3)
    found = sightline.run(
        "codis",
        model="baseline/chance",
        data=data,
        judge="baseline/chance",
        judge_repeats=3,
        store=str(tmp_path / "s.db"),
        out=tmp_path / "out",
    )
    lines = [
        msgspec.json.decode(line, type=Verdict)
        for line in (tmp_path / "out" / "verdicts.jsonl").read_bytes().splitlines()
    ]
    cases = {(one.targets, one.question, one.variant) for one in lines}
    draws_of = {"correct": [0, 1, 2], "same_meaning": [0, 2, 4]}
    for question, draws in draws_of.items():
        asked = sum(case[1] == question for case in cases)
        found_draws = sorted(one.draw for one in lines if one.question == question)
        assert found_draws == sorted(draws * asked)
    name = "repeated_judge=baseline/chance"
    values = {one.metric: one for one in found.result.metrics if one.subset == name}
    assert list(values) == ["self_agreement", "self_alpha"]
    assert values["self_agreement"].n == len(cases)
    assert found.result.options["judge_repeats"] == 3
    assert "self_agreement" in (tmp_path / "out" / "report.md").read_text()
