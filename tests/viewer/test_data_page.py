"""The pages of data: what is in a folder or groups file before anything is run."""

from __future__ import annotations

import json
import re
import time
from html import escape
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.viewer.conftest import ACCESS, HOST, TOKEN

from sightline.store.store import Store
from sightline.viewer.access import AccessControl
from sightline.viewer.app import create_app

ORIGIN = {"origin": HOST}


@pytest.fixture(scope="module")
def groups_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three groups: two with nearly the same image, one with two questions whose image is missing."""
    folder = tmp_path_factory.mktemp("groups")
    for number, shade in enumerate((0, 1)):
        image = Image.radial_gradient("L").convert("RGB")
        image.putpixel((0, 0), (shade, 0, 0))
        image.save(folder / f"{number}.png")
    lines: list[dict[str, Any]] = [
        {"group": f"g{number}", "variant": "v0", "images": [f"{number}.png"], "prompt": "<b>What?</b>"}
        for number in range(3)
    ]
    lines.append(
        {**lines[2], "variant": "v1", "prompt": "And why?", "references": ["so"], "labels": {"kind": "w"}}
    )
    file = folder / "groups.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.fixture(scope="module")
def client(store: Store, codis: Path, groups_file: Path) -> TestClient:
    app = create_app(store, [codis, groups_file, groups_file.parent / "0.png"])
    client = TestClient(AccessControl(app, ACCESS), base_url=HOST, follow_redirects=False)
    client.get("/", params={"token": TOKEN})
    return client


def test_each_path_is_listed_with_its_format_or_why_it_cannot_be_read(client: TestClient) -> None:
    page = client.get("/data").text
    assert "codis, test" in page
    assert "groups file" in page
    assert page.count('href="/data/') == 2


def test_groups_are_counted_by_label_and_selected(client: TestClient) -> None:
    page = client.get("/data/0").text
    assert "30 of 30 groups" in page
    counts = re.findall(
        r'href="(/data/0\?label\.category=[^"]+)"><span>[^<]+</span><span class="num">(\d+)', page
    )
    assert sum(int(count) for _, count in counts) == 30
    for address, count in counts:
        assert f"{count} of 30 groups" in client.get(address).text


def test_thumbnails_are_those_of_the_groups_and_a_missing_one_is_reported(client: TestClient) -> None:
    assert client.get("/data/1/images/0/0").headers["content-type"] == "image/webp"
    assert client.get("/data/1/images/2/0").status_code == 404
    assert client.get("/data/1/images/99/0").status_code == 404
    assert client.get("/data/7").status_code == 404


def test_near_duplicates_are_searched_on_request_only(client: TestClient) -> None:
    pytest.importorskip("imagehash")
    assert "Search for near-duplicates" in client.get("/data/1").text
    assert client.post("/data/1/duplicates").status_code == 403
    assert client.post("/data/1/duplicates", headers=ORIGIN).status_code == 303
    for _ in range(100):
        page = client.get("/data/1").text
        if "1 near-duplicates" in page:
            break
        time.sleep(0.1)
    assert "g1 and g0" in page
    assert "1 images cannot be read" in page


def test_a_group_is_one_card_with_the_context_and_reference_of_each_probe(
    client: TestClient, codis: Path
) -> None:
    page = client.get("/data/0").text
    records = json.loads((codis / "data.json").read_text())[:3]
    assert page.count("<article") == 30
    for record in records:
        assert page.count(escape(record["context"]["context_1"])) >= 1
        assert page.count(escape(record["context"]["context_2"])) >= 1
    found = client.get("/data/1?search=and why").text
    assert "1 of 3 groups" in found
    assert all(text in found for text in ("&lt;b&gt;What?", "And why?", "<b>so</b>"))
    assert "1 of 3 groups" in client.get("/data/1?label.kind=w").text


def test_texts_of_data_stay_texts(client: TestClient) -> None:
    page = client.get("/data/1").text
    assert "<b>What?</b>" not in page
    assert "&lt;b&gt;What?&lt;/b&gt;" in page


def test_a_folder_that_cannot_be_read_has_one_line_with_what_to_name_and_the_reasons_folded(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "built" / "context").mkdir(parents=True)
    (tmp_path / "built" / "context" / "groups.jsonl").write_text("")
    client = TestClient(AccessControl(create_app(store, [tmp_path / "built"]), ACCESS), base_url=HOST)
    client.get("/", params={"token": TOKEN})
    row = client.get("/data").text.partition("<tbody>")[2].partition("<details>")
    assert "no benchmark can read this folder" in row[0]
    assert f"such as {tmp_path / 'built' / 'context'}" in row[0]
    assert "codis:" not in row[0]
    assert "codis:" in row[2]
