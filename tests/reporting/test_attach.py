"""The published figures stand beside the right values of a run, and say where they do not compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.released import add_published, published, rows
from sightline.errors import UserError
from sightline.types import MetricValue, PublishedValue, Result

Make = Callable[..., Result]


def figures(result: Result, metric: str, subset: str = "all") -> list[PublishedValue]:
    """What stands beside a value."""
    (found,) = [m for m in result.metrics if (m.metric, m.subset) == (metric, subset)]
    return found.published or []


def test_humans_stand_beside_every_run_and_the_row_asked_for_before_them(codis: Make) -> None:
    assert [v.row for v in figures(add_published(codis()), "acc_p")] == ["Human"]
    assert [v.row for v in figures(add_published(codis(), "gpt-4v"), "acc_p")] == [
        "GPT-4V",
        "GPT-4V",
        "Human",
    ]
    assert [v.row for v in figures(add_published(codis(), "human"), "acc_p")] == ["Human"]


def test_all_rows_asked_for_stand_beside_a_run_in_their_order(codis: Make) -> None:
    attached = add_published(codis(), "Gemini", "gpt-4v", "Human")
    assert list(dict.fromkeys(v.row for v in figures(attached, "acc_p"))) == ["Gemini", "GPT-4V", "Human"]


def test_the_agreement_of_table_7_stands_beside_that_of_humans_and_a_model(codis: Make) -> None:
    plain = codis()
    ours = MetricValue("agreement_with_humans", "all", 95.0, 706, 216)
    pair = MetricValue("agreement", "judges=ann and rules", 95.0, 706, 216)
    attached = add_published(replace(plain, metrics=[*plain.metrics, ours, pair]), "GPT-4V")
    (figure,) = figures(attached, "agreement_with_humans")
    assert (figure.table, figure.value, figure.comparable) == ("Table 7", 97.6, True)
    assert figures(attached, "agreement", "judges=ann and rules") == []


def test_attaching_changes_nothing_but_what_is_published(codis: Make) -> None:
    plain = codis()
    attached = add_published(plain, "GPT-4V")
    assert all(metric.published is None for metric in plain.metrics)
    assert add_published(attached) == add_published(plain)
    assert [(m.metric, m.subset, m.value) for m in attached.metrics] == [
        (m.metric, m.subset, m.value) for m in plain.metrics
    ]


def test_a_run_over_everything_is_comparable(codis: Make, iibench: Make) -> None:
    assert all(v.comparable for v in figures(add_published(codis(), "GPT-4V"), "acc_p"))
    assert all(v.comparable for v in figures(add_published(iibench(), "GPT-4V"), "accuracy"))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"samples": 40, "options": {"limit": 40}}, "40 questions here, 1,399 in the paper"),
        ({"samples": 35, "options": {"split": "dev"}}, "split dev here, test in the paper"),
        ({"options": {"extraction": "strict"}}, "extraction strict here, released in the paper"),
        ({"options": {"augment": "layout"}}, "augment layout here, none in the paper"),
    ],
)
def test_a_run_on_other_questions_or_terms_is_not_comparable(
    iibench: Make, changes: dict[str, Any], why: str
) -> None:
    values = figures(add_published(iibench(**changes), "GPT-4V"), "accuracy")
    assert len(values) == 2
    assert all(not value.comparable and why in (value.note or "") for value in values)


def test_options_can_make_another_setting_of_the_paper(codis: Make) -> None:
    options = {"instructions": True, "cot": False, "context": True, "image": "shown"}
    (value,) = figures(add_published(codis(options=options), "GPT-4V"), "acc_p")
    assert (value.value, value.table, value.comparable) == (22.0, "Table 13", False)
    assert figures(add_published(codis(options={**options, "context": False}), "GPT-4V"), "acc_p") == []


@pytest.mark.parametrize(
    ("task", "chosen", "printed"),
    [
        ("rephrasing", {}, (31.01, "Table 2")),
        ("restyling", {}, (10.47, "Table 3")),
        ("context", {}, (28.67, "Table 4")),
        ("context", {"unchanged": True}, (28.34, "Table 4")),
        ("restyling", {"size": 640}, (12.6, "Table 8")),
        ("restyling", {"size": "640"}, (12.6, "Table 8")),
        ("context", {"sampling": {"temperature": 0.7}}, (20.1, "Table 9")),
        ("context", {"sampling": {"temperature": 1.0}}, (22.9, "Table 9")),
        ("context", {"sampling": {"temperature": None}}, (28.67, "Table 4")),
        ("context", {"sampling": None}, (28.67, "Table 4")),
    ],
)
def test_the_figure_beside_is_that_of_the_size_temperature_or_sampling_that_was_run(
    mmr3: Make, task: str, chosen: dict[str, Any], printed: tuple[float, str]
) -> None:
    (value,) = figures(add_published(mmr3(task, chosen=chosen), "LLaVa 1.5M"), "acc")
    assert (value.value, value.table, value.comparable) == (*printed, True)


def test_no_figure_stands_beside_what_the_paper_did_not_run(mmr3: Make) -> None:
    for chosen in ({"size": 512}, {"size": 224, "unchanged": True}):
        assert figures(add_published(mmr3(chosen=chosen), "BLIP-2"), "acc") == []


def test_where_the_temperature_has_no_figure_of_its_own_the_row_is_at_another_and_says_so(
    mmr3: Make,
) -> None:
    result = add_published(mmr3(chosen={"sampling": {"temperature": 0.2}}), "mPLUG-Owl2")
    (overall,) = figures(result, "acc")
    (candy,) = figures(result, "acc", "style=candy")
    assert (overall.value, overall.table, overall.comparable) == (9.6, "Table 9", True)
    assert (candy.value, candy.comparable) == (8.33, False)
    assert candy.note == "temperature 0.2 here, 0.7 in the paper"


def test_another_embedding_model_leaves_only_accuracy_comparable(mmr3: Make) -> None:
    result = add_published(mmr3(chosen={"embedder": "all-mpnet-base-v2"}), "GPT-4o")
    assert [v.comparable for v in figures(result, "acc")] == [True]
    assert [v.comparable for v in figures(result, "acc_minus_sampling")] == [True]
    for metric in ("s_gt", "con", "s_c", "con_minus_sampling", "s_gt_failures"):
        (value,) = figures(result, metric)
        assert not value.comparable
        assert value.note == "embedder all-mpnet-base-v2 here, all-MiniLM-L6-v2 in the paper"


def test_the_starred_figures_compare_only_where_empty_answers_are_left_out_and_the_others_where_not(
    mmr3: Make,
) -> None:
    for empty, comparable in (("count", [False, True]), ("ignore", [True, False])):
        restyled = mmr3("restyling", chosen={"empty": empty, "sampling": None})
        masked = mmr3("context", chosen={"empty": empty, "sampling": None})
        (starred,) = figures(add_published(restyled, "blip 2 opt2.7b"), "con")
        (plain,) = figures(add_published(masked, "blip 2 opt2.7b"), "con")
        assert [starred.comparable, plain.comparable] == comparable
        assert "empty responses left out in the paper" in (starred.note or "")


@pytest.mark.parametrize("task", ["rephrasing", "restyling", "context"])
def test_a_task_compares_with_the_groups_of_its_own_test_set(mmr3: Make, task: str) -> None:
    whole, part = add_published(mmr3(task), "BLIP-2"), add_published(mmr3(task, samples=40), "BLIP-2")
    assert figures(whole, "con")[0].comparable
    (value,) = figures(part, "con")
    assert f"40 groups here, {whole.samples:,} in the paper" in (value.note or "")


def test_a_paper_without_humans_sets_only_the_row_asked_for_beside_a_run(mmr3: Make) -> None:
    assert figures(add_published(mmr3()), "acc") == []
    assert [v.row for v in figures(add_published(mmr3(), "GPT-4o"), "acc")] == ["GPT-4o"]


def test_a_row_without_figures_for_the_setting_gets_a_note(iibench: Make) -> None:
    result = add_published(iibench(setting="2-shot", options={}), "GPT-4o")
    assert result.notes == [
        "Liu et al. 2024, II-Bench, arXiv 2406.05862: no figure of GPT-4o for this setting"
    ]


def test_a_value_that_is_not_known_still_has_its_published_figure(codis: Make) -> None:
    assert [v.value for v in figures(add_published(codis(), "Gemini"), "output_variability")] == [53.5, 81.9]


def test_a_benchmark_without_paper_has_no_rows_and_nothing_to_compare_with(codis: Make) -> None:
    own = codis(benchmark="groups")
    assert rows("groups") == []
    assert add_published(own) is own
    with pytest.raises(UserError, match="no published figures of 'groups'"):
        add_published(own, "GPT-4V")


def test_a_setting_beyond_the_paper_has_no_figures(codis: Make) -> None:
    assert published("codis", "no-image", "GPT-4V") == {}
    assert all(metric.published is None for metric in add_published(codis(setting="no-image")).metrics)


def test_a_subset_of_fewer_samples_than_the_papers_is_not_comparable(iibench: Make) -> None:
    """A key for a tenth of the questions leaves a tenth of every label."""
    whole = iibench()
    part = replace(whole, metrics=[replace(metric, n=metric.n // 10) for metric in whole.metrics])
    for result, comparable in ((whole, True), (part, False)):
        attached = add_published(result, "GPT-4V")
        for subset in ("all", "domain=Life", "domain=Environment"):
            (value, *_) = figures(attached, "accuracy", subset)
            assert value.comparable == comparable, subset
    (life, *_) = figures(add_published(part, "GPT-4V"), "accuracy", "domain=Life")
    assert life.note == "over 58 here, 585 in the paper"


@pytest.mark.parametrize("metric", ["acc_p", "acc_q", "context_awareness"])
def test_a_judge_of_few_of_the_pairs_is_not_comparable(codis: Make, metric: str) -> None:
    """The run has all 353 pairs; humans decided a few of them."""
    whole = codis()
    few = replace(whole, metrics=[replace(one, n=8) for one in whole.metrics])
    assert not any(value.comparable for value in figures(add_published(few, "GPT-4V"), metric))


def test_draws_do_not_stand_for_samples(iibench: Make) -> None:
    """A tenth of the questions, asked ten times, is no whole split."""
    drawn = iibench(options={"repeats": 10})
    (value, *_) = figures(add_published(drawn, "GPT-4V"), "accuracy")
    assert value.note == "over 1,399 here, 13,990 in the paper"


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("synthetic", "the data are synthetic, so published figures are not shown"),
        (
            "other_data",
            "the data are not verifiably those that the paper released, so published figures are not shown",
        ),
    ],
)
def test_nothing_published_stands_beside_other_data_and_a_note_says_why(
    codis: Make, option: str, why: str
) -> None:
    result = add_published(add_published(codis(options={option: True}), "GPT-4V"))
    assert all(metric.published is None for metric in result.metrics)
    assert result.notes == [why]
    with pytest.raises(UserError, match="did you mean 'GPT-4V'"):
        add_published(codis(options={option: True}), "GPT-4W")
