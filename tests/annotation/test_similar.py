"""Authors see the existing items that are similar to what they write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.annotation.live import NOTHING, most_similar, with_similar
from sightline.annotation.state import State
from sightline.annotation.task import task
from sightline.annotation.types import Entry, Item, Project


@given(st.lists(st.text("ab ", max_size=8), max_size=6), st.text("ab ", min_size=1, max_size=8))
def test_the_same_words_come_first_and_nothing_without_a_common_word(others: list[str], text: str) -> None:
    found = most_similar(text, [*others, text])
    if text.split():
        assert set([*others, text][found[0]].split()) == set(text.split())
    assert len(found) <= 3
    assert all(set([*others, text][place].split()) & set(text.split()) for place in found)


def test_what_others_wrote_is_shown_for_the_question_of_an_author_and_never_the_own_item() -> None:
    project = Project("p", task("author-codis"))
    state = State(project, [Item(number) for number in (1, 2, 3)])
    values = {"category": "Attributes", "question": "Is the train leaving?", "context_1": "It is morning."}
    log = [Entry(number, number, 1, "judge", str(number), 0.0, values) for number in (1, 2)]
    shown = with_similar(state.advance(log[:1]), state.items[1], {"question": ["Is the train leaving?"]})
    assert shown.texts["similar"] == (NOTHING,)
    shown = with_similar(state.advance(log), state.items[1], {"question": ["Is a train leaving?"]})
    assert shown.texts["similar"] == ("Is the train leaving?\nIt is morning.",)
    rate = State(Project("q", task("rate")), [Item(1)])
    assert with_similar(rate, rate.items[1], {}) is rate.items[1]


def test_what_is_written_about_the_same_image_stands_first() -> None:
    project = Project("p", task("author-codis"))
    items = [Item(1, cluster="a"), Item(2, cluster="b"), Item(3, cluster="a")]
    written = [{"question": "Is it up or down?"}, {"question": "Is the train leaving?"}]
    log = [
        Entry(number, number, 1, "judge", str(number), 0.0, values)
        for number, values in enumerate(written, 1)
    ]
    state = State(project, items).advance(log)
    shown = with_similar(state, state.items[3], {"question": ["Is the train leaving now?"]})
    assert shown.texts["similar"] == ("Is it up or down?", "Is the train leaving?")
