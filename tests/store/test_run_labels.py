"""Names, tags, notes and leases of runs: a name has one run, and a deleted run leaves only its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import EnvironmentFailedError, UserError
from sightline.store.claims import LEASE_SECONDS
from sightline.store.runs import Labels
from sightline.store.store import Store


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A store of either kind."""
    opened = Store.open(store_url)
    yield opened
    opened.close()


def test_of_processes_that_want_one_name_at_once_one_gets_it(store: Store, store_url: str) -> None:
    runs = [store.runs.start({}) for _ in range(6)]

    def want(run: int) -> int:
        own = Store.open(store_url)
        try:
            return own.labels.give_name(run, "base")
        finally:
            own.close()

    with ThreadPoolExecutor(len(runs)) as threads:
        holders = list(threads.map(want, runs))
    assert len(set(holders)) == 1
    assert store.labels.names() == {"base": holders[0]}


def test_labels_that_several_processes_set_at_once_are_all_kept(store: Store, store_url: str) -> None:
    run = store.runs.start({})

    def label(number: int) -> None:
        own = Store.open(store_url)
        try:
            own.labels.add_tags(run, ["all", f"t{number}"])
            own.labels.set_note(run, "a note")
        finally:
            own.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(label, range(6)))
    assert store.labels.of(run) == Labels(None, ("all", *(f"t{number}" for number in range(6))), "a note")


def test_a_lease_is_held_until_it_is_released(store: Store) -> None:
    first, second = store.runs.start({}), store.runs.start({})
    for run in (first, second, first):
        store.runs.hold(run)
    store.runs.release(second)
    assert first in store.claims.held_runs()
    store.runs.release(first)
    assert store.claims.held_runs() == set()


@pytest.mark.parametrize(
    "label",
    [
        lambda store: store.labels.give_name(1, "ghost"),
        lambda store: store.labels.remove_name(1),
        lambda store: store.labels.add_tags(1, ["t"]),
        lambda store: store.labels.set_note(1, "a note"),
        lambda store: store.runs.hold(1),
    ],
)
def test_a_run_that_does_not_exist_gets_neither_labels_nor_a_lease(
    store: Store, label: Callable[[Store], object]
) -> None:
    store.runs.drop(store.runs.start({}))
    with pytest.raises(UserError, match=r"there is no run 1 .*runs list"):
        label(store)
    assert (store.labels.all(), store.claims.held_runs()) == ({}, set())


def test_a_run_that_was_deleted_meanwhile_cannot_be_finished(store: Store) -> None:
    run = store.runs.start({})
    store.runs.drop(run)
    with pytest.raises(EnvironmentFailedError, match=r"run 1 .* was deleted while it was written"):
        store.runs.finish(run, {})


def test_a_run_has_a_name_tags_and_a_note(store: Store) -> None:
    first, second = store.runs.start({}), store.runs.start({})
    store.labels.add_tags(second, ["v2", "july", "v2"])
    store.labels.set_note(second, "the second")
    assert store.labels.give_name(second, "base") == second
    store.labels.add_tags(second, ["july", "paper"])
    store.labels.remove_tags(second, ["v2", "unknown"])
    assert store.labels.all() == {second: Labels("base", ("july", "paper"), "the second")}
    assert store.labels.of(first) == Labels()


def test_a_name_of_another_run_is_given_only_in_its_place(store: Store) -> None:
    first, second = store.runs.start({}), store.runs.start({})
    store.labels.give_name(first, "base")
    assert store.labels.give_name(second, "base") == first
    assert store.labels.give_name(second, "base", instead_of=second) == first
    assert store.labels.names() == {"base": first}
    assert store.labels.give_name(second, "base", instead_of=first) == second
    assert store.labels.names() == {"base": second}


def test_a_new_name_frees_the_former_one(store: Store) -> None:
    first, second = store.runs.start({}), store.runs.start({})
    store.labels.give_name(first, "base")
    store.labels.give_name(first, "old")
    assert store.labels.give_name(second, "base") == second
    store.labels.remove_name(second)
    assert store.labels.names() == {"old": first}


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 3)), max_size=12))
def test_no_name_has_two_runs_and_no_run_two_names(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, int]]
) -> None:
    store = Store.open(str(tmp_path_factory.mktemp("store") / "s.db"))
    runs = [store.runs.start({}) for _ in range(4)]
    for run, name, instead_of in steps:
        before = store.labels.names()
        holder = store.labels.give_name(runs[run], name, instead_of=runs[instead_of])
        names = store.labels.names()
        assert names[name] == holder
        assert len(set(names.values())) == len(names)
        assert holder in (runs[run], before.get(name))
    store.close()


def test_a_deleted_run_loses_its_labels_and_its_name_is_free(store: Store) -> None:
    first, second = store.runs.start({}), store.runs.start({})
    for run, name in ((first, "one"), (second, "two")):
        store.labels.give_name(run, name)
        store.labels.add_tags(run, ["july"])
    store.runs.drop(first)
    assert store.labels.all() == {second: Labels("two", ("july",))}
    assert store.labels.give_name(second, "one") == second


def test_the_number_of_a_deleted_run_is_never_used_again(store_url: str) -> None:
    store = Store.open(store_url)
    used = [store.runs.start({}) for _ in range(3)]
    for run in used:
        store.runs.drop(run)
    store.close()
    again = Store.open(store_url)
    assert again.runs.start({}) > max(used)
    again.close()


def test_a_lease_ends_when_it_is_not_renewed(tmp_path: Path) -> None:
    now = 1000.0
    store = Store.open(str(tmp_path / "s.db"), uptime=lambda: now)
    run = store.runs.start({})
    assert store.claims.held_runs() == set()
    store.runs.hold(run)
    now += LEASE_SECONDS - 1
    assert store.claims.held_runs() == {run}
    store.runs.hold(run)
    now += LEASE_SECONDS - 1
    assert store.claims.held_runs() == {run}
    now += 2
    assert store.claims.held_runs() == set()
    store.runs.hold(run)
    store.runs.release(run)
    assert store.claims.held_runs() == set()
    store.close()
