"""A journal keeps every whole line, and lets one process at a time write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats import journal as module
from sightline.formats.groups import GroupLine
from sightline.formats.journal import JOURNAL, FinishedSource, Journal, discard, header_of

HEADER = {"kind": "mask", "settings": {"seed": 1}}
ENTRIES = [
    FinishedSource(
        "a", "f1", (GroupLine("a", "m0", ("images/a_m0.png",), "What?"),), files={"images/a_m0.png": "d"}
    ),
    FinishedSource("b", "f2", dropped="the file is empty"),
    FinishedSource("c", "f3", (GroupLine("c", "m0", ("images/ć.png",), "What?"),)),
]


def written(folder: Path) -> bytes:
    with Journal(folder) as journal:
        journal.begin(HEADER)
        journal.add(ENTRIES)
    return (folder / JOURNAL).read_bytes()


def test_what_was_added_is_read_again(tmp_path: Path) -> None:
    written(tmp_path / "new" / "folder")
    with Journal(tmp_path / "new" / "folder") as journal:
        assert journal.header() == HEADER
        assert list(journal.read().values()) == ENTRIES


@given(st.integers(min_value=0), st.booleans())
def test_wherever_a_kill_tore_it_whole_lines_are_kept_and_more_can_be_added(
    tmp_path_factory: pytest.TempPathFactory, place: int, zeros: bool
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    whole = written(folder)
    cut = whole[: place % (len(whole) + 1)]
    # A machine that lost power may leave zeros where the end of a file was to be.
    (folder / JOURNAL).write_bytes(cut + b"\0" * (40 if zeros else 0))
    lines = cut.count(b"\n")
    assert header_of(folder) == (HEADER if lines else None)
    if not lines:
        return
    with Journal(folder) as journal:
        kept = journal.read()
        assert list(kept.values()) == ENTRIES[: lines - 1]
        journal.add(ENTRIES[lines - 1 :])
        assert list(journal.read().values()) == ENTRIES


def test_the_latest_line_about_a_source_counts(tmp_path: Path) -> None:
    written(tmp_path)
    with Journal(tmp_path) as journal:
        journal.add([FinishedSource("b", "f4")])
        assert journal.read()["b"] == FinishedSource("b", "f4")


def test_beginning_anew_forgets_all(tmp_path: Path) -> None:
    written(tmp_path)
    with Journal(tmp_path) as journal:
        journal.begin({"kind": "other"})
        assert journal.header() == {"kind": "other"}
        assert journal.read() == {}


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    with (
        Journal(tmp_path),
        pytest.raises(UserError, match="another process works there"),
        Journal(tmp_path),
    ):
        pass
    with Journal(tmp_path):
        pass


def test_one_that_its_holder_removed_while_it_was_opened_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = module._lock
    locked: list[int] = []

    def late(descriptor: int) -> None:
        lock(descriptor)
        if not locked:
            discard(tmp_path)
        locked.append(descriptor)

    monkeypatch.setattr(module, "_lock", late)
    with Journal(tmp_path) as journal:
        journal.begin(HEADER)
        assert header_of(tmp_path) == HEADER
    assert len(locked) == 2


def test_one_that_was_opened_for_nothing_leaves_no_file(tmp_path: Path) -> None:
    with Journal(tmp_path):
        pass
    assert not (tmp_path / JOURNAL).exists()
    written(tmp_path)
    with Journal(tmp_path):
        pass
    assert header_of(tmp_path) == HEADER


def test_without_a_journal_there_is_no_header(tmp_path: Path) -> None:
    assert header_of(tmp_path) is None
    discard(tmp_path)


def test_a_folder_that_cannot_be_made_is_the_surroundings_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFailedError, match="cannot be written"), Journal(tmp_path / "file" / "out"):
        pass
