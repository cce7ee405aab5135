"""Merging stores: everything is there once, and neither order nor repetition changes an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.maintenance.stores import add_run, content, make_store, question

from sightline.errors import EnvironmentFailedError, UserError
from sightline.maintenance import merge as merge_module
from sightline.maintenance.merge import merge
from sightline.maintenance.store_maintenance import CleaningOptions, clean
from sightline.maintenance.verify import verify
from sightline.store.database import insert
from sightline.store.store import Store
from sightline.types import Answer, Failure


def _merge(sources: Sequence[Path], target: Path | str) -> list[str]:
    merged = merge([str(one) for one in sources], str(target), show_progress=False)
    return [run.state for one in merged for run in one.runs]


def _attempts(path: str | Path) -> list[tuple[float, str]]:
    """All attempts of a store in the order in which they count."""
    store = Store.open(str(path))
    with store.database.read() as connection:
        rows = connection.core.exec_driver_sql("SELECT created, key FROM answers ORDER BY id").all()
    store.close()
    return [(created, bytes(key).hex()) for created, key in rows]


def test_two_laptops_become_one_store(tmp_path: Path, store_url: str) -> None:
    first = make_store(tmp_path / "a.db", [range(30)])
    second = make_store(tmp_path / "b.db", [range(20, 50), range(5)])
    assert _merge([first, second], store_url) == ["added"] * 3
    answers, runs = content(store_url)
    assert runs == content(first)[1] | content(second)[1]
    # What both asked has the answer of the first, which was earlier.
    assert answers == content(second)[0] | content(first)[0]
    assert list(verify(store_url, show_progress=False)) == []


def test_merged_twice_is_merged_once(tmp_path: Path, store_url: str) -> None:
    source = make_store(tmp_path / "a.db", [range(30), range(10, 40)])
    _merge([source], store_url)
    before = content(store_url), _attempts(store_url)
    assert _merge([source, source], store_url) == ["there already"] * 4
    assert (content(store_url), _attempts(store_url)) == before


def test_a_store_comes_back_from_a_server_as_it_was(tmp_path: Path, store_url: str) -> None:
    source = make_store(tmp_path / "a.db", [range(30), range(10, 40)])
    _merge([source], store_url)
    _merge([Path(store_url)] if "://" not in store_url else [], tmp_path / "back.db")
    if "://" in store_url:
        list(merge([store_url], str(tmp_path / "back.db"), show_progress=False))
    assert content(tmp_path / "back.db") == content(source)
    assert _attempts(tmp_path / "back.db") == _attempts(source)


_calls = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 30), st.sampled_from("xyz")),
    min_size=1,
    max_size=12,
    unique_by=lambda call: call[2],
)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_calls, st.permutations([0, 1, 2]))
def test_the_order_of_sources_changes_no_answer(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, int, int, str]], order: list[int]
) -> None:
    """Three stores have attempts of the same requests; the first by time counts in every order of merging."""
    folder = tmp_path_factory.mktemp("merge")
    sources = [folder / f"{number}.db" for number in range(3)]
    for path in sources:
        Store.open(str(path)).close()
    for place, asked, time, said in sorted(calls, key=lambda call: call[2]):
        store = Store.open(str(sources[place]), clock=lambda time=time: float(time))  # type: ignore[misc]
        store.answers.add([question(asked, said)])
        store.close()
    _merge(sources, folder / "one.db")
    _merge([sources[number] for number in order], folder / "two.db")
    keys = [question(number).key for number in range(5)]
    first: dict[str, Answer | Failure] = {}
    for _, asked, _, said in sorted(calls, key=lambda call: call[2]):
        first.setdefault(question(asked).key, question(asked, said).result)
    for name in ("one.db", "two.db"):
        store = Store.open(str(folder / name))
        assert store.answers.look_up(keys) == first
        store.close()
    assert sorted(_attempts(folder / "one.db")) == sorted(_attempts(folder / "two.db"))
    assert len(_attempts(folder / "one.db")) == len(calls)


def test_stores_with_other_answers_to_the_same_requests(tmp_path: Path, store_url: str) -> None:
    """The earlier answer counts, both stay, and the number of requests with another text is said once."""
    for name, said, time in (("a.db", "It is", 2.0), ("b.db", "That is", 1.0)):
        store = Store.open(str(tmp_path / name), clock=lambda time=time: time)  # type: ignore[misc]
        store.answers.add([question(number, said) for number in range(5)])
        store.answers.add([question(number) for number in range(5, 8)])
        store.close()
    sources = [str(tmp_path / "a.db"), str(tmp_path / "b.db")]
    merged = list(merge(sources, store_url, show_progress=False))
    assert [(one.new_attempts, one.different_answers) for one in merged] == [(8, 0), (8, 5)]
    merged = list(merge(sources, store_url, show_progress=False))
    assert [(one.new_attempts, one.different_answers) for one in merged] == [(0, 0), (0, 0)]
    store = Store.open(store_url)
    earlier = question(3, "That is")
    assert store.answers.look_up([earlier.key]) == {earlier.key: earlier.result}
    store.close()
    assert len(_attempts(store_url)) == 16


def test_an_older_copy_of_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    """One laptop finished a run after it was copied: its identity is the same in both stores."""
    source, copy = tmp_path / "a.db", tmp_path / "copy.db"
    store = Store.open(str(source))
    run = add_run(store, range(30), finish=False)
    store.close()
    copy.write_bytes(source.read_bytes())
    store = Store.open(str(source))
    store.runs.finish(run, store.runs.get(run)[0])
    store.close()
    assert _merge([source, copy], tmp_path / "one.db") == ["added", "there already"]
    assert _merge([copy, source], tmp_path / "two.db") == ["added", "completed"]
    assert content(tmp_path / "one.db") == content(tmp_path / "two.db") == content(source)


def test_a_run_that_went_on_is_completed(tmp_path: Path) -> None:
    source = tmp_path / "a.db"
    store = Store.open(str(source))
    run = add_run(store, range(30), finish=False)
    store.close()
    assert _merge([source], tmp_path / "t.db") == ["added"]
    store = Store.open(str(source))
    body, _ = store.runs.get(run)
    store.runs.finish(run, body)
    store.close()
    assert _merge([source], tmp_path / "t.db") == ["completed"]
    assert content(tmp_path / "t.db") == content(source)


@pytest.mark.slow
def test_a_merge_that_was_killed_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make_store(tmp_path / "a.db", [range(600), range(300, 900)])
    calls = iter(range(1))

    def fail_at_the_second() -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    _before_each_chunk(monkeypatch, fail_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        _merge([source], tmp_path / "t.db")
    monkeypatch.undo()
    _merge([source], tmp_path / "t.db")
    assert content(tmp_path / "t.db") == content(source)
    assert _attempts(tmp_path / "t.db") == _attempts(source)


def _before_each_chunk(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something before a merge writes chunks of a run, inside of its transaction."""

    def write(connection: Any, table: str, *arguments: Any) -> None:
        if table == "probes":
            act()
        insert(connection, table, *arguments)

    monkeypatch.setattr(merge_module, "insert", write)


@pytest.mark.slow
def test_two_merges_at_once_end_as_one(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one waits until the first one has ended, and finds everything there."""
    source = make_store(tmp_path / "a.db", [range(600), range(300, 900)])
    second: list[Future[list[str]]] = []

    def start_second() -> None:
        if not second:
            second.append(threads.submit(_merge, [source], store_url))
            sleep(0.3)
            assert not second[0].done()

    _before_each_chunk(monkeypatch, start_second)
    with ThreadPoolExecutor() as threads:
        assert _merge([source], store_url) == ["added"] * 2
        assert second[0].result() == ["there already"] * 2
    monkeypatch.undo()
    assert list(verify(store_url, show_progress=False)) == []
    assert content(store_url) == content(source)


def test_a_merge_that_fails_leaves_nothing_of_its_source(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_store(tmp_path / "a.db", [range(600)])
    before = _attempts(store_url)

    def fail() -> None:
        raise EnvironmentFailedError("the disk is full")

    _before_each_chunk(monkeypatch, fail)
    with pytest.raises(EnvironmentFailedError, match="the disk is full"):
        _merge([source], store_url)
    assert (_attempts(store_url), content(store_url)[1]) == (before, {})
    monkeypatch.undo()
    assert _merge([source], store_url) == ["added"]
    assert content(store_url) == content(source)


@pytest.mark.postgres
def test_a_store_is_not_cleaned_during_a_merge(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merge has copied answers, but not the runs that refer to them."""
    source = make_store(tmp_path / "a.db", [range(30)])

    def clean_now() -> None:
        with pytest.raises(UserError, match="another process works with this store"):
            clean(postgres_url, CleaningOptions(unreferenced_answers=True))

    _before_each_chunk(monkeypatch, clean_now)
    _merge([source], postgres_url)
    monkeypatch.undo()
    assert content(postgres_url) == content(source)


def _change(path: Path, *statements: str) -> Path:
    store = Store.open(str(path))
    with store.database.write() as connection:
        for statement in statements:
            connection.core.exec_driver_sql(statement)
    store.close()
    return path


def test_what_was_merged_is_known_although_a_later_source_fails(tmp_path: Path) -> None:
    sources = [make_store(tmp_path / name, [range(30)]) for name in ("a.db", "b.db")]
    _change(sources[1], "ALTER TABLE readings RENAME COLUMN body TO other")
    merged = merge([str(one) for one in sources], str(tmp_path / "t.db"), show_progress=False)
    assert next(merged).new_attempts == 30
    with pytest.raises(EnvironmentFailedError, match="readings"):
        next(merged)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "tables"),
    [
        ("UPDATE answers SET result = '{' WHERE id = 2", ["answers"]),
        ("UPDATE answers SET result = CAST(x'7b22ff' AS TEXT) WHERE id = 2", ["answers"]),
        ("UPDATE answers SET request = (SELECT request FROM answers WHERE id = 3) WHERE id = 2", ["answers"]),
        ("UPDATE answers SET request = x'7b7d' WHERE id = 2", ["answers"]),
        ("UPDATE answers SET state = 3 WHERE id = 2", ["answers"]),
        ("UPDATE runs SET body = x'00ff' WHERE id = 1", ["runs"]),
        ("UPDATE runs SET body = CAST('{}' AS BLOB) WHERE id = 1", ["runs"]),
        ("UPDATE probes SET body = x'00' WHERE run = 1 AND place = 0", ["probes"]),
        ("INSERT INTO verdicts (run, body) VALUES (1, x'00')", ["verdicts"]),
        ("INSERT INTO endpoints (created, identity, body) VALUES (1, 'm', x'00ff')", ["endpoints"]),
        ("INSERT INTO vectors (key, body) VALUES (zeroblob(32), x'00')", ["vectors"]),
        ("INSERT INTO readings (key, body) VALUES (zeroblob(32), x'00ff')", ["readings"]),
    ],
)
def test_a_damaged_row_is_left_out_and_said_and_the_target_stays_sound(
    tmp_path: Path, store_url: str, damage: str, tables: list[str]
) -> None:
    """Everything else is there, and a sound copy of the source brings the rest."""
    source = make_store(tmp_path / "a.db", [range(300), range(300, 310)])
    sound = tmp_path / "sound.db"
    sound.write_bytes(source.read_bytes())
    _change(source, damage)
    for _ in range(2):
        [merged] = merge([str(source)], store_url, show_progress=False)
        assert [(one.table, one.rows) for one in merged.lost] == [(table, 1) for table in tables]
        assert list(verify(store_url, show_progress=False)) == []
    answers, runs = content(store_url)
    assert answers.items() <= content(sound)[0].items()
    assert len(runs) == (1 if tables == ["runs"] else 2)
    run_of_the_row = not {"answers", "probes", "verdicts"}.isdisjoint(tables)
    assert sum(not finished for finished, _ in runs.values()) == run_of_the_row
    _merge([sound], store_url)
    assert content(store_url) == content(sound)


def test_a_finished_run_that_lost_rows_without_a_trace_is_not_finished_in_the_target(
    tmp_path: Path, store_url: str
) -> None:
    """A file whose rows were recovered has no damaged rows: those of unreadable pages are gone."""
    source = _change(make_store(tmp_path / "a.db", [range(30)]), "DELETE FROM answers WHERE id = 2")
    [merged] = merge([str(source)], store_url, show_progress=False)
    assert [run.note for run in merged.runs] == [
        "run 1 is not finished any more: 1 of its probes have no attempt"
    ]
    assert [finished for finished, _ in content(store_url)[1].values()] == [False]
    assert _merge([make_store(tmp_path / "b.db", [range(30)])], store_url) == ["added"]


def test_a_merge_says_how_many_requests_the_target_had_answered(tmp_path: Path) -> None:
    first, second = make_store(tmp_path / "a.db", [range(30)]), make_store(tmp_path / "b.db", [range(20, 60)])
    merged = merge([str(first), str(second)], str(tmp_path / "t.db"), show_progress=False)
    assert [(one.new_attempts, one.answered_requests) for one in merged] == [(30, 0), (40, 10)]


def test_numbers_of_runs_are_new_in_the_target(tmp_path: Path) -> None:
    first, second = make_store(tmp_path / "a.db", [range(3)]), make_store(tmp_path / "b.db", [range(3)])
    merged = merge([str(first), str(second)], str(tmp_path / "t.db"), show_progress=False)
    assert [(run.run, run.into) for one in merged for run in one.runs] == [(1, 1), (1, 2)]


def test_sources_stay_as_they_are(tmp_path: Path) -> None:
    source = make_store(tmp_path / "a.db", [range(30)])
    before = source.read_bytes()
    _merge([source], tmp_path / "t.db")
    assert source.read_bytes() == before


def test_a_newer_source_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    source, newer = make_store(tmp_path / "a.db", [range(3)]), make_store(tmp_path / "b.db", [range(3)])
    store = Store.open(str(newer))
    with store.database.write() as connection:
        connection.core.exec_driver_sql("UPDATE meta SET value = '99'")
    store.close()
    with pytest.raises(UserError, match="another version of Sightline"):
        _merge([source, newer], tmp_path / "t.db")
    assert not (tmp_path / "t.db").exists()


def test_the_target_is_no_source(tmp_path: Path) -> None:
    source = make_store(tmp_path / "a.db", [range(3)])
    (tmp_path / "link.db").symlink_to(source)
    with pytest.raises(UserError, match="source and the target"):
        _merge([tmp_path / "link.db"], source)


def test_runs_keep_their_labels_and_a_name_that_is_taken_is_said(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        store = Store.open(str(make_store(tmp_path / name, [range(3)])))
        store.labels.give_name(1, "mine")
        store.labels.add_tags(1, ["t"])
        store.close()
    merged = merge(
        [str(tmp_path / "a.db"), str(tmp_path / "b.db")], str(tmp_path / "t.db"), show_progress=False
    )
    notes = [run.note for one in merged for run in one.runs]
    assert notes == ["", "run 2 has no name: mine is the name of run 1"]
    store = Store.open(str(tmp_path / "t.db"))
    assert store.labels.names() == {"mine": 1}
    assert [list(store.labels.of(run).tags) for run in (1, 2)] == [["t"], ["t"]]
    store.close()
