"""The annotation pages in Chromium: three annotators by keyboard, the owner, accessibility, no scripts."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from msgspec.structs import replace
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.viewer.annotation.conftest import DAY, Clock, Site, draw, responses
from tests.viewer.conftest import TOKEN

from sightline.annotation.links import invite, token_of
from sightline.annotation.store import ProjectRow
from sightline.annotation.task import Field, Option, Part, Phase, Task, task
from sightline.annotation.types import Item
from sightline.store.store import Store
from sightline.viewer.access import Access, AccessControl, Gate
from sightline.viewer.app import create_app
from sightline.viewer.projects import Projects
from sightline.viewer.server import Listening, bind

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
Open = Callable[..., Page]

WRONG = {"AK": {3, 6, 9, 12}, "BR": {3, 6, 9, 15}, "CM": {3, 6, 9, 12, 18}}
"""The responses that each annotator rejects."""

REVIEW = Task(
    name="review",
    title="Review a question",
    items="probes",
    shows=(
        Part("image", "image"),
        Part("question", "text", "Question"),
        Part("options", "options", "Options"),
        Part("pair", "text", "Two answers"),
        Part("reference", "text", "Reference", highlight=True, after="answer"),
    ),
    fields=(
        Field("answer", "choice", "Your answer", options_from="options"),
        Field(
            "kinds",
            "choices",
            "Faults",
            required=False,
            options=(Option("ocr", "Text", "t"), Option("no", "Other", "o")),
        ),
        Field(
            "verdict",
            "choice",
            "Correct?",
            options=(Option("yes", "Yes", "y", "yes"), Option("no", "No", "x", "no")),
        ),
        Field("why", "text", "Why", when={"verdict": ("no",)}, lines=3),
    ),
    instruction="Read all. Then decide.",
    guidelines="# Rules\n\nRead **all** of it.\n\n- one\n- two",
    consent="You take part in a study.",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    """A running server, and its address without the token."""
    folder = tmp_path_factory.mktemp("annotation")
    store = Store.open(str(folder / "sightline.db"))
    (folder / "data").mkdir()
    clock = Clock()
    site = Site(store, clock, folder / "data", Projects(store, clock))
    bound = bind(Listening(port=0))
    port = bound.getsockname()[1]
    app = AccessControl(
        create_app(store, (), site.projects),
        Access(token=TOKEN, port=port),
        Gate(site.projects, port, encrypted=False),
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    yield site, f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()
    bound.close()
    store.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
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
def visit(browser: Browser, served: tuple[Site, str]) -> Iterator[Open]:
    """Opens browsers of their own. No error on the console, and no request to another host."""
    address = served[1]
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def visit(path: str, **options: object) -> Page:
        context = browser.new_context(base_url=address, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda sent: faults.append(sent.url) if not sent.url.startswith(address) else None)
        page.goto(path)
        page.wait_for_url(lambda url: not re.search(r"token=|/annotate/\d+\.", url))
        return page

    yield visit
    for context in contexts:
        context.close()
    # 422: a form that was filled in wrongly on purpose.
    assert [fault for fault in faults if "422" not in fault] == []


def _item(page: Page) -> int:
    action = page.locator("#judge").get_attribute("action") or ""
    return int(action.rpartition("/")[2])


def _judge(page: Page, name: str) -> int:
    """Judge the item on the page by keyboard, and wait for the confirmation."""
    number = _item(page)
    page.keyboard.press("r" if number in WRONG[name] else "a")
    page.wait_for_url(f"**/item?saved={number}")
    return number


def test_three_annotators_judge_by_keyboard_and_the_export_equals_what_was_clicked(
    served: tuple[Site, str], visit: Open
) -> None:
    site = served[0]
    row = site.add(task("rate"), responses(site.folder), "AK", "BR", "CM")
    place = f"/projects/{row.number}"
    owner = visit(f"/?token={TOKEN}")

    def alpha() -> tuple[str, str]:
        owner.goto(place)
        stat = owner.locator(".stat", has_text="Krippendorff").inner_text()
        shared = re.search(r"(\d+) items with two", stat)
        return stat.split("\n")[1] if len(stat.split("\n")) > 1 else "", shared[1] if shared else "0"

    pages = {}
    for name in WRONG:
        pages[name] = visit(site.link(row, name))
        pages[name].keyboard.press("n")  # Begins, from the guidelines.
        pages[name].wait_for_url("**/item")
    for _ in range(10):
        _judge(pages["AK"], "AK")
        _judge(pages["BR"], "BR")
    assert alpha()[1] == "10"
    # BR judges an item wrongly, undoes that, and judges it again.
    number = _item(pages["BR"])
    pages["BR"].keyboard.press("a" if number in WRONG["BR"] else "r")
    pages["BR"].wait_for_url(f"**/item?saved={number}")
    pages["BR"].keyboard.press("u")
    pages["BR"].wait_for_url(f"**/items/{number}?said=undone")
    assert _judge(pages["BR"], "BR") == number
    for _ in range(5):
        _judge(pages["CM"], "CM")
    # AK stops, and goes on in another browser.
    pages["AK"].context.close()
    pages["AK"] = visit(site.link(row, "AK"), viewport={"width": 400, "height": 800})
    pages["AK"].wait_for_url("**/item")
    assert pages["AK"].locator(".count .num").inner_text() == "10 / 20"
    for name, left in (("AK", 10), ("BR", 9), ("CM", 15)):
        for _ in range(left):
            _judge(pages[name], name)
        expect(pages[name].get_by_role("heading", name="There is no item left")).to_be_visible()
    value, shared = alpha()
    assert shared == "20"
    assert re.match(r"0\.\d\d", value)
    expect(owner.locator(".drawn img")).to_be_visible()
    with owner.expect_download() as download:
        owner.get_by_role("link", name="Export").click()
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        lines = [json.loads(line) for line in archive.read("verdicts.jsonl").splitlines()]
    found = {(line["judge"], int(line["targets"][0], 16)): line["verdict"] for line in lines}
    assert len(lines) == 60
    assert found == {
        (name, number): "wrong" if number in wrong else "right"
        for name, wrong in WRONG.items()
        for number in range(1, 21)
    }


def test_a_break_of_a_crowd_worker_counts_two_minutes(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    row = site.add(task("rate"), responses(site.folder, 1))
    link = invite(site.annotations, row, "prolific", site.clock() + DAY, role="crowd")
    page = visit(f"/annotate/{token_of(row, link)}?PROLIFIC_PID=W1")
    page.clock.install()
    page.keyboard.press("n")
    page.wait_for_url("**/item")
    site.clock.now += 3600
    for minutes in (1, 30):  # A minute of reading, then a break.
        page.clock.fast_forward(minutes * 60_000)
        page.keyboard.press("Shift")
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="Your completion code")).to_be_visible()
    assert 180 <= site.log(row)[0].seconds < 190


def test_back_next_skip_zoom_and_keys_by_keyboard(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    row = site.add(task("rate"), responses(site.folder, 4), "AK")
    page = visit(site.link(row, "AK"))
    page.keyboard.press("n")
    page.wait_for_url("**/item")
    first = _item(page)
    page.keyboard.press("a")
    page.wait_for_url(f"**/item?saved={first}")
    second = _item(page)
    page.keyboard.press("b")
    page.wait_for_url(f"**/items/{first}")
    assert page.locator("[aria-pressed=true]").inner_text().startswith("Accept")
    page.keyboard.press("n")
    page.wait_for_url("**/item")
    page.keyboard.press("z")
    expect(page.locator("#zoom img")).to_be_visible()
    page.keyboard.press("r")  # Nothing is judged behind the image.
    page.keyboard.press("z")
    expect(page.locator("#zoom")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    expect(page.locator("#reason")).to_be_focused()
    page.keyboard.type("arsb: I cannot read it")  # Keys in a text field are text.
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/item?saved={second}")
    assert [(entry.item, entry.action, entry.reason) for entry in site.log(row)] == [
        (first, "judge", ""),
        (second, "skip", "arsb: I cannot read it"),
    ]


def test_the_back_button_of_the_browser_leads_to_the_items_that_were_judged(
    served: tuple[Site, str], visit: Open
) -> None:
    site = served[0]
    row = site.add(task("rate"), responses(site.folder, 4), "AK")
    page = visit(site.link(row, "AK"))
    page.keyboard.press("n")
    page.wait_for_url("**/item")
    first = _judge(page, "AK")
    second = _judge(page, "AK")
    page.go_back()
    page.wait_for_url(f"**/items/{second}?**")
    expect(page.locator(".note")).to_contain_text("You have answered this item")
    expect(page.locator("[aria-pressed=true]")).to_be_visible()
    page.go_back()
    page.wait_for_url(f"**/items/{first}?**")
    page.keyboard.press("r")
    page.wait_for_url(f"**/item?saved={first}")
    assert [(entry.item, entry.values["verdict"]) for entry in site.log(row)] == [
        (first, "wrong" if first in WRONG["AK"] else "right"),
        (second, "wrong" if second in WRONG["AK"] else "right"),
        (first, "wrong"),
    ]


def test_an_author_goes_back_to_the_question_by_keyboard(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    item = Item(1, images={"image": (draw(site.folder, "1.png", "red"),)})
    row = site.add(task("author-codis"), [item], "AK")
    page = visit(site.link(row, "AK"))
    page.goto(f"/annotate/{row.number}/item")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    page.get_by_label("Question").fill("Is it red?")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Similar existing items")).to_be_visible()
    page.locator("[name=f-context_1]").fill("It is a sign.")
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.get_by_label("Question").fill("Is it a stop sign?")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Is it a stop sign?")).to_be_visible()
    expect(page.locator("[name=f-context_1]")).to_have_value("It is a sign.")
    page.locator("[name=f-answer_1]").press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()  # Enter saves, and a context is missing.


def test_several_fields_by_keyboard_with_an_answer_first(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    row = _review(site)
    page = visit(site.link(row, "AK"))
    page.wait_for_url("**/consent")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/guidelines")
    page.keyboard.press("n")
    page.wait_for_url("**/item")
    assert "the hidden truth" not in page.content()
    page.keyboard.press("2")
    page.get_by_text("the hidden truth").wait_for()
    expect(page.get_by_label("Why")).to_be_hidden()
    page.keyboard.press("x")
    expect(page.get_by_label("Why")).to_be_visible()
    page.keyboard.press("t")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("Why: nothing is filled in")
    assert page.locator(":checked").count() == 2
    page.get_by_label("Why").fill("No\nreason")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/item?saved=1")
    entry = site.log(row)[-1]
    assert entry.values == {"answer": "A joke", "kinds": ("ocr",), "verdict": "no", "why": "No\nreason"}


def test_a_key_stands_only_where_it_selects_an_option(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    options = (Option("a", "One"), Option("b", "Two"))
    fields = [Field(name, "choice", name, options=options) for name in ("first", "second")]
    made = Task("two", "Two", "probes", (*fields, Field("why", "text", "Why")))
    row = site.add(made, [Item(1)], "AK")
    page = visit(site.link(row, "AK"))
    page.goto(f"/annotate/{row.number}/item")
    keys = [page.get_by_role("group", name=name).locator("kbd:visible") for name in ("first", "second")]
    for chosen, where in (("1", 0), ("2", 0)):
        assert [one.count() for one in keys] == [2, 0]
        page.keyboard.press(chosen)
        expect(page.locator(f"[name=f-first][value='{int(chosen) - 1}']")).to_be_checked()
        expect(keys[where]).to_have_count(2)
    page.locator("[name=f-second]").first.focus()
    expect(keys[1]).to_have_count(2)
    expect(keys[0]).to_have_count(0)
    page.keyboard.press("1")
    expect(page.locator("[name=f-second][value='0']")).to_be_checked()
    page.get_by_label("Why").focus()
    expect(keys[1]).to_have_count(0)


def test_an_image_is_kept_or_dropped_in_one_action(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    items = [Item(n, images={"image": (draw(site.folder, f"{n}.png", "red"),)}) for n in (1, 2, 3)]
    row = site.add(task("screen"), items, "AK", annotators=1)
    page = visit(site.link(row, "AK"))
    for keys in (["a"], ["2", "r"], ["2", "a"]):
        page.goto(f"/annotate/{row.number}/item")
        expect(page.locator("#judge .v")).to_have_count(0)  # No choice here is right or wrong.
        number = page.locator("#judge").get_attribute("action")
        assert number is not None
        page.locator("[name=f-remark]").press("Enter")  # Enter decides nothing.
        page.keyboard.press("Escape")
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_url(f"**/item?saved={number.rpartition('/')[2]}")
    assert [entry.values for entry in site.log(row)] == [
        {"decision": "keep"},
        {"decision": "drop", "reason": "no implied meaning"},
        {"decision": "keep"},
    ]


def test_a_text_is_typed_and_saved_with_enter(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    made = Task(
        "respond",
        "Answer",
        "probes",
        (Field("response", "text", "Your answer"),),
        shows=(Part("question", "text"),),
    )
    row = site.add(made, [Item(n, texts={"question": (f"Q{n}",)}) for n in (1, 2)], "AK")
    page = visit(site.link(row, "AK"))
    page.goto(f"/annotate/{row.number}/item")
    expect(page.get_by_label("Your answer")).to_be_focused()
    page.keyboard.type("lost")
    page.reload()
    expect(page.get_by_label("Your answer")).to_have_value("lost")
    expect(page.get_by_role("status")).to_contain_text("was not saved; it is back")
    page.get_by_label("Your answer").fill("")
    for number in (1, 2):
        expect(page.get_by_label("Your answer")).to_be_focused()
        page.keyboard.type("a rubber stamp")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/item?saved={number}")
    assert [entry.values for entry in site.log(row)] == [{"response": "a rubber stamp"}] * 2


def test_without_scripts_an_item_is_judged_undone_and_skipped(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    row = site.add(task("rate"), responses(site.folder, 3), "AK")
    page = visit(site.link(row, "AK"), java_script_enabled=False)
    page.get_by_role("link", name="Begin").click()
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Reject").click()
    page.get_by_role("button", name="Skip").click()
    page.get_by_label("Reason").fill("unclear")
    page.get_by_role("button", name="This item is broken").click()
    assert [entry.action for entry in site.log(row)] == ["judge", "undo", "judge", "broken"]


def test_the_owner_settles_an_item_by_keyboard(served: tuple[Site, str], visit: Open) -> None:
    site = served[0]
    row = site.add(task("rate"), responses(site.folder, 2), "AK", "BR", annotators=2)
    for name, key in (("AK", "a"), ("BR", "r")):
        page = visit(site.link(row, name))
        page.goto(f"/annotate/{row.number}/item")
        number = _item(page)
        page.keyboard.press(key)
        page.wait_for_url(f"**/item?saved={number}")
    owner = visit(f"/?token={TOKEN}")
    owner.goto(f"/projects/{row.number}")
    owner.keyboard.press("j")
    owner.keyboard.press("Enter")
    owner.wait_for_url("**/items/*")
    owner.keyboard.press("r")
    owner.wait_for_url(f"**/projects/{row.number}")
    assert site.log(row)[-1].values == {"verdict": "wrong"}


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit_the_screen(
    served: tuple[Site, str], visit: Open, width: int, scheme: str
) -> None:
    site = served[0]
    axe = Axe()
    row = _review(site)
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = visit(site.link(row, "AK"), **options)

    def check(page: Page) -> None:
        found = axe.run(page).response["violations"]
        serious = [
            (page.url, one["id"], [node["html"] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("moderate", "serious", "critical")
        ]
        assert serious == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url

    page.wait_for_url("**/consent")
    check(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/guidelines")
    check(page)
    page.keyboard.press("n")
    page.wait_for_url("**/item")
    check(page)
    page.keyboard.press("2")
    page.get_by_text("the hidden truth").wait_for()
    check(page)
    page.keyboard.press("s")
    check(page)
    page.keyboard.press("Escape")
    # The focus leaves the closed popover a moment later; keys typed into it judge nothing.
    page.wait_for_function(
        "!document.querySelector(':popover-open') && !document.activeElement.closest('[popover]')"
    )
    page.keyboard.press("y")
    expect(page.locator('[data-key="y"]')).to_be_checked()
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**saved**")
    check(page)
    page.goto(f"/annotate/{row.number}/items/1")
    check(page)
    training = replace(task("rate"), phases=(Phase("try", "Training", "training"), Phase("work", "Rating")))
    first, second = responses(site.folder, 2)
    items = [replace(first, phase="try", expected={"verdict": "right"}), replace(second, phase="work")]
    rated = site.add(training, items, "AK")
    page = visit(site.link(rated, "AK"), **options)
    page.goto(f"/annotate/{rated.number}/item")
    check(page)
    page.keyboard.press("r")
    page.wait_for_url("**/feedback")
    check(page)
    page.keyboard.press("n")
    page.wait_for_url("**/item")
    page.keyboard.press("a")
    page.wait_for_url("**saved**")
    check(page)
    owner = visit(f"/?token={TOKEN}", **options)
    for path in ("/projects", *(f"/projects/{row.number}{end}" for end in ("", "/items", "/items/1"))):
        owner.goto(path)
        check(owner)


def _review(site: Site) -> ProjectRow:
    images = tuple(draw(site.folder, name, "blue") for name in ("one.png", "two.png"))
    items = [
        Item(
            number,
            texts={
                "question": ("What does the image imply?",),
                "options": ("A moral about patience and about what it is worth", "A joke", "Grief"),
                "pair": ("It is a hill.", "إنها حفرة"),
                "reference": ("the hidden truth",),
            },
            images={"image": images},
        )
        for number in range(1, 4)
    ]
    row = site.add(REVIEW, items, "AK", annotators=1)
    assert site.annotator(row, "AK").expires > site.clock() + DAY
    return row
