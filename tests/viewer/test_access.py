"""Who may use the viewer: the token, the Host header, the origin of forms, the headers of every response."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.viewer.conftest import ACCESS, TOKEN

from sightline.viewer.access import Access

ADDRESSES = ("/", "/runs", "/runs/1", "/static/sightline.css", "/image/00", "/nothing")


@pytest.mark.slow
@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_shown_without_the_token(stranger: TestClient, address: str) -> None:
    assert stranger.get(address).status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", "THE RIGHT TOKEN", "the right toke", "the right token ", "é"])
def test_a_wrong_token_is_refused_and_sets_no_cookie(stranger: TestClient, token: str) -> None:
    answer = stranger.get("/runs", params={"token": token})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    cookie = f'{ACCESS.cookie}="{token}"'.encode()
    assert stranger.get("/runs", headers=[(b"cookie", cookie)]).status_code == 403


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(stranger: TestClient) -> None:
    answer = stranger.get("/runs", params={"token": TOKEN, "task": 'a"><script>'})
    stranger.cookies.clear()
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    # The page continues without the token, so that it is in no history, bookmark or shared link.
    assert 'href="/runs?task=a%22%3E%3Cscript%3E"' in answer.text
    assert TOKEN not in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_the_welcome_page_stays_on_this_host(stranger: TestClient) -> None:
    answer = stranger.get("//evil.example/x", params={"token": TOKEN})
    stranger.cookies.clear()
    assert "//evil.example" not in answer.text


def test_with_tls_the_cookie_is_sent_over_tls_only() -> None:
    from starlette.responses import PlainTextResponse

    from sightline.viewer.access import AccessControl

    app = AccessControl(PlainTextResponse("page"), Access(token=TOKEN, port=1, encrypted=True))
    answer = TestClient(app, base_url="https://localhost").get("/", params={"token": TOKEN})
    assert "; secure" in answer.headers["set-cookie"].lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example#127.0.0.1",
        "127.0.0.1/evil.example",
        "",
        "127.0.0.1:port",
        "[::1",
    ],
)
def test_a_forged_host_is_refused_whoever_asks(client: TestClient, host: str) -> None:
    answer = client.get("/runs", headers={"host": host})
    assert answer.status_code == 400
    assert "--allow-host" in answer.text


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost", "LOCALHOST:9000", "[::1]:8765", "192.168.1.7:8765", "Lab.example"]
)
def test_addresses_localhost_and_allowed_names_are_accepted(client: TestClient, host: str) -> None:
    cookie = f'{ACCESS.cookie}="{TOKEN}"'
    # A tunnel has another port, and only names can be made to point here by others.
    assert client.get("/runs", headers={"host": host, "cookie": cookie}).status_code == 200


@pytest.mark.slow
@given(st.text(st.characters(codec="latin-1"), max_size=40))
def test_no_other_name_is_accepted(host: str) -> None:
    name = host.partition(":")[0].lower()
    if Access(token="").accepts_host(host):
        assert name in ("localhost", "[") or name.replace(".", "").isdigit()


def test_every_response_forbids_inline_code_frames_and_other_hosts(client: TestClient) -> None:
    for address in ADDRESSES:
        headers = client.get(address).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://127.0.0.1:9999"])
def test_forms_of_other_sites_are_refused(client: TestClient, origin: str | None) -> None:
    headers = {} if origin is None else {"origin": origin}
    assert client.post("/runs", headers=headers).status_code == 403


def test_forms_of_the_viewer_are_accepted(client: TestClient) -> None:
    # 405: the page exists, and has no form.
    assert client.post("/runs", headers={"origin": "http://127.0.0.1:8765"}).status_code == 405
