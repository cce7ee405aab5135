"""Repair: what is salvaged from a damaged store is what it was, and what is lost is said."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.maintenance.stores import add_run, content, make_store

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.maintenance.repair import RepairReport, repair
from sightline.maintenance.verify import verify

PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two finished runs, of which the second repeats a part of the first."""
    return make_store(tmp_path_factory.mktemp("sound") / "s.db", [range(300), range(200, 400)])


def _repair(damaged: bytes, folder: Path) -> tuple[RepairReport, Path]:
    file, out = folder / "damaged.db", folder / "out.db"
    file.write_bytes(damaged)
    out.unlink(missing_ok=True)
    report = repair(str(file), out, show_progress=False)
    assert file.read_bytes() == damaged
    return report, out


def _assert_nothing_is_wrong(report: RepairReport, out: Path, sound: Path) -> None:
    """Everything in the repaired store is in the sound one, and a loss is reported."""
    assert list(verify(str(out), show_progress=False)) == []
    answers, runs = content(out)
    all_answers, all_runs = content(sound)
    assert answers.items() <= all_answers.items()
    for uid, (is_finished, probes) in runs.items():
        assert set(map(repr, probes)) <= set(map(repr, all_runs[uid][1]))
        assert not is_finished or probes == all_runs[uid][1]
    if not report.lost_something:
        assert (answers, runs) == (all_answers, all_runs)


def test_an_undamaged_store_is_copied_whole(sound: Path, tmp_path: Path) -> None:
    report, out = _repair(sound.read_bytes(), tmp_path)
    assert not report.lost_something
    assert content(out) == content(sound)


_damage = st.tuples(
    st.sampled_from(["noise", "zeros", "another page", "part"]), st.integers(0, 1 << 30), st.integers(1, 8)
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_damage)
def test_whatever_is_overwritten_what_is_salvaged_is_sound(
    sound: Path, tmp_path: Path, damage: tuple[str, int, int]
) -> None:
    kind, seed, count = damage
    chance, whole = random.Random(seed), sound.read_bytes()
    damaged = bytearray(whole)
    for _ in range(count):
        start = chance.randrange(len(damaged) // PAGE) * PAGE
        match kind:
            case "noise":
                damaged[start : start + PAGE] = chance.randbytes(PAGE)
            case "zeros":
                damaged[start : start + PAGE] = bytes(PAGE)
            case "another page":
                other = chance.randrange(len(damaged) // PAGE) * PAGE
                damaged[start : start + PAGE] = whole[other : other + PAGE]
            case _:
                size = chance.randrange(16, 2000)
                at = start + chance.randrange(PAGE - size)
                damaged[at : at + size] = chance.randbytes(size)
    _assert_nothing_is_wrong(*_repair(bytes(damaged), tmp_path), sound)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0.05, 1))
def test_a_truncated_store_is_salvaged_up_to_its_end(sound: Path, tmp_path: Path, part: float) -> None:
    whole = sound.read_bytes()
    cut = whole[: int(len(whole) * part)]
    report, out = _repair(cut, tmp_path)
    _assert_nothing_is_wrong(report, out, sound)
    assert report.lost_something or len(cut) > len(whole) - PAGE


def test_rows_are_found_without_the_definitions_of_their_tables(sound: Path, tmp_path: Path) -> None:
    report, out = _repair(bytes(PAGE) + sound.read_bytes()[PAGE:], tmp_path)
    assert set(report.lost_definitions) > {"answers", "runs", "texts"}
    answers, runs = content(out)
    assert answers == content(sound)[0]
    assert runs.keys() == content(sound)[1].keys()


def _without_requests(sound: Path, damaged: bytearray) -> bytes:
    """Overwrite all pages of the requests."""
    with closing(sqlite3.connect(sound)) as connection:
        pages = connection.execute("SELECT pageno FROM dbstat WHERE name = 'requests'").fetchall()
    for (number,) in pages:
        damaged[(number - 1) * PAGE : number * PAGE] = bytes(PAGE)
    return bytes(damaged)


def test_answers_stay_without_the_pages_of_their_requests(sound: Path, tmp_path: Path) -> None:
    """The index of the keys says which answer belongs to which key."""
    report, out = _repair(_without_requests(sound, bytearray(sound.read_bytes())), tmp_path)
    assert report.lost_something
    assert content(out) == content(sound)
    assert list(verify(str(out), show_progress=False)) == []


def test_an_answer_gets_to_no_other_request_by_a_damaged_index(sound: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(sound)) as connection:
        keys = dict(connection.execute("SELECT id, key FROM requests"))
    whole = sound.read_bytes()
    # The number at the end of the index entry of request 200 becomes that of request 201.
    entry, other = (keys[200] + number.to_bytes(2, "big") for number in (200, 201))
    assert whole.count(entry) == 1
    report, out = _repair(_without_requests(sound, bytearray(whole.replace(entry, other))), tmp_path)
    answers, all_answers = content(out)[0], content(sound)[0]
    assert answers.items() <= all_answers.items()
    assert all_answers.keys() - answers.keys() == {keys[200].hex(), keys[201].hex()}
    assert report.incomplete_runs


def test_the_latest_answers_come_from_the_write_ahead_log(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    store = Store.open(str(tmp_path / "s.db"))
    add_run(store, range(50))
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"s.db{end}", folder / f"s.db{end}")
    store.close()
    assert not repair(str(folder / "s.db"), folder / "out.db", show_progress=False).lost_something
    assert content(folder / "out.db") == content(tmp_path / "s.db")


@pytest.mark.parametrize("fate", ["deleted", "cut", "overwritten"])
def test_without_a_part_of_the_write_ahead_log_the_rest_is_sound(tmp_path: Path, fate: str) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    make_store(tmp_path / "s.db", [range(300)])
    store = Store.open(str(tmp_path / "s.db"))
    add_run(store, range(200, 600))
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"s.db{end}", folder / f"s.db{end}")
    store.close()
    log = folder / "s.db-wal"
    whole = log.read_bytes()
    if fate == "deleted":
        log.unlink()
    elif fate == "cut":
        log.write_bytes(whole[: len(whole) // 2 + 100])
    else:
        log.write_bytes(whole[:9000] + bytes(5000) + whole[14000:])
    report = repair(str(folder / "s.db"), folder / "out.db", show_progress=False)
    assert list(verify(str(folder / "out.db"), show_progress=False)) == []
    answers, runs = content(folder / "out.db")
    all_answers, all_runs = content(tmp_path / "s.db")
    assert answers.items() <= all_answers.items()
    assert len(answers) >= 300
    assert report.damaged_log_pages or fate != "overwritten"
    for uid, (is_finished, probes) in runs.items():
        assert not is_finished or probes == all_runs[uid][1]


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(UserError, match="nothing of a store"):
        repair(str(tmp_path / "x.db"), tmp_path / "out.db", show_progress=False)
    assert not (tmp_path / "out.db").exists()


def test_a_new_store_never_replaces_a_file(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "out.db").write_text("mine")
    for out in (tmp_path / "out.db", sound):
        with pytest.raises(UserError, match=r"exists already|is an input") as refused:
            repair(str(sound), out, show_progress=False)
        # The command has no such option.
        assert "--force" not in str(refused.value)
