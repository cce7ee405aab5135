"""Pages with hostile content: markup, scripts, template syntax, bidi characters, a text of 1 MB."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.hostile.readers import unsafe
from tests.hostile.texts import TEXTS
from tests.viewer.conftest import ACCESS, HOST, TOKEN

from sightline.cli.main import main
from sightline.store.store import Store
from sightline.viewer.access import AccessControl
from sightline.viewer.app import create_app

pytestmark = pytest.mark.slow

ATTACKS = [
    "<script>window.hit = 1</script>",
    '<img src=x onerror="window.hit = 1">',
    '"><svg onload=window.hit=1>',
    "' onmouseover='window.hit=1",
    "{{ 7 * 7 }}{% raw %}",
    "</pre></script><iframe src=javascript:window.hit=1>",
    "\u202egnp.exe\u2066",
    "javascript:window.hit=1",
    "x" * 1_000_000,
    *TEXTS,
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Path]]:
    """A store with a run of a groups file whose every text is hostile, and the file."""
    folder = tmp_path_factory.mktemp("hostile")
    Image.new("RGB", (8, 8), "red").save(folder / "a.png")
    encodable = [text for text in ATTACKS if not re.search("[\ud800-\udfff]", text) and text.strip()]
    lines, answers = [], []
    for number, text in enumerate(encodable):
        sample = f"{number} {text[:100]}"
        for variant in ("one", f"two {text[:50]}"):
            lines.append(
                {
                    "group": sample,
                    "variant": variant,
                    "images": ["a.png"],
                    "prompt": text,
                    "references": [text[:200]],
                    "labels": {"kind": text[:200]},
                }
            )
            answers.append({"sample": sample, "variant": variant, "response": text})
    (folder / "groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    url = str(folder / "sightline.db")
    words = ["run", f"groups:{folder / 'groups.jsonl'}", "--model", f"replay/{folder / 'answers.jsonl'}"]
    status = main([*words, "--store", url, "--quiet", "--name", "hostile"])
    assert status in (0, 1)
    store = Store.open(url)
    yield store, folder / "groups.jsonl"
    store.close()


@pytest.fixture(scope="module")
def client(hostile: tuple[Store, Path]) -> TestClient:
    store, file = hostile
    app = AccessControl(create_app(store, [file]), ACCESS)
    client = TestClient(app, base_url=HOST, follow_redirects=False)
    client.get("/", params={"token": TOKEN})
    return client


class Elements(HTMLParser):
    """The names of all elements of a page, and attributes that could run something."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.faults.append(f"{tag} {name}={value}")
            if name in ("src", "href", "action", "formaction", "hx-get") and not re.match(
                r"[/?#]", value or "#"
            ):
                self.faults.append(f"{tag} {name}={value}")
            if tag == "script" and name == "src" and not (value or "").startswith("/static/"):
                self.faults.append(f"{tag} {name}={value}")


@pytest.fixture(scope="module")
def pages(client: TestClient) -> dict[str, str]:
    """Texts of pages by their address."""
    for _ in range(300):
        if 'hx-trigger="load' not in client.get("/runs/1/groups").text:
            break
        time.sleep(0.1)
    listed = client.get("/runs/1/groups").text
    addresses = re.findall(r'<a href="(/runs/1/group\?id=[^"]+)"', listed)
    facets = re.findall(r'<a href="(/runs/1/groups\?label[^"]+)"', listed)
    found = {}
    for address in (
        "/",
        "/runs",
        "/runs/1",
        "/runs/1/groups",
        "/judges?run=1",
        "/compare?run=1",
        "/data",
        "/data/0",
        "/runs/1/groups?search=%3Cscript%3E",
        "/runs?model=%22%3E%3Cscript%3E",
        "/?model=%22%3E%3Cscript%3E",
        *map(unescape, addresses[::2]),
        *[facet.replace("&amp;", "&") for facet in facets[::4]],
    ):
        answer = client.get(address)
        assert answer.status_code in (200, 404), address
        found[address] = answer.text
    return found


def test_no_text_becomes_markup_a_script_or_an_address(pages: dict[str, str]) -> None:
    forbidden = {"iframe", "object", "embed", "i", "style", "base"}
    for address, text in pages.items():
        elements = Elements()
        elements.feed(text)
        assert elements.faults == [], address
        assert elements.names & forbidden == set(), address
        assert text.count("<script") == 2, address
        assert unsafe(text) <= {"\t"}, address
    assert len(pages) > 20


def test_a_long_text_does_not_make_a_long_page(pages: dict[str, str]) -> None:
    for address, text in pages.items():
        # The group itself is there as JSON; lists are short.
        if not re.search(r"/group\?id=", address):
            assert len(text) < 400_000, address
