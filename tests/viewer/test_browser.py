"""The viewer in Chromium: each page's main path, by keyboard too; accessibility; nothing leaves the host."""

from __future__ import annotations

import io
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.viewer.conftest import TOKEN

from sightline.store.store import Store
from sightline.viewer.access import Access, AccessControl
from sightline.viewer.app import create_app
from sightline.viewer.server import Listening, bind

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def address(store: Store, codis: Path) -> Iterator[str]:
    """A running server; its address without the token."""
    with serving(store, codis) as address:
        yield address


@contextmanager
def serving(store: Store, data: Path) -> Iterator[str]:
    """Run a server; its address without the token."""
    bound = bind(Listening(port=0))
    access = Access(token=TOKEN, port=bound.getsockname()[1])
    app = AccessControl(create_app(store, [data]), access)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    yield f"http://127.0.0.1:{access.port}"
    server.should_exit = True
    thread.join()
    bound.close()


@pytest.fixture(scope="module")
def browser(store: Store, disputed: Store) -> Iterator[Browser]:
    """Chromium. The stores are filled first: within Playwright, an event loop runs in this thread."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here: apt-get install chromium")
    with sync_playwright() as started:
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        # A busy machine takes longer than the 5 s that Playwright waits.
        expect.set_options(timeout=30_000)
        browser = started.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that opened the printed URL. No error on the console, and no request to another host."""
    context = browser.new_context(base_url=address)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda sent: faults.append(sent.url) if not sent.url.startswith(address) else None)
    sign_in(page, address)
    yield page
    context.close()
    assert faults == []


def sign_in(page: Page, address: str) -> None:
    """Open the printed URL, and wait until its page has continued at the address without the token."""
    page.goto(f"/?token={TOKEN}")
    page.wait_for_url(f"{address}/")


def open_page(page: Page, address: str) -> None:
    """Open a page, and wait until the index that it needs is built."""
    page.goto(address)
    expect(page.locator("[hx-trigger^=load]")).to_have_count(0, timeout=30_000)


PAGES = (
    "/",
    "/runs",
    "/runs/1",
    "/runs/1/groups",
    "/runs/1/group?id=000",
    "/compare",
    "/compare?run=1&run=2",
    "/judges",
    "/judges?run=1",
    "/data",
    "/data/0",
    "/nothing",
)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_pages_are_accessible_and_fit_the_screen(
    browser: Browser, address: str, width: int, scheme: Scheme
) -> None:
    axe = Axe()
    context = browser.new_context(
        base_url=address, viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    page = context.new_page()
    sign_in(page, address)
    for path in PAGES:
        open_page(page, path)
        found = axe.run(page).response["violations"]
        serious = [
            (path, one["id"], [node["html"] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("moderate", "serious", "critical")
        ]
        assert serious == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    context.close()


def test_from_the_leaderboard_to_a_group_with_the_mouse(page: Page) -> None:
    open_page(page, "/")
    page.locator("td.val a").first.click()
    page.get_by_role("link", name="Groups 30").click()
    page.get_by_role("link", name="none", exact=False).first.click()
    page.locator(".card a").first.click()
    assert page.locator("article.probe").count() == 2


def test_groups_by_keyboard(page: Page) -> None:
    open_page(page, "/runs/1/groups")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator(".card.at a").get_attribute("href")
    assert second == page.locator(".card a").nth(1).get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{second}")
    page.keyboard.press("2")
    assert page.locator("article.probe.at").get_attribute("id") == "probe-2"
    following = page.locator("[rel=next]").get_attribute("href")
    page.keyboard.press("n")
    page.wait_for_url(f"**{following}")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()


def test_search_by_keyboard_and_the_filter_in_the_address(page: Page) -> None:
    open_page(page, "/runs/1/groups?right=none")
    page.keyboard.press("/")
    page.keyboard.type("the")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=the**")
    assert "right=none" in page.url


def test_another_order_is_shown_when_it_is_chosen_and_stays_in_the_address(page: Page) -> None:
    open_page(page, "/runs/1/groups?right=none")
    page.get_by_label("Order").select_option("order of the data")
    page.wait_for_url("**order=data**")
    assert "right=none" in page.url
    assert page.get_by_label("Order").input_value() == "data"
    numbers = [int(one) for one in re.findall(r"/runs/1/group\?id=(\d+)&", page.content())]
    assert numbers == sorted(numbers)
    page.go_back()
    page.wait_for_url(re.compile("groups.right=none$"))
    expect(page.get_by_label("Order")).to_have_value("")


def test_after_the_back_button_the_search_is_that_of_the_address(page: Page) -> None:
    open_page(page, "/runs/1/groups")
    page.locator("[type=search]").fill("the")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=the**")
    page.go_back()
    page.wait_for_url("**/runs/1/groups")
    expect(page.locator("[type=search]")).to_have_value("")


def test_on_a_narrow_screen_all_of_the_menu_is_seen_and_a_button_shows_the_filters(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    open_page(page, "/runs/1/groups")
    for link in page.get_by_role("navigation", name="Main").get_by_role("link").all():
        box = link.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 400
    assert not page.get_by_role("heading", name="Answers right").is_visible()
    page.get_by_text("Show filters").click()
    assert page.get_by_role("heading", name="Answers right").is_visible()
    assert page.get_by_text("Hide filters").is_visible()


def test_disputed_responses_are_listed_with_each_verdict_and_lead_to_their_group(
    browser: Browser, disputed: Store, codis: Path
) -> None:
    with serving(disputed, codis) as address:
        context = browser.new_context(base_url=address)
        page = context.new_page()
        sign_in(page, address)
        open_page(page, "/judges?run=2")
        expect(page.locator("article.pairrow tbody tr")).to_have_count(4)
        head = page.locator("article.pairrow thead").first.bounding_box()
        rows = page.locator("article.pairrow tbody").first.bounding_box()
        assert head is not None
        assert rows is not None
        assert (head["x"], head["width"]) == (rows["x"], rows["width"])
        page.locator("article.pairrow h3 a").first.click()
        page.wait_for_url("**/runs/2/group?id=*")
        assert page.get_by_text("anna").count() > 0
        context.close()


def test_marked_differences_can_be_hidden_by_keyboard(page: Page) -> None:
    open_page(page, "/runs/1/group?id=000")
    page.keyboard.press("d")
    assert page.locator("#unmarked").is_checked()


def test_runs_are_selected_and_compared(page: Page) -> None:
    open_page(page, "/runs")
    page.get_by_label("Compare run 1").check()
    page.get_by_label("Compare run 2").check()
    page.get_by_role("button", name="Compare selected runs").click()
    page.wait_for_selector(".quad")
    page.locator(".quad a").nth(3).click()
    assert "show=both_wrong" in page.url


def test_the_head_of_a_table_of_responses_stands_over_its_columns(page: Page) -> None:
    open_page(page, "/compare?run=1&run=2")
    page.wait_for_selector("table.responses")
    for width in (400, 650, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        rows = page.locator("table.responses").first.locator("thead tr, tbody tr")
        boxes = [row.bounding_box() for row in rows.all()]
        assert len({(round(box["x"]), round(box["width"])) for box in boxes if box}) == 1
        cells = page.locator("table.responses").first.locator("th")
        a, b = [box["width"] for cell in cells.all()[2:] if (box := cell.bounding_box())]
        assert a == pytest.approx(b, abs=1)


def test_near_duplicates_are_searched_with_progress(page: Page) -> None:
    pytest.importorskip("imagehash")
    open_page(page, "/data/0")
    page.get_by_role("button", name="Search for near-duplicates").click()
    page.get_by_text(re.compile(r"\d+ near-duplicates")).wait_for()


def test_without_scripts_every_page_can_be_used(browser: Browser, address: str) -> None:
    context = browser.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, address)
    page.goto("/runs/1/groups")
    page.locator("input[type=search]").fill("the")
    page.get_by_role("button", name="Search").click()
    assert "search=the" in page.url
    page.locator(".card a").first.click()
    page.locator("summary", has_text="JSON").click()
    assert page.locator("#json").is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_beyond_the_screen_has_a_shade_at_the_edge_until_it_is_scrolled_to_its_end(
    browser: Browser, address: str, scheme: Scheme
) -> None:
    context = browser.new_context(
        base_url=address, viewport={"width": 320, "height": 900}, color_scheme=scheme
    )
    page = context.new_page()
    sign_in(page, address)
    open_page(page, "/compare?run=1&run=2")
    table = page.locator(".scroll").first
    table.evaluate("one => { one.firstElementChild.style.width = '60rem' }")

    def edge() -> tuple[int, int]:
        """The brightness of the last pixels of a line, and of pixels before them."""
        image = Image.open(io.BytesIO(table.screenshot())).convert("L")
        line = image.height - 2
        return (pixel(image, image.width - 1, line), pixel(image, image.width - 40, line))

    def pixel(image: Image.Image, x: int, y: int) -> int:
        value = image.getpixel((x, y))
        assert isinstance(value, int)
        return value

    shaded, plain = edge()
    assert abs(shaded - plain) > 20
    table.evaluate("one => { one.scrollLeft = one.scrollWidth }")
    last, plain = edge()
    assert abs(last - plain) <= 3
    context.close()
