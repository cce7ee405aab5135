"""A result counts every answer once, and its metrics are those of the verdicts that count."""

from __future__ import annotations

from msgspec.structs import replace
from tests.evaluation.conftest import Collect, Describe, OneWord

from sightline.evaluation.judges import Judge, JudgedGroup, JudgePanel, RecordedJudge, RulesJudge
from sightline.evaluation.options import EvaluationDescription
from sightline.evaluation.plan import CollectedAnswers
from sightline.evaluation.result import Aggregate, aggregate
from sightline.types import Result, Verdict

RULES = RulesJudge(OneWord(), {})


def aggregated(
    description: EvaluationDescription,
    collected: CollectedAnswers,
    *judges: Judge,
    written: list[JudgedGroup] | None = None,
) -> Aggregate:
    panel = JudgePanel(benchmark=OneWord(), judges=judges or [RULES])
    on_group = None if written is None else written.append
    return aggregate(description, collected, panel, collected.answers, on_group=on_group)


def values(result: Result, metric: str) -> dict[str, tuple[float | None, float]]:
    return {value.subset: (value.value, value.n) for value in result.metrics if value.metric == metric}


def human(key: str, verdict: str) -> Verdict:
    return Verdict(
        targets=(key,),
        question="correct",
        scorer="h",
        judge="human:h",
        kind="human",
        verdict=verdict,  # type: ignore[arg-type]
    )


def test_a_probe_without_an_answer_counts_as_not_right_and_is_listed(
    collect: Collect, describe: Describe
) -> None:
    found = aggregated(describe(), collect(a="yes", b=None, c="no"))
    assert (found.result.samples, found.result.probes, found.result.errors) == (3, 3, 1)
    assert values(found.result, "acc")["all"] == (100 / 3, 3)
    assert found.unanswered == [("b", "q", "no server")]


def test_a_metric_has_a_value_for_each_value_of_each_label(collect: Collect, describe: Describe) -> None:
    result = aggregated(describe(), collect(a1="yes", a2="no", b="yes")).result
    assert values(result, "acc") == {"all": (200 / 3, 3), "first=a": (50, 2), "first=b": (100, 1)}


def test_every_judged_group_is_handed_over_once_in_the_order_of_the_samples(
    collect: Collect, describe: Describe
) -> None:
    written: list[JudgedGroup] = []
    aggregated(describe(), collect(a="yes", b="no"), written=written)
    assert [(judged.group.id, judged.group.outcomes[0].verdict) for judged in written] == [
        ("a", "right"),
        ("b", "wrong"),
    ]


def test_several_judges_have_a_value_each_and_the_first_that_decides_counts(
    collect: Collect, describe: Describe
) -> None:
    judges = [RecordedJudge("human:h", [human("a", "wrong")]), RULES]
    result = aggregated(describe(judges=("human:h", "rules")), collect(a="yes", b="yes"), *judges).result
    assert values(result, "acc")["all"] == (50, 2)
    assert values(result, "acc")["judge=rules"] == (100, 2)
    assert result.judge == "human:h, rules (decides: first)"
    assert "agreement" in result.metric_definitions


def test_verdicts_of_a_human_that_fit_no_answer_get_a_note(collect: Collect, describe: Describe) -> None:
    judges = [RecordedJudge("human:h", [human("other", "wrong")]), RULES]
    result = aggregated(describe(judges=("human:h", "rules")), collect(a="yes"), *judges).result
    assert any(note.startswith("human:h: none of its 1 verdicts") for note in result.notes)


def test_the_digest_of_the_data_depends_on_their_images(collect: Collect, describe: Describe) -> None:
    first, same, other = (aggregated(describe(), collect(**{name: "yes"})).result for name in ("a", "a", "b"))
    assert first.data_digest == same.data_digest != other.data_digest


def test_the_digest_of_the_data_does_not_depend_on_the_order_of_samples(
    collect: Collect, describe: Describe
) -> None:
    orders = (collect(a="yes", b="no"), collect(b="no", a="yes"))
    assert len({aggregated(describe(), one).result.data_digest for one in orders}) == 1


def test_the_digest_of_the_data_does_not_depend_on_repeats(collect: Collect, describe: Describe) -> None:
    once = collect(a="yes", b="no")
    twice = [replace(probe, draw=draw) for probe in once.probes() for draw in (0, 1)]
    results = [
        aggregated(describe(), collected).result for collected in (once, replace(once, probes=lambda: twice))
    ]
    assert len({result.data_digest for result in results}) == 1
    assert [result.probes for result in results] == [2, 4]


def test_a_probe_that_was_not_sent_is_no_error_and_in_no_metric(collect: Collect, describe: Describe) -> None:
    sent = aggregated(describe(), collect(a="yes", b=None, c="no")).result
    result = aggregated(describe(), collect(a="yes", b=None, c="no", d="", e="")).result
    assert (result.probes, result.errors, result.not_sent, result.unscored) == (5, 1, 2, 0)
    assert values(result, "acc")["all"] == values(sent, "acc")["all"] == (100 / 3, 3)
    (note,) = [note for note in result.notes if note.startswith("incomplete: 2 of 5 probes were not sent")]
    assert "2 groups are left out of all metrics" in note


def test_where_nothing_was_answered_there_is_no_value(collect: Collect, describe: Describe) -> None:
    for texts in ({"a": None, "b": None}, {"a": "", "b": ""}):
        (value, *_) = aggregated(describe(), collect(**texts)).result.metrics
        assert (value.value, value.n, value.reason) == (None, 0, "no probe was answered")
    result = aggregated(describe(), collect(a="yes", b=None)).result
    assert values(result, "acc") == {"all": (50, 2), "first=a": (100, 1), "first=b": (None, 0)}
