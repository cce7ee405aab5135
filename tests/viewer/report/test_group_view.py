"""A group on a page: what probes share stands once, what differs stands side by side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.viewer.report.conftest import Render, parse_errors
from tests.viewer.report.groups import detail, outcome, shown

from sightline.types import Verdict
from sightline.viewer.group_view import GroupView, group_view, mark_differences
from sightline.viewer.index_types import SimilarityMatrix

GROUPS = '{% import "groups.html" as g %}'
WHOLE = GROUPS + (
    "<!doctype html><html lang=en><head><title>x</title></head><body>{{ g.brief(v) }}{{ g.subject(v) }}"
    "{{ g.probes(v) }}{% if v.options %}{{ g.options(v) }}{% endif %}"
    "{% if v.matrix %}{{ g.similarity(v) }}{% endif %}</body></html>"
)


def contexts() -> GroupView:
    pair = [
        outcome("context_1", "It is east.", "wrong", context="Early.", references=("West.",)),
        outcome("context_2", "It is west.", "right", context="Late.", references=("East.",)),
    ]
    return group_view(detail(pair, [["a.jpg"], ["a.jpg"]]), shown)


def styles() -> GroupView:
    probes = [outcome(name, f"a {name} church", references=("church",)) for name in ("candy", "mosaic")]
    matrix = SimilarityMatrix(("candy", "mosaic"), ((None, 0.93), (0.5, None)), 0.7)
    return group_view(detail(probes, [["c.png"], ["m.png"]], similarity=matrix), shown)


def choices() -> GroupView:
    options = ("peace", "war", "love")
    probes = [
        outcome("order_0", "(B)", "wrong", options=options, extracted="B", references=("C",)),
        outcome("order_1", "A", "right", options=options[::-1], extracted="A", references=("A",)),
        outcome("order_2", "Hm", "miss", options=options, references=("C",)),
    ]
    return group_view(detail(probes), shown)


def test_contexts_share_image_and_question() -> None:
    view = contexts()
    assert [image.name for image in view.images] == ["a.jpg"]
    assert view.question == "Which way?"
    assert view.own_part == "Context"
    assert [(probe.label, probe.references) for probe in view.probes] == [
        ("Early.", ("West.",)),
        ("Late.", ("East.",)),
    ]


def test_styles_have_their_own_images_and_share_the_reference() -> None:
    view = styles()
    assert (view.images, view.references, view.own_part) == ((), ("church",), "Variant")
    assert [probe.images[0].name for probe in view.probes] == ["c.png", "m.png"]
    assert [[cell.text for cell in row] for row in view.matrix] == [["·", ".93"], [".50", "·"]]
    assert view.matrix[0][1].over
    assert not view.matrix[1][0].over


def test_rephrasings_have_their_own_questions() -> None:
    probes = [outcome("r1", "fish", question="What is it?"), outcome("r2", "fish", question="Name it.")]
    view = group_view(detail(probes), shown)
    assert (view.question, view.own_part) == ("", "Question")
    assert [probe.label for probe in view.probes] == ["What is it?", "Name it."]


def images_with_opposite_answers() -> GroupView:
    probes = [
        outcome("first", "A", "right", options=("on", "off"), extracted="A", references=("A",)),
        outcome("second", "A", "wrong", options=("on", "off"), extracted="A", references=("B",)),
    ]
    return group_view(detail(probes, [["1.png"], ["2.png"]]), shown)


def test_no_option_is_marked_right_where_the_probes_have_different_right_ones(render: Render) -> None:
    view = images_with_opposite_answers()
    assert [row.is_reference for row in view.options] == [False, False]
    page = render(WHOLE, v=view)
    assert all(shown in page for shown in ("1.png", "2.png", "Reference: A", "Reference: B"))


def test_options_follow_their_texts_over_orders() -> None:
    rows = choices().options
    assert [(row.letter, row.is_reference, row.chosen) for row in rows] == [
        ("A", False, (None, None, None)),
        ("B", False, ("wrong", None, None)),
        ("C", True, (None, "right", None)),
        ("", False, (None, None, "miss")),
    ]


def test_a_probe_shows_the_verdict_of_every_judge_on_it() -> None:
    verdict = Verdict(
        targets=("key-a",),
        question="correct",
        scorer="s",
        judge="gpt",
        kind="model",
        verdict="right",
        raw="yes",
    )
    other = Verdict(
        targets=("key-a", "key-b"),
        question="same_meaning",
        scorer="s",
        judge="gpt",
        kind="model",
        verdict="right",
    )
    view = group_view(detail([outcome("a", "x"), outcome("b", "y")], verdicts=[verdict, other]), shown)
    assert [(line.judge, line.raw) for line in view.probes[0].judges] == [("gpt", "yes")]
    assert view.probes[1].judges == ()


@pytest.mark.parametrize("view", [contexts(), styles(), choices(), images_with_opposite_answers()])
def test_every_view_is_valid_html(render: Render, view: GroupView) -> None:
    assert parse_errors(render(WHOLE, v=view)) == []


def test_hostile_texts_of_a_group_stay_texts(render: Render) -> None:
    bad = "</p><script>alert(1)</script><img src=x> {{ 1/0 }} \u202e\x00" + "x" * 1_000_000
    probe = outcome(
        bad,
        bad,
        question=bad,
        context=bad,
        references=(bad,),
        prompt=bad,
        extracted=bad,
        judge=bad,
        error=bad[:100],
        labels={bad: bad, "more": (bad, bad)},
    )
    view = group_view(detail([probe, outcome("b", "b")], [[bad], ["b"]], flags=(bad,), sample=bad), shown)
    page = render(WHOLE, v=view)
    assert parse_errors(page) == []
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "characters are not shown" in page


@pytest.mark.parametrize(
    ("status", "notice"),
    [("empty", "[empty response]"), ("not_sent", "[not sent]"), ("error", "[no answer]")],
)
def test_a_missing_response_says_why(status: str, notice: str) -> None:
    view = group_view(detail([outcome("a", "", status=status)]), shown)
    assert view.probes[0].notice == notice


@given(st.lists(st.text(alphabet="ab \n.", max_size=30), max_size=4))
def test_marked_pieces_are_the_whole_response(responses: list[str]) -> None:
    assert ["".join(p.text for p in pieces) for pieces in mark_differences(responses)] == responses


def test_only_words_that_others_lack_are_marked() -> None:
    marked = mark_differences(["a red door in a church", "A green door in a church.", "the door in a church"])
    assert [[piece.text for piece in pieces if piece.marked] for pieces in marked] == [
        ["a red"],
        ["A green"],
        ["the"],
    ]


def test_responses_without_a_common_word_are_not_marked() -> None:
    assert not any(piece.marked for pieces in mark_differences(["east", "west"]) for piece in pieces)


def test_a_report_shows_the_questions_and_references_of_images_that_differ_in_both(render: Render) -> None:
    probes = [
        outcome("i0", "Yes", "right", references=("Yes",), question="Is it up?"),
        outcome("i1", "Yes", "wrong", references=("No",), question="Is it down?"),
    ]
    view = group_view(detail(probes, [["a.png"], ["b.png"]]), shown)
    page = render(GROUPS + "{{ g.brief(v) }}", v=view)
    assert all(words in page for words in ("Is it up?", "Is it down?", "Reference: Yes", "Reference: No"))
