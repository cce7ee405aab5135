"""The report in Chromium: accessible, as wide as the screen, without a request or an error on the console."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
from tests.reporting.conftest import Make
from tests.viewer.report.test_report import page_of, part

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

BROKEN_NAMES = """() => {
  const cells = [...document.querySelectorAll(":is(.plot, .bars) :is(th[scope=row], td.sub)")];
  const names = cells.filter(cell => /^\\S{1,12}$/.test(cell.innerText.trim()) && cell.checkVisibility());
  return names.filter(cell => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    return text.getBoundingClientRect().height > 2 * parseFloat(getComputedStyle(cell).fontSize);
  }).map(cell => cell.innerText);
}"""
"""The names of up to 12 characters that stand in several lines."""


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400), ("dark", 400)]
)
def test_a_report_is_accessible_and_requests_nothing(
    codis: Make,
    iibench: Make,
    mmr3: Make,
    tmp_path: Path,
    scheme: Literal["light", "dark"],
    width: int,
) -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here: apt-get install chromium")
    file = tmp_path / "report.html"
    file.write_text(page_of(part(codis, "mini", "other-twelve"), part(iibench, "mini"), part(mmr3, "mini")))
    sandbox = [] if os.getuid() else ["--no-sandbox"]
    with (
        sync_playwright() as started,
        started.chromium.launch(executable_path=CHROMIUM, args=sandbox) as browser,
    ):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        faults: list[str] = []
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on(
            "request",
            lambda sent: (
                faults.append(sent.url) if not sent.url.startswith(("data:", file.as_uri())) else None
            ),
        )
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert width < 1280 or page.evaluate(BROKEN_NAMES) == []
        assert faults == []
        found = Axe().run(page).response["violations"]
        assert [one["id"] for one in found if one["impact"] in ("moderate", "serious", "critical")] == []
