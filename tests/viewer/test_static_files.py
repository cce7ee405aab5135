"""Static files: a name stands for one content, and no path leaves the package."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient


def test_pages_name_files_that_browsers_keep(client: TestClient) -> None:
    named = re.findall(r'"(/static/[^"]+)"', client.get("/runs").text)
    assert len(named) == 4
    for address in named:
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_pages_are_asked_for_at_each_visit(client: TestClient) -> None:
    assert client.get("/runs").headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "sightline.css",
        "../app.py",
        "..%2Fapp.py",
        "%2e%2e/%2e%2e/access.py",
        "..%5C..%5Caccess.py",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "htmx.LICENSE.txt",
        "sightline.css%00.js",
    ],
)
def test_no_other_path_is_served(client: TestClient, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404


@pytest.mark.slow
def test_scripts_and_pages_have_nothing_inline(client: TestClient) -> None:
    page = client.get("/runs").text
    assert re.findall(r"<script(?! src=\"/static/)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page) == []
    assert '"allowEval": false' in page
    assert '"includeIndicatorStyles": false' in page
