"""Judges, their requests, and the verdict that counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.contextual.benchmark import Contextual
from sightline.benchmarks.iibench.benchmark import IIBench
from sightline.errors import UserError
from sightline.evaluation.judges import (
    UNREADABLE_IMAGE,
    Judge,
    JudgePanel,
    ModelJudge,
    RecordedJudge,
    check_judge_kinds,
    judge_kind,
    select_verdict,
)
from sightline.evaluation.options import JudgeModel, effective
from sightline.evaluation.spec import Spec
from sightline.formats.jsonl import read_verdicts
from sightline.images import ImageLimits
from sightline.store.answers import KeyedRequest
from sightline.types import Answer, Case, Failure, Group, ImageFile, Outcome, Usage, Verdict, VerdictName

CASE = Case(("k",), "correct", "Up or down?", ("Up.",), ("Up.",))


def verdict(name: VerdictName, judge: str = "rules", targets: tuple[str, ...] = ("k",)) -> Verdict:
    return Verdict(targets=targets, question="correct", scorer="s", judge=judge, kind="rules", verdict=name)


def test_the_first_judge_who_decides_counts() -> None:
    opinions = [[verdict("undecided", "rules")], [verdict("wrong", "gpt")], [verdict("right", "ann")]]
    assert select_verdict(CASE, opinions, "first").verdict == "wrong"
    assert select_verdict(CASE, opinions, "first").judge == "gpt"


def test_the_verdict_is_undecided_if_no_judge_decides() -> None:
    assert select_verdict(CASE, [[verdict("undecided")], []], "first").verdict == "undecided"
    assert select_verdict(CASE, [], "first").verdict == "undecided"


def test_a_majority_counts_every_verdict_and_a_tie_is_undecided() -> None:
    three = [[verdict("right", "a"), verdict("right", "b")], [verdict("wrong", "c")]]
    assert select_verdict(CASE, three, "majority").verdict == "right"
    assert (
        select_verdict(CASE, [[verdict("right", "a")], [verdict("wrong", "b")]], "majority").verdict
        == "undecided"
    )


def test_undecided_verdicts_do_not_vote() -> None:
    votes = [[verdict("right", "a")], [verdict("undecided", "b")], [verdict("undecided", "c")]]
    assert select_verdict(CASE, votes, "majority").verdict == "right"


def test_several_humans_of_one_file_decide_by_their_majority() -> None:
    humans = RecordedJudge(
        "human:f", [verdict("wrong", "ann"), verdict("wrong", "bob"), verdict("right", "cid")]
    )
    assert select_verdict(CASE, [humans.decide(CASE, {})], "first").verdict == "wrong"


def test_humans_may_have_compared_two_answers_in_either_order() -> None:
    humans = RecordedJudge(
        "human:f",
        [
            Verdict(
                targets=("b", "a"),
                question="same_meaning",
                scorer="s",
                judge="ann",
                kind="human",
                verdict="right",
            )
        ],
    )
    case = Case(("a", "b"), "same_meaning", "?", ("x", "y"))
    assert [verdict.verdict for verdict in humans.decide(case, {})] == ["right"]


def test_a_humans_file_needs_four_fields(tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text(
        '{"targets": ["k"], "question": "correct", "verdict": "right", "judge": "ann"}\n'
    )
    assert RecordedJudge("human", read_verdicts(tmp_path / "v.jsonl")).decide(CASE, {})[0].kind == "human"


def test_a_benchmark_with_rules_only_refuses_a_model_judge() -> None:
    with pytest.raises(UserError, match="iibench does not accept the judge 'openai/gpt-4o'"):
        check_judge_kinds(IIBench(), ["openai/gpt-4o"], {})
    assert [judge_kind(j) for j in ("rules", "human:x", "openai/x")] == ["rules", "human", "model"]


SHOWN = ImageFile("/data/x.jpg", "d1", "JPEG", 4000, 30, (1, 1))
INSTANCE = Case(("k",), "correct", "Which number?", ("It is 16.",), ("16",), outcome_index=0, images=(SHOWN,))


def contextual_judge(limits: ImageLimits | None = None, **chosen: Any) -> ModelJudge:
    """A model as the judge of ConTextual, which is asked up to twice."""
    benchmark = Contextual()
    options = effective(benchmark, benchmark.settings["default"], Spec(task="contextual", set=chosen))
    model = JudgeModel("identity", {"temperature": 0}, limits or ImageLimits())
    return ModelJudge("gpt", model, benchmark, options.benchmark)


def asked(judge: ModelJudge, case: Case = INSTANCE, attempt: int = 0, repeat: int = 0) -> KeyedRequest:
    keyed = judge.request(case, repeat, attempt)
    assert keyed is not None
    return keyed


def replies(judge: ModelJudge, *texts: str | None) -> dict[str, Answer | Failure]:
    """The replies of the judge in draw 0, 1 ...; None for a failed call."""
    return {
        asked(judge, attempt=draw).request.key: Failure("permanent", "no") if text is None else Answer(text)
        for draw, text in enumerate(texts)
    }


@pytest.mark.parametrize(
    ("texts", "expected", "draw"),
    [
        (("Judgement: Yes", "Judgement: No"), "right", 0),
        (("Let me think.", "Judgement: No"), "wrong", 1),
        (("Let me think.", "Still thinking."), "undecided", 1),
        (("Let me think.", None), "undecided", 0),
        (("Let me think.",), "undecided", 0),
        ((None, "Judgement: No"), "error", 0),
        ((), "error", 0),
    ],
)
def test_a_judge_is_asked_a_second_time_after_a_reply_without_a_verdict_and_no_third_time(
    texts: tuple[str | None, ...], expected: str, draw: int
) -> None:
    judge = contextual_judge()
    (verdict,) = judge.decide(INSTANCE, replies(judge, *texts))
    assert (verdict.verdict, verdict.draw) == (expected, draw)
    assert judge.request(INSTANCE, attempt=2) is None


def test_the_second_request_is_the_first_one_with_another_draw() -> None:
    first, second = (asked(contextual_judge(), attempt=draw).request for draw in (0, 1))
    assert (first.messages, first.sampling) == (second.messages, second.sampling)
    assert (first.draw, second.draw) == (0, 1)
    assert first.key != second.key


class Known:
    """Replies by key."""

    def __init__(self, found: Mapping[str, Answer | Failure]) -> None:
        self._found = found

    def look_up(self, keys: Any) -> Mapping[str, Answer | Failure]:
        return {key: self._found[key] for key in keys if key in self._found}


def group(references: tuple[str, ...] = ("16",)) -> Group:
    outcome = Outcome(
        sample="s",
        variant="0-shot",
        draw=0,
        key="k",
        labels={},
        response="It is 16.",
        status="ok",
        finish_reason="stop",
        usage=Usage(),
        verdict="unscored",
        references=references,
        question="Which number?",
    )
    return Group("s", 0, "c", (outcome,), evidence={"k": (SHOWN,)})


def test_only_cases_without_a_verdict_are_asked_again() -> None:
    judge = contextual_judge()
    panel = JudgePanel(benchmark=Contextual(), judges=[judge])
    assert [keyed.request.draw for keyed in panel.requests([group()])] == [0]
    for texts, draws in ((("Judgement: No",), []), (("Hm.",), [1]), ((None,), []), ((), [])):
        known = Known(replies(judge, *texts))
        again = panel.retry_requests([group()], known, 1)
        assert [keyed.request.draw for keyed in again] == draws, texts


def test_the_verdict_of_the_second_reply_counts() -> None:
    judge = contextual_judge()
    known = Known(replies(judge, "Hm.", "Judgement: Yes"))
    (one,) = JudgePanel(benchmark=Contextual(), judges=[judge]).judge([group()], known)
    assert one.group.outcomes[0].verdict == "right"
    assert [(verdict.draw, verdict.verdict) for verdict in one.verdicts] == [(1, "right")]


def test_an_answer_that_humans_never_sampled_is_unscored_unless_another_judge_reads_it() -> None:
    elsewhere = replace(verdict("right", "ann"), targets=("other",))
    sample = RecordedJudge("human:f", [replace(elsewhere, inclusion=0.5)])
    complete = RecordedJudge("human:f", [elsewhere])
    cases: list[tuple[list[Judge], str]] = [
        ([sample], "unscored"),
        ([complete], "undecided"),
        ([sample, complete], "undecided"),
        ([contextual_judge(), sample], "right"),
    ]
    for judges, expected in cases:
        panel = JudgePanel(benchmark=Contextual(), judges=judges)
        (one,) = panel.judge([group()], Known(replies(contextual_judge(), "Judgement: Yes")))
        assert one.group.outcomes[0].verdict == expected
        assert [found.kind for found in one.verdicts if found.kind == "human"] == []


def test_an_answer_without_a_reference_is_unscored_unless_humans_decide() -> None:
    judge = contextual_judge()
    bare = group(references=())
    assert not list(JudgePanel(benchmark=Contextual(), judges=[judge]).requests([bare]))
    humans = RecordedJudge("human:f", [verdict("right", "ann")])
    cases: list[tuple[list[Judge], str]] = [
        ([judge], "unscored"),
        ([judge, humans], "right"),
        ([humans], "right"),
    ]
    for judges, expected in cases:
        (one,) = JudgePanel(benchmark=Contextual(), judges=judges).judge([bare], Known({}))
        assert one.group.outcomes[0].verdict == expected


def test_a_judge_receives_the_image_in_a_form_that_it_accepts() -> None:
    request = asked(contextual_judge(ImageLimits(max_side=1000), judge_image=True)).request
    assert request.images == {SHOWN.path: replace(SHOWN, transform="jpeg-q95-side1000")}
    other = replace(INSTANCE, images=(replace(SHOWN, digest="d2"),))
    assert asked(contextual_judge(judge_image=True), other).request.key != request.key
    assert asked(contextual_judge()).request.images == {}


def test_an_unreadable_image_for_a_judge_is_an_error() -> None:
    judge = contextual_judge(judge_image=True)
    blind = replace(INSTANCE, images=())
    assert judge.request(blind) is None
    (error,) = judge.decide(blind, {})
    assert (error.verdict, error.raw) == ("error", UNREADABLE_IMAGE)
