"""The page that lists runs, and pages that do not exist."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_runs_are_listed_with_their_names_and_selected_by_task_model_and_tag(client: TestClient) -> None:
    page = client.get("/runs").text
    assert "2 of 2 runs" in page
    assert page.index('href="/runs/2"') < page.index('href="/runs/1"')
    assert "1 of 2 runs" in client.get("/runs", params={"tag": "july"}).text
    assert "0 of 2 runs" in client.get("/runs", params={"search": "gpt"}).text
    assert "1 of 2 runs" in client.get("/runs", params={"search": "JUL"}).text


def test_a_page_that_does_not_exist_says_so_in_the_frame(client: TestClient) -> None:
    answer = client.get("/nothing")
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.text
