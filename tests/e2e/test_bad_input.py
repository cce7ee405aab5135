"""A wrong call or wrong data is found before the first call: one message, status 2, nothing written."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main

Refuse = Callable[..., str]


@pytest.fixture
def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Runs a command that must be refused; returns its one message."""
    for name in ("OPENAI_API_KEY", "SIGHTLINE_DATA", "SIGHTLINE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        status = main([str(word) for word in (*words, "--out", "out", "--quiet")])
        out, err = capsys.readouterr()
        assert status == 2, err
        assert out == ""
        assert err.startswith("sightline: ")
        assert len(err.strip().splitlines()) == 1
        assert "Traceback" not in err
        assert not Path("out").exists()
        return err

    return run


def _run(
    data: object, *more: object, model: str = "baseline/chance", task: str = "iibench:none"
) -> list[object]:
    return ["run", task, "--model", model, "--data", data, *more]


def _mend(data: Path, change: Callable[[list[Any]], object]) -> Path:
    """Change the records of a data folder."""
    records = json.loads((data / "test.json").read_text())
    change(records)
    (data / "test.json").write_text(json.dumps(records))
    return data


# Models


def test_no_api_key(refuse: Refuse, iibench_folder: Any) -> None:
    message = refuse(*_run(iibench_folder(4), model="openai/gpt-4o"))
    assert "no API key for api.openai.com" in message
    assert "OPENAI_API_KEY" in message


def test_a_server_that_is_not_there(refuse: Refuse, iibench_folder: Any, free_port: int) -> None:
    message = refuse(*_run(iibench_folder(4), model=f"http://127.0.0.1:{free_port}/v1#m"))
    assert f"no server answers at 127.0.0.1:{free_port}" in message


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "does not exist or has no model 'mock' (HTTP 404)"),
        (401, "asks for an API key (HTTP 401)"),
        (403, "asks for an API key (HTTP 403)"),
    ],
)
def test_a_server_that_will_never_answer(
    refuse: Refuse, iibench_folder: Any, mock: Any, status: int, said: str
) -> None:
    server = mock("--fail-rate", 1, "--fail-codes", status)
    assert said in refuse(*_run(iibench_folder(40), model=server.model))


@pytest.mark.parametrize(
    ("model", "nearest"),
    [("opnai/gpt-4o", "openai/"), ("baseline/chanse", "baseline/chance"), ("replays/a", "replay/")],
)
def test_a_models_name_that_means_nothing(
    refuse: Refuse, iibench_folder: Any, model: str, nearest: str
) -> None:
    message = refuse(*_run(iibench_folder(4), model=model))
    assert f"'{model}'" in message
    assert f"did you mean '{nearest}" in message


# The call


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ["--set", "extracton=strict"],
            ["extracton", "did you mean 'extraction'"],
        ),
        (["--set", "extraction=strikt"], ["strikt", "did you mean 'strict'"]),
        (["--set", "extraction"], ["--set extraction: '=' or the key is missing", "KEY=VALUE"]),
        (["--limt", "3"], ["--limt", "did you mean '--limit'"]),
        (["--limit", "many"], ["--limit", "many"]),
        (["--limit", "0"], ["--limit", "at least 1"]),
        (["--concurrency", "0"], ["--concurrency", "at least 1"]),
        (["--split", "tset"], ["tset", "did you mean 'test'"]),
        (["--preset", "releasd"], ["releasd", "did you mean 'released'"]),
        (["--model-arg", "timeout=3"], ["--model-arg", "timeout"]),
        (["--judge", "openai/gpt-4o"], ["--judge rules"]),
        (["--against", "GPT-4p"], ["GPT-4p", "did you mean 'GPT-4V'"]),
        (["--config", "nowhere.toml"], ["nowhere.toml", "cannot be read"]),
        (["--store", "."], ["this is a folder"]),
        (["--store", "nowhere/s.db"], ["nowhere", "mkdir -p"]),
    ],
)
def test_a_word_that_means_nothing(
    refuse: Refuse, iibench_folder: Any, more: list[str], said: list[str]
) -> None:
    message = refuse(*_run(iibench_folder(4), *more))
    for words in said:
        assert words in message


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("iibench:con", ["con", "did you mean 'cot'"]),
        ("iibensh", ["iibensh", "did you mean 'iibench'"]),
    ],
)
def test_a_task_that_does_not_exist(refuse: Refuse, iibench_folder: Any, task: str, said: list[str]) -> None:
    message = refuse(*_run(iibench_folder(4), task=task))
    for words in said:
        assert words in message


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no file system that takes no folder")
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_place_for_results_that_takes_none_is_found_before_anything_is_asked(
    iibench_folder: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Its permissions are no hindrance to root, and say nothing of the file system."""
    store = tmp_path / "s.db"
    words = [command, *_run(iibench_folder(4), "--out", "/proc/x/y", "--store", store, "--quiet")[1:]]
    assert main([str(word) for word in words]) == 2
    message = capsys.readouterr().err
    assert "/proc/x/y" in message
    assert "cannot be written" in message
    assert not store.exists()


def test_a_store_that_is_something_else(refuse: Refuse, iibench_folder: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary, this is no database")
    message = refuse(*_run(iibench_folder(4), "--store", "notes.txt"))
    assert "notes.txt: this file is not a SQLite database" in message
    assert (tmp_path / "notes.txt").read_text().startswith("dear diary")


# The data


def test_a_data_folder_that_is_not_there_or_holds_something_else(refuse: Refuse, tmp_path: Path) -> None:
    assert "nowhere: this data folder does not exist" in refuse(*_run("nowhere"))
    (tmp_path / "empty").mkdir()
    assert "empty: test.json is not in this folder" in refuse(*_run("empty"))
    assert "no data folder for iibench" in refuse("run", "iibench", "--model", "baseline/chance")


def test_a_file_that_breaks_off(refuse: Refuse, iibench_folder: Any) -> None:
    data = iibench_folder(20)
    whole = (data / "test.json").read_text()
    (data / "test.json").write_text(whole[: len(whole) // 2])
    message = refuse(*_run(data))
    assert "test.json" in message
    assert "record" in message


def test_a_record_without_a_field(refuse: Refuse, iibench_folder: Any) -> None:
    message = refuse(
        *_run(_mend(iibench_folder(20), lambda records: records[3]["questions"][1].pop("question")))
    )
    for words in ("test.json", "record images/6.png", "field questions[1].question"):
        assert words in message


def test_a_field_of_the_wrong_kind(refuse: Refuse, iibench_folder: Any) -> None:
    data = _mend(iibench_folder(20), lambda records: records[3]["meta_data"].update(domain=7))
    message = refuse(*_run(data))
    for words in ("test.json", "record images/6.png", "field meta_data.domain", "expected"):
        assert words in message


def test_an_id_that_occurs_twice(refuse: Refuse, iibench_folder: Any) -> None:
    data = _mend(iibench_folder(20), lambda records: records[7]["questions"][0].update(id="test-3"))
    message = refuse(*_run(data))
    for words in ("test.json", "record test-3", "field id", "twice"):
        assert words in message


@pytest.mark.parametrize("image", ["/data/a.png", "../a.png"])
def test_an_image_outside_the_folder_of_a_groups_file(refuse: Refuse, mock: Any, image: str) -> None:
    server = mock()
    good = {"group": "a", "variant": "v", "images": ["a.png"]}
    bad = {"group": "b", "variant": "v", "images": ["a.png", image]}
    Path("groups.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    message = refuse("run", "groups:groups.jsonl", "--model", server.model)
    assert "groups.jsonl, record line 2, field images[1]: is outside the folder" in message
    assert f"(found '{image}'); expected a path inside that folder" in message
    assert server.stats()["requests"] == 0
