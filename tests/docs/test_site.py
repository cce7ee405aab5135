"""The documentation site is complete and searchable, without dead links, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import html5lib
import pytest
from playwright.sync_api import Page, sync_playwright

import sightline
from sightline.benchmarks.registry import benchmark_names
from sightline.cli.export import summaries
from sightline.cli.list import describe
from sightline.cli.main import COMMANDS, build_parser

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="needs the extra 'docs'")
    folder = tmp_path_factory.mktemp("built") / "site"
    words = [sys.executable, "website/build.py", "--out", str(folder)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def links(file: Path) -> tuple[set[str], list[str], list[str]]:
    """The ids of a page, its links, and what it loads."""
    page = html5lib.parse(file.read_text(), namespaceHTMLElements=False)
    ids = {one.attrib["id"] for one in page.iter() if "id" in one.attrib}
    loaded = [one.attrib["src"] for one in page.iter() if "src" in one.attrib]
    loaded += [one.attrib["href"] for one in page.iter("link")]
    return ids, [one.attrib["href"] for one in page.iter("a") if "href" in one.attrib], loaded


def test_every_link_leads_to_a_page_and_a_section_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {file: links(file) for file in site.rglob("*.html")}
    broken, foreign = [], []
    for file, (_, targets, loaded) in pages.items():
        foreign += [(file.name, one) for one in loaded if re.match(r"\w+:|//", one)]
        for target in [*targets, *loaded]:
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = unquote(target).partition("#")
            found = (file.parent / path.partition("?")[0]).resolve() if path else file
            if not found.is_file() or (anchor and anchor not in pages[found][0]):
                broken.append((file.name, target))
    assert (broken, foreign) == ([], [])
    assert {file.stem for file in site.glob("*.html")} >= {page.stem for page in ROOT.glob("docs/[a-z]*.md")}


def test_every_option_metric_format_and_function_stands_on_its_page(site: Path) -> None:
    for command in COMMANDS:
        text = (site / f"commands/{command}.html").read_text()
        parsers = [build_parser([command])[1]]
        for action in parsers[0]._actions:
            if isinstance(action.choices, dict):
                parsers += [build_parser([command, one])[1] for one in action.choices]
        options = {flag for parser in parsers for flag in parser._option_string_actions}
        assert [flag for flag in options - {"-h", "--help"} if f">{flag}<" not in text] == []
    for name in benchmark_names():
        text = (site / f"metrics/{name}.html").read_text()
        found = describe(name)
        settings = [f"{name}:{setting['name']}" for setting in found["settings"]]
        assert [one for one in [*found["metrics"], *settings] if f">{one}<" not in text] == []
        assert [key for key in found["options"] if f">{key}=" not in text] == []
    text = (site / "formats.html").read_text()
    assert [name for name in summaries() if f">{name}<" not in text] == []
    ids = links(site / "api/functions.html")[0]
    assert [
        one for one in sightline.__all__ if one != "__version__" and f"sightline.api.{one}" not in ids
    ] == []


@pytest.fixture(scope="module")
def page(site: Path) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here: apt-get install chromium")
    sandbox = [] if os.getuid() else ["--no-sandbox"]
    with (
        sync_playwright() as started,
        started.chromium.launch(executable_path=CHROMIUM, args=sandbox) as browser,
    ):
        yield browser.new_page()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("query", "found"),
    [("sign-flip", "comparing"), ("--max-cost", "commands/run"), ("context_awareness", "metrics/codis")],
)
def test_a_search_finds_the_page(site: Path, page: Page, query: str, found: str) -> None:
    page.goto((site / "index.html").as_uri())
    page.fill("input[name=q]", query)
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    page.wait_for_selector("#search-results p:has-text('finished')")
    results = [one.get_attribute("href") or "" for one in page.query_selector_all("#search-results li a")]
    assert f"{found}.html" in [one.partition("#")[0].partition("?")[0] for one in results]


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["index", "performance", "api/functions", "commands/run", "metrics/codis"])
def test_no_page_is_wider_than_the_screen_or_sends_a_request(
    site: Path, page: Page, name: str, width: int
) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((site / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [url for url in sent if not url.startswith(("file:", "data:"))] == []
