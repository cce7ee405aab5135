"""The index lists exactly the groups of a run that a filter describes, each once, in the documented order."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import combinations, pairwise, product

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.viewer.index.conftest import RunGroups

from sightline.errors import UserError
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.result import recompute
from sightline.scoring.chosen import chosen_option
from sightline.store import schema
from sightline.store.store import Store
from sightline.types import Group, Outcome
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import CHOICES, GroupFilter, Order, filter_of, stored_orders

filters = st.builds(
    GroupFilter,
    right=st.sampled_from([None, *CHOICES["right"]]),
    consistency=st.sampled_from([None, None, *CHOICES["consistency"]]),
    verdict=st.sampled_from([None, None, *CHOICES["verdict"]]),
    judges=st.sampled_from([None, None, None, *CHOICES["judges"]]),
    length=st.sampled_from([None, None, *CHOICES["length"]]),
    labels=st.lists(
        st.sampled_from([("colour", "red"), ("colour", "green"), ("style", "s2"), ("style", "none")]),
        max_size=2,
        unique=True,
    ).map(tuple),
    search=st.sampled_from(["", "", "apple", "CAFE plum", "very", "nowhere", "17", "<b>"]),
)


def judged_groups(store: Store, run: int = 1) -> list[JudgedGroup]:
    found: list[JudgedGroup] = []
    recompute(store, run, on_group=found.append)
    return found


def fulfils(judged: JudgedGroup, wanted: GroupFilter) -> bool:
    """The filter in plain words, from the lines of the group."""
    group = judged.group
    values = {pair for one in group for pair in one.labels.items()}
    return (
        wanted.right in (None, right_share(group))
        and wanted.consistency in (None, consistency(group) or "incomparable")
        and (wanted.verdict is None or wanted.verdict in {one.verdict for one in group})
        and wanted.judges is None  # there is one judge, by rules
        and wanted.length in (None, longest(group))
        and all(label in values for label in wanted.labels)
        and words(wanted.search) <= words(" ".join(text for one in group for text in texts(one)))
        and (not wanted.search or bool(words(wanted.search)))
    )


def texts(outcome: Outcome) -> Iterable[str]:
    return (outcome.sample, outcome.question, outcome.response, outcome.prompt, *outcome.options)


def words(text: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", text.casefold().replace("é", "e")))


def right_share(group: Group) -> str:
    """The share that every way to decide the open verdicts gives; undecided if they give several."""
    open_verdicts = {"undecided": (True, False), "error": (True, False), "right": (True,)}
    ways = product(*(open_verdicts.get(one.verdict, (False,)) for one in group))
    found = {"all" if all(right) else "some" if any(right) else "none" for right in ways}
    return found.pop() if len(found) == 1 else "undecided"


def consistency(group: Group) -> str | None:
    """All questions of a group have the same reference: two answers must choose the same option."""
    chosen = [chosen_option(one) for one in group if one.answered]
    same = [one is not None and one == other for one, other in combinations(chosen, 2)]
    if len(group) == 1:
        return None
    if not all(same):
        return "inconsistent"
    return "consistent" if len(chosen) == len(group) else "undecided"


def longest(group: Group) -> str:
    most = max(len(one.response.split()) for one in group)
    bounds = {"empty": 0, "1-5": 5, "6-50": 50, "51-200": 200, "over-200": 10**9}
    return next(name for name, bound in bounds.items() if most <= bound)


def order(judged: JudgedGroup) -> tuple[bool, bool, int]:
    """Complete groups first, inconsistent ones before consistent ones, then by right answers."""
    group = judged.group
    shares = ["none", "some", "undecided", "all"]
    return (
        not all(one.answered for one in group),
        consistency(group) != "inconsistent",
        shares.index(right_share(group)),
    )


def pages(index: OutcomeIndex, wanted: GroupFilter, limit: int) -> list[int]:
    """The numbers of the groups of all pages."""
    found: list[int] = []
    after, total = None, None
    while True:
        page = index.open(1).page(wanted, after, limit)
        assert total in (None, page.total)
        total = page.total
        found += [row.number for row in page.rows]
        after = page.next
        if after is None:
            assert len(found) == total
            return found
        assert len(page.rows) == limit


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=filters, limit=st.integers(1, 40))
def test_the_pages_of_a_filter_hold_exactly_the_groups_that_fulfil_it_in_order(
    wanted: GroupFilter, limit: int, built: tuple[OutcomeIndex, list[JudgedGroup]]
) -> None:
    index, judged = built
    expected = [number for number, one in enumerate(judged, start=1) if fulfils(one, wanted)]
    expected.sort(key=lambda number: order(judged[number - 1]))
    assert pages(index, wanted, limit) == expected


@pytest.mark.slow
def test_a_row_names_the_pairs_that_make_its_group_inconsistent(
    built: tuple[OutcomeIndex, list[JudgedGroup]],
) -> None:
    index, judged = built
    for number, one in enumerate(judged, 1):
        (row,) = index.open(1).rows([number])
        options = [chosen_option(outcome) if outcome.answered else None for outcome in one.group]
        answered = [place for place, outcome in enumerate(one.group) if outcome.answered]
        differing = {
            (first, second)
            for first, second in combinations(answered, 2)
            if options[first] is None or options[first] != options[second]
        }
        assert {(pair.first, pair.second) for pair in row.misfits} == differing
        assert bool(row.misfits) == (row.consistency == "inconsistent")


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=filters, limit=st.integers(1, 40), order=st.sampled_from(["data", "length"]))
def test_other_orders_hold_the_same_groups_on_their_pages_and_as_neighbours(
    wanted: GroupFilter, limit: int, order: Order, built: tuple[OutcomeIndex, list[JudgedGroup]]
) -> None:
    index, judged = built
    expected = [number for number, one in enumerate(judged, start=1) if fulfils(one, wanted)]
    if order == "length":
        words = [max(len(one.response.split()) for one in group.group) for group in judged]
        expected.sort(key=lambda number: -words[number - 1])
    found: list[int] = []
    after = None
    while True:
        page = index.open(1).page(wanted, after, limit, order)
        assert page.total == len(expected)
        found += [row.number for row in page.rows]
        after = page.next
        if after is None:
            break
    assert found == expected
    for before, number in pairwise(expected[:6]):
        assert index.open(1).neighbours(before, wanted, order).next == number
        assert index.open(1).neighbours(number, wanted, order).previous == before


@pytest.mark.slow
def test_an_order_that_was_not_measured_is_not_offered(
    built: tuple[OutcomeIndex, list[JudgedGroup]],
) -> None:
    index = built[0].open(1)
    assert index.orders == ("informative", "data", "length")
    with pytest.raises(UserError, match="informative or data or length"):
        index.page(order="similarity")


def test_the_least_similar_groups_come_first_and_those_without_a_similarity_last() -> None:
    ranks, words = array("I", [3, 0, 2, 1]), array("I", [5, 5, 5, 5])
    found = stored_orders(ranks, words, array("d", [0.9, math.nan, 0.2, 0.9]))
    assert {name: order.tolist() for name, order in found.items()} == {"similarity": [2, 3, 1, 0]}


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=filters)
def test_each_count_of_a_facet_is_the_number_of_groups_that_the_filter_with_its_value_selects(
    wanted: GroupFilter, built: tuple[OutcomeIndex, list[JudgedGroup]]
) -> None:
    index, judged = built
    facets = index.open(1).facets(wanted)
    assert facets.total == sum(fulfils(one, wanted) for one in judged)
    for facet in facets.facets:
        for value in facet.values:
            if facet.label:
                others = [label for label in wanted.labels if label[0] != facet.label]
                chosen = msgspec.structs.replace(wanted, labels=(*others, (facet.label, value.value)))
            else:
                chosen = msgspec.structs.replace(wanted, **{facet.name: value.value})
            assert value.count == sum(fulfils(one, chosen) for one in judged), facet


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=filters, number=st.integers(1, 150))
def test_the_neighbours_of_a_group_are_those_of_the_list(
    wanted: GroupFilter, number: int, built: tuple[OutcomeIndex, list[JudgedGroup]]
) -> None:
    index, _ = built
    listed = pages(index, wanted, 40)
    found = index.open(1).neighbours(number, wanted)
    if number in listed:
        place = listed.index(number)
        assert found.previous == (listed[place - 1] if place else None)
        assert found.next == (listed[place + 1] if place + 1 < len(listed) else None)


@pytest.fixture
def built(store: Store) -> tuple[OutcomeIndex, list[JudgedGroup]]:
    index = OutcomeIndex(store)
    index.build(1)
    return index, judged_groups(store)


@given(wanted=filters)
def test_a_filter_in_a_url_is_read_back(wanted: GroupFilter) -> None:
    assert filter_of(wanted.to_query()) == wanted


def test_an_unknown_value_of_a_filter_is_refused_with_the_possible_ones() -> None:
    with pytest.raises(UserError, match=r"field right.*found 'half'.*all or some or none"):
        filter_of([("right", "half")])


@pytest.mark.slow
def test_a_group_has_the_lines_of_the_results_folder(
    built: tuple[OutcomeIndex, list[JudgedGroup]],
) -> None:
    index, judged = built
    for number, one in enumerate(judged, start=1):
        detail = index.open(1).group(number)
        assert detail.outcomes == one.group.outcomes
        assert detail.verdicts == tuple(one.verdicts)
        assert detail.row.number == number
        assert [mark.verdict for mark in detail.row.marks] == [o.verdict for o in one.group]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 151])
def test_a_group_that_does_not_exist_is_an_error(
    number: int, built: tuple[OutcomeIndex, list[JudgedGroup]]
) -> None:
    with pytest.raises(UserError, match="a number from 1 to 150"):
        built[0].open(1).group(number)


@pytest.mark.slow
def test_the_result_is_that_of_a_report(built: tuple[OutcomeIndex, list[JudgedGroup]], store: Store) -> None:
    assert built[0].summary(1).result == recompute(store, 1)


@pytest.mark.slow
def test_an_index_is_ready_until_an_answer_that_was_missing_arrives(
    store: Store, answer_one: Callable[[], None]
) -> None:
    index = OutcomeIndex(store)
    assert index.state(1).step == "absent"
    index.build(1)
    assert OutcomeIndex(store).state(1).step == "ready"
    answer_one()
    assert index.state(1).step == "stale"
    index.build(1)
    assert index.state(1).step == "ready"
    assert len(index_ids(store)) == 1


@pytest.fixture
def answer_one(store: Store) -> Callable[[], None]:
    """Adds the answer to a probe that has none, as the same command again would."""
    from sightline.store.answers import Attempt
    from sightline.types import Answer

    def add() -> None:
        (failed, *_) = [o for one in judged_groups(store) for o in one.group if not o.answered]
        request = store.answers.request(failed.key) or b"{}"
        store.answers.add([Attempt(failed.key, request, Answer("plum"))])

    return add


def index_ids(store: Store) -> list[int]:
    with store.database.core_read() as connection:
        return list(connection.scalars(schema.indexes.select().with_only_columns(schema.indexes.c.id)))


@pytest.mark.slow
def test_an_interrupted_build_leaves_nothing_and_the_next_one_succeeds(store: Store) -> None:
    index = OutcomeIndex(store)

    def interrupt(done: int, total: int) -> None:
        assert total == 150
        if done == 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.build(1, interrupt)
    assert index_ids(store) == []
    index.build(1)
    assert index.open(1).page().total == 150


@pytest.mark.slow
def test_a_dropped_index_is_built_again(store: Store) -> None:
    index = OutcomeIndex(store)
    index.build(1)
    index.open(1).page(GroupFilter(search="plum"))
    with store.database.core_write() as connection:
        schema.drop_tables(connection)
        assert schema.existing(connection) == []
    again = OutcomeIndex(store)
    assert again.state(1).step == "absent"
    again.build(1)
    assert again.open(1).page().total == 150


@pytest.mark.slow
def test_two_runs_have_indexes_of_their_own(store: Store, run_groups: RunGroups) -> None:
    assert run_groups(seed=3) == 2
    index = OutcomeIndex(store)
    for run in (1, 2):
        index.build(run)
    for run in (1, 2):
        wanted = GroupFilter(verdict="error", search="very")
        expected = sum(fulfils(one, wanted) for one in judged_groups(store, run))
        assert index.open(run).page(wanted).total == expected
    assert [one.groups for one in index.runs()] == [150, 150]


@pytest.mark.slow
def test_the_first_search_makes_the_words_once_and_reports_its_progress(store: Store) -> None:
    index = OutcomeIndex(store)
    index.build(1)
    run = index.open(1)
    steps: list[tuple[int, int]] = []
    run.make_words(lambda done, total: steps.append((done, total)))
    assert steps[-1] == (150, 150)
    run.make_words(lambda done, total: steps.clear())
    assert steps


@pytest.mark.slow
@pytest.mark.parametrize("others_share", [0.0, 0.3, 1.0])
def test_words_that_two_processes_make_at_once_or_one_continues_find_the_same_groups(
    others_share: float, store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.viewer.run_index.WORDS_TOGETHER", 20)
    OutcomeIndex(store).build(1)
    run, second = OutcomeIndex(store).open(1), Store.open(store_url)
    other = OutcomeIndex(second).open(1)

    def stop(done: int, total: int) -> None:
        if done >= others_share * total:
            raise KeyboardInterrupt

    def meanwhile(done: int, total: int) -> None:
        if done == 20:
            with suppress(KeyboardInterrupt):
                other.make_words(stop)

    run.make_words(meanwhile)
    for word in ("plum", "cafe", "149"):
        wanted = GroupFilter(search=word)
        expected = sum(fulfils(one, wanted) for one in judged_groups(store, 1))
        assert run.page(wanted).total == other.page(wanted).total == expected
    second.close()
