"""The index lists exactly the groups of a run that a filter describes, each once, in the documented order."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise, product
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.viewer.index.conftest import RunGroups, write_lines

import sightline
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.result import recompute
from sightline.scoring.chosen import chosen_option
from sightline.store.store import Store
from sightline.types import Group, Outcome
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import CHOICES, GroupFilter, Order, filter_of

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
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=filters, also=st.sets(st.integers(1, 20), min_size=1))
def test_named_groups_are_listed_beside_those_that_a_filter_selects(
    wanted: GroupFilter, also: set[int], built: tuple[OutcomeIndex, list[JudgedGroup]]
) -> None:
    index, judged = built
    expected = {number for number, one in enumerate(judged, start=1) if fulfils(one, wanted)} | also
    page = index.open(1).page(wanted, limit=len(judged), also=also)
    assert {row.number for row in page.rows} == expected
    assert page.total == len(expected)


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


def test_the_least_similar_groups_come_first_and_those_without_a_similarity_last(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {"group": f"g{number}", "variant": "v", "prompt": "p", "references": ["a"]} for number in range(4)
    ]
    data = write_lines(tmp_path / "groups.jsonl", lines)
    sightline.run(f"groups:{data}", model="baseline/chance", store=sqlite_url)
    measured = iter([0.9, None, 0.2, 0.9])
    monkeypatch.setattr("sightline.viewer.index_entry._least_similarity", lambda group: next(measured))
    store = Store.open(sqlite_url)
    OutcomeIndex(store).build(1)
    index = OutcomeIndex(store).open(1)
    assert index.orders == ("informative", "data", "similarity")
    pages = [index.page(order="similarity", after=after, limit=2) for after in (None, 1)]
    assert [[row.number for row in page.rows] for page in pages] == [[3, 1], [4, 2]]
    assert [page.next for page in pages] == [1, None]
    store.close()


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
    assert files(store) == ["1.db"]


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


def files(store: Store) -> list[str]:
    return [file.name for file in store.database.index_folder.iterdir()]


@pytest.mark.slow
def test_an_interrupted_build_leaves_nothing_and_the_next_one_succeeds(store: Store) -> None:
    index = OutcomeIndex(store)

    def interrupt(done: int, total: int) -> None:
        assert total == 150
        if done == 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.build(1, interrupt)
    assert files(store) == []
    index.build(1)
    assert index.open(1).page().total == 150


@pytest.mark.slow
def test_what_a_killed_process_left_is_dropped_after_an_hour(store: Store) -> None:
    index = OutcomeIndex(store)
    index.build(1)
    folder = store.database.index_folder
    new, old = folder / "2.db.a.new", folder / "2.db.b.new"
    for file in (new, old):
        file.touch()
    os.utime(old, (time.time() - 4000,) * 2)
    (folder / "1.db").unlink()
    index.build(1)
    assert sorted(files(store)) == ["1.db", "2.db.a.new"]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"no index", b"SQLite format 3\0" + bytes(5000)])
def test_an_index_that_cannot_be_read_is_absent_and_built_again(content: bytes, store: Store) -> None:
    OutcomeIndex(store).build(1)
    (store.database.index_folder / "1.db").write_bytes(content)
    again = OutcomeIndex(store)
    assert again.state(1).step == "absent"
    again.build(1)
    assert again.open(1).page().total == 150


@pytest.mark.slow
def test_an_index_that_is_damaged_inside_names_its_file_and_the_remedy(store: Store) -> None:
    index = OutcomeIndex(store)
    index.build(1)
    file = store.database.index_folder / "1.db"
    content = bytearray(file.read_bytes())
    quarter = len(content) // 4
    content[quarter : 2 * quarter] = bytes(quarter)
    file.write_bytes(content)
    with pytest.raises(EnvironmentFailedError, match=r"1\.db: the index cannot be read .*delete this file"):
        list(index.open(1).lines())


@pytest.mark.slow
def test_the_index_of_another_store_that_was_at_this_place_is_not_shown(
    store: Store, tmp_path: Path, run_groups: RunGroups
) -> None:
    OutcomeIndex(store).build(1)
    store.runs.drop(1)
    with store.database.write() as connection:
        connection.core.exec_driver_sql("DELETE FROM runs")
        if store.database.is_file:
            connection.core.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'runs'")
        else:
            connection.core.exec_driver_sql("ALTER SEQUENCE runs_id_seq RESTART")
    assert run_groups(seed=3) == 1
    assert OutcomeIndex(store).state(1).step == "absent"


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
