"""`sightline serve` as a user starts it: the printed URL, the errors with their remedies, the end."""

from __future__ import annotations

import builtins
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.e2e.conftest import SIGHTLINE
from tests.viewer.conftest import HOST

from sightline.cli.main import main
from sightline.errors import UserError
from sightline.viewer.app import create_app
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.opened import opened_store
from sightline.viewer.server import (
    Listening,
    access_of,
    base_url,
    bind,
    missing_images_note,
    read_url,
    warning_of,
)

Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_printed_url_opens_the_viewer_and_ctrl_c_ends_it(
    store_file: Path, ending: signal.Signals
) -> None:
    command = [*SIGHTLINE, "serve", "--store", str(store_file), "--port", "0"]
    code = "from sightline.cli.main import entry; entry()"
    process = subprocess.Popen(
        [command[0], "-c", code, *command[3:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())
    assert url is not None
    with urllib.request.urlopen(url[0]) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url[0].partition("?")[0])
    process.send_signal(ending)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert "ended" in out


def test_a_port_in_use_says_what_to_do(store_file: Path, capsys: Capture) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["serve", "--store", str(store_file), "--port", str(port)]) == 2
    message = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1 is in use" in message
    assert "--port 0" in message


def test_a_missing_extra_says_what_to_install(
    store_file: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = builtins.__import__

    def without_uvicorn(name: str, *rest: Any, **named: Any) -> Any:
        if name == "uvicorn":
            raise ImportError("No module named 'uvicorn'", name="uvicorn")
        return imports(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_uvicorn)
    assert main(["serve", "--store", str(store_file)]) == 2
    assert "pip install 'sightline[web]'" in capsys.readouterr().err


def test_a_store_that_does_not_exist_is_not_created(tmp_path: Path, capsys: Capture) -> None:
    assert main(["serve", "--store", str(tmp_path / "none.db"), "--port", "0"]) == 2
    assert "none.db" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_loopback_needs_no_warning(host: str) -> None:
    assert warning_of(Listening(host=host)) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "lab.example"])
def test_other_addresses_warn_unless_there_is_tls(host: str) -> None:
    assert "not encrypted" in warning_of(Listening(host=host))
    assert warning_of(Listening(host=host, certificate=Path("cert.pem"))) == ""


def test_the_default_is_an_address_that_others_cannot_reach() -> None:
    assert Listening().is_local


def test_each_start_has_another_token_of_192_bits() -> None:
    tokens = {access_of(Listening(), 1).token for _ in range(20)}
    assert len(tokens) == 20
    assert all(len(token) == 32 for token in tokens)


def test_an_address_of_another_computer_is_refused() -> None:
    with pytest.raises(UserError, match="address of this computer"):
        bind(Listening(host="192.0.2.1", port=0))


def test_a_certificate_that_cannot_be_used_is_refused(
    store_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    words = ["serve", "--store", str(store_file), "--tls-certificate"]
    assert main([*words, str(tmp_path / "cert.pem")]) == 2
    assert "PEM" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "absent.pem")]) == 2
    assert main(["serve", "--store", str(store_file), "--tls-key", "key.pem"]) == 2
    assert "--tls-certificate" in capsys.readouterr().err


@pytest.mark.slow
def test_results_folders_are_served_without_a_store(codis: Path, tmp_path: Path) -> None:
    words = ["run", "codis", "--model", "baseline/chance", "--data", str(codis), "--quiet"]
    assert main([*words, "--store", str(tmp_path / "s.db"), "--out", str(tmp_path / "results")]) == 0
    with opened_store(str(tmp_path / "none.db"), [tmp_path / "results"], [codis]) as store:
        client = TestClient(create_app(store, [codis]), base_url=HOST)
        assert "acc_p" in client.get("/").text
        page = client.get("/runs/1/groups").text
        assert "30 of 30 groups" in page
        thumbnail = re.search(r"/runs/1/thumbnails/[0-9a-f]{64}", page)
        assert thumbnail is not None
        assert client.get(thumbnail[0]).headers["content-type"] == "image/webp"
    assert not (tmp_path / "none.db").exists()


def test_data_is_served_without_a_store_and_nothing_else_is(codis: Path, tmp_path: Path) -> None:
    with opened_store(str(tmp_path / "none.db"), [], [codis]) as store:
        assert TestClient(create_app(store, [codis]), base_url=HOST).get("/data/0").status_code == 200
    with pytest.raises(UserError), opened_store(str(tmp_path / "none.db"), [], []):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_does_not_exist_is_refused_with_the_remedy(
    store_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    words = ["serve", "--store", str(store_file), "--port", "0", "--data", str(tmp_path / "none")]
    assert main(words) == 2
    message = capsys.readouterr().err
    assert "no such folder or file" in message
    assert "the data folder of the runs" in message


@pytest.mark.slow
def test_a_data_folder_without_the_images_of_a_run_is_noted(codis: Path, tmp_path: Path) -> None:
    data = tmp_path / "codis"
    shutil.copytree(codis, data)
    words = ["run", "codis", "--model", "baseline/chance", "--data", str(data), "--quiet"]
    assert main([*words, "--store", str(tmp_path / "s.db")]) == 0
    shutil.rmtree(data)
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    with opened_store(str(tmp_path / "s.db"), [], [wrong]) as store:
        OutcomeIndex(store).build(1)
        note = missing_images_note(store, [wrong])
        assert note.startswith(f"the images of run 1 are not in {wrong}")
        assert note.endswith("name their data folder with --data DIR")
        assert missing_images_note(store, [codis]) == ""


@pytest.mark.slow
def test_behind_a_reverse_proxy_links_hosts_and_cookies_are_those_of_the_proxy() -> None:
    listening = Listening(url=read_url("https://annotate.example.org/"))
    access = access_of(listening, 8765)
    assert base_url(listening, access) == "https://annotate.example.org"
    assert access.encrypted
    assert access.accepts_host("annotate.example.org")
    assert not access.accepts_host("example.org")
    plain = Listening(url=read_url("http://lab:8080"))
    assert not access_of(plain, 8765).encrypted
    assert access_of(plain, 8765).accepts_host("lab:8080")


@pytest.mark.parametrize(
    "url",
    [
        "annotate.example.org",
        "https://",
        "ftp://x",
        "https://x/path",
        "https://u@x",
        "https://x?a",
        "http://[::1",
    ],
)
def test_a_url_that_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="--url"):
        read_url(url)
