"""A form that cannot be stored: the page says so, shows what was typed, and can send it again."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.viewer.annotation.conftest import Site, Visitor, responses

from sightline.annotation.live import LiveProject
from sightline.annotation.store import ProjectRow
from sightline.annotation.task import Field, task
from sightline.errors import EnvironmentFailedError

Visit = Callable[[], Visitor]

TEXT = '20 minutes of <b>writing</b>, "quoted"\n\n  and a last line.'


@pytest.fixture
def writing(site: Site) -> ProjectRow:
    """Two items on which one annotator each writes."""
    note = Field("note", "text", lines=5)
    made = replace(task("rate"), fields=(note,), decides=(), produces="judgements")
    return site.add(made, responses(site.folder, 2), "AK", "BR", annotators=1)


@pytest.fixture
def writer(site: Site, writing: ProjectRow, visit: Visit) -> Visitor:
    return visit().begin(site.link(writing, "AK"))


def _says_what_was_typed(page: Visitor) -> None:
    assert "This was not saved" in page.text
    area = re.search(r"<textarea[^>]*readonly>\n(.*?)</textarea>", page.text, re.DOTALL)
    assert area is not None
    assert unescape(area[1]) == TEXT


def _send_again(page: Visitor, path: str) -> Visitor:
    form = page.text.partition("<main")[2].partition("<form")[2].partition("</form>")[0]
    pairs = re.findall(r'name="([^"]+)" value="([^"]*)"', form, re.DOTALL)
    return page.send({unescape(name): unescape(value) for name, value in pairs}, path)


@pytest.mark.parametrize("event", ["paused", "closed"])
def test_what_was_written_meanwhile_is_shown_and_can_be_sent_when_the_project_goes_on(
    site: Site, writing: ProjectRow, writer: Visitor, event: str
) -> None:
    def stop(stopped: bool) -> None:
        if event == "closed":
            site.annotations.close(writing.number, closed=stopped)
        else:
            site.annotations.change_annotator(writing.number, 1, lambda one: replace(one, paused=stopped))

    item, path = writer.item, f"/annotate/{writing.number}/items/{writer.item}"
    stop(True)
    assert writer.judge(f_note=TEXT).status == 409
    assert event in writer.text
    _says_what_was_typed(writer)
    _says_what_was_typed(_send_again(writer, path))
    assert site.log(writing) == []
    stop(False)
    _send_again(writer, path)
    assert "Saved" in writer.text
    assert [(one.item, one.values) for one in site.log(writing)] == [(item, {"note": TEXT})]


def test_what_was_written_is_shown_when_somebody_else_has_the_item(
    site: Site, writing: ProjectRow, writer: Visitor, visit: Visit
) -> None:
    site.clock.now += 3600
    other = visit().begin(site.link(writing, "BR"))
    while 'id="judge"' in other.text:
        other.judge(f_note="quick")
    before = len(site.log(writing))
    assert writer.judge(f_note=TEXT).status == 403
    _says_what_was_typed(writer)
    assert "This item is not in your hands any more." in writer.text
    assert "Send again" not in writer.text, "it would be refused again"
    assert len(site.log(writing)) == before


def test_what_was_written_is_shown_when_the_store_fails(
    writing: ProjectRow, writer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/annotate/{writing.number}/items/{writer.item}"

    def fail(*_: object) -> None:
        raise EnvironmentFailedError("/secret/sightline.db: disk full")

    with monkeypatch.context() as broken:
        broken.setattr(LiveProject, "submit", fail)
        assert writer.judge(f_note=TEXT).status == 503
    _says_what_was_typed(writer)
    assert "secret" not in writer.text
    assert "Saved" in _send_again(writer, path).text


def test_a_form_without_an_id_is_refused(site: Site, writing: ProjectRow, writer: Visitor) -> None:
    """Two of them would be one: the second would be confirmed and not stored."""
    fields = writer.form(f_note=TEXT)
    for without in ({"form": ""}, {"form": " "}):
        path = f"/annotate/{writing.number}/items/{writer.item}"
        assert writer.send(fields | without, path).status == 422
        assert "the form has no id" in writer.text
    assert site.log(writing) == []


def test_a_view_of_the_page_keeps_the_item_in_hand(
    site: Site, writing: ProjectRow, writer: Visitor, visit: Visit
) -> None:
    item = writer.item
    fields, path = writer.form(f_note=TEXT), f"/annotate/{writing.number}/items/{item}"
    for _ in range(5):
        site.clock.now += 1500
        writer.client.get(path)  # What the script of the page does while somebody writes.
    other = visit().begin(site.link(writing, "BR"))
    assert other.item != item
    writer.send(fields, path)
    assert [(one.item, one.values) for one in site.log(writing)] == [(item, {"note": TEXT})]


@pytest.mark.parametrize("way", ["removed", "moved", "replaced"])
def test_nothing_is_confirmed_when_the_file_of_the_store_is_gone(
    site: Site, writing: ProjectRow, writer: Visitor, way: str
) -> None:
    file = Path(site.store.name)
    if way == "removed":
        file.unlink()
    else:
        file.rename(file.with_name("moved.db"))
    if way == "replaced":
        file.write_bytes(b"")
    assert writer.judge(f_note=TEXT).status == 503
    _says_what_was_typed(writer)
    assert writer.open(f"/annotate/{writing.number}/item").status == 503
    assert file.name not in writer.text
