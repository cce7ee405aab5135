"""The owner's pages: progress, agreement as it grows, items to settle, links, pause, close, export."""

from __future__ import annotations

import io
import json
import re
import shutil
import time
import zipfile
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.viewer.annotation.conftest import DAY, Site, Visitor, responses
from tests.viewer.conftest import ACCESS, HOST, TOKEN

from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.task import Field, GoldRule, task
from sightline.cli.main import main
from sightline.store.store import Store
from sightline.viewer.access import AccessControl
from sightline.viewer.app import create_app

Visit = Callable[[], Visitor]


@pytest.fixture
def owner(visit: Visit) -> Visitor:
    page = visit()
    page.open(f"/?token={TOKEN}")
    return page


def _judge_all(site: Site, row: ProjectRow, visit: Visit, wrong: dict[str, set[int]]) -> None:
    """Every annotator judges every item; `wrong`: the items that each rejects."""
    for name, items in wrong.items():
        page = visit().begin(site.link(row, name))
        while 'id="judge"' in page.text:
            site.clock.now += 10
            page.reject() if page.item in items else page.accept()


def _post(owner: Visitor, path: str, **fields: str) -> int:
    return owner.client.post(path, data=fields, headers={"origin": HOST}).status_code


def test_every_page_of_the_owner_needs_the_token(site: Site, rating: ProjectRow, visit: Visit) -> None:
    place = f"/projects/{rating.number}"
    for path in (
        "/projects",
        place,
        f"{place}/items",
        f"{place}/items/1",
        f"{place}/answers",
        f"{place}/export.zip",
    ):
        assert visit().open(path).status == 403
    stranger = visit()
    for path in (
        f"{place}/items/1",
        f"{place}/annotators",
        f"{place}/annotators/1",
        f"{place}/state",
        f"{place}/guidelines",
        f"{place}/answers",
    ):
        assert _post(stranger, path, action="close", name="X", days="3") == 403
    assert site.annotations.project(str(rating.number)).closed is None


def test_the_owner_changes_the_guidelines_and_reads_the_remarks(
    site: Site, rating: ProjectRow, owner: Visitor, visit: Visit
) -> None:
    place = f"/projects/{rating.number}"
    assert "Remarks" not in owner.open(place).text
    assert _post(owner, f"{place}/guidelines", guidelines="Read.\n\nAccept <all>.") == 303
    assert _post(owner, f"{place}/guidelines", guidelines=" ") == 400
    rater = visit().begin(site.link(rating, "AK"))
    assert "Accept &lt;all&gt;." in rater.text
    rater.judge(action="remark", remark="Which clock?")
    page = owner.open(place).text
    assert "version 2, 20" in page
    assert "Read.\n\nAccept &lt;all&gt;.</textarea>" in page
    assert "Which clock?" in page
    site.annotations.close(rating.number)
    assert _post(owner, f"{place}/guidelines", guidelines="Later.") == 409


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example"])
def test_forms_of_other_sites_change_nothing(
    site: Site, rating: ProjectRow, owner: Visitor, origin: str | None
) -> None:
    headers = {"origin": origin} if origin else {}
    answer = owner.client.post(f"/projects/{rating.number}/state", data={"action": "close"}, headers=headers)
    assert answer.status_code == 403
    assert site.annotations.project(str(rating.number)).closed is None


@pytest.mark.slow
def test_progress_and_agreement_are_those_of_the_judgements(
    site: Site, rating: ProjectRow, owner: Visitor, visit: Visit
) -> None:
    place = f"/projects/{rating.number}"
    assert "No judgement yet." in owner.open(place).text
    wrong = {1, 2, 3, 4, 5, 6, 7, 8}
    _judge_all(site, rating, visit, {"AK": wrong, "BR": wrong})
    text = re.sub(r"<[^>]+>", " ", owner.open(place).text)
    assert re.search(r"40\s+of 60", text)
    assert re.search(r"alpha\s+1\.00", text)
    assert re.search(r"AK, BR\s+20\s+100\.0\s+1\.00", text)
    _judge_all(site, rating, visit, {"CM": set(range(9, 21))})
    text = re.sub(r"<[^>]+>", " ", owner.open(place).text)
    assert re.search(r"60\s+of 60", text)
    assert "All judgements are there." in text
    assert re.search(r"AK, CM\s+20\s+0\.0\s+−", text)
    assert "10 s" in text


def test_labels_that_differ_are_items_to_settle_and_their_agreement_is_shown(
    site: Site, owner: Visitor, visit: Visit
) -> None:
    made = replace(
        task("screen"), decides=(), produces="judgements", records="", labels=("decision",), ties="consensus"
    )
    row = site.add(made, responses(site.folder, 2), "AK", "BR", annotators=2)
    for name, decision in (("AK", "0"), ("BR", "1")):
        visit().begin(site.link(row, name)).judge(f_decision=decision, f_reason="0")
    page = owner.open(f"/projects/{row.number}").text
    assert "no majority for decision" in page
    assert re.search(r'decision</th><td class="n">0.0</td>', page)


def test_annotators_who_differ_see_what_the_others_said_without_their_names(site: Site, visit: Visit) -> None:
    made = replace(task("rate"), ties="consensus")
    row = site.add(made, responses(site.folder, 1), "Annabel", "BR", annotators=2)
    visit().begin(site.link(row, "Annabel")).accept()
    page = visit().begin(site.link(row, "BR"))
    assert "The others said" not in page.text
    page.reject()
    assert "The others said" in page.text
    assert "Accept" in page.text.partition("The others said")[2].partition("</section>")[0]
    assert page.text.index("The others said") < page.text.index('id="judge"')
    assert "The annotators differ on this item." in page.text
    assert "Annabel" not in page.text
    page.accept()
    assert 'id="judge"' not in page.text
    assert [entry.reconsidered for entry in site.log(row)] == [False, False, True]


def test_metrics_of_a_run_are_corrected_by_the_annotators(site: Site, owner: Visitor, visit: Visit) -> None:
    row = site.add(task("rate"), responses(site.folder, 2), "AK")
    assert "There is no verdict yet." in owner.open(f"/projects/{row.number}/corrected").text
    number = site.annotations.create(
        replace(row.project, name="runs", sources=("7", str(site.folder))), responses(site.folder, 2)
    )
    site.annotations.invite(number, replace(site.annotator(row, "AK"), number=0))
    visit().begin(site.link(site.annotations.project("runs"), "AK")).accept()
    page = owner.open(f"/projects/{number}/corrected").text
    assert "there is no run 7" in page.lower() or "no such run" in page.lower() or "run 7" in page
    assert "--judge human:runs" in page


@pytest.mark.slow
def test_the_chart_ends_at_the_agreement_of_all_items(
    site: Site, rating: ProjectRow, owner: Visitor, visit: Visit
) -> None:
    _judge_all(site, rating, visit, {"AK": {1, 2, 3, 4}, "BR": {1, 2, 3, 5}})
    text = unescape(owner.open(f"/projects/{rating.number}").text)
    label = re.search(r"alpha from [\d.-]+ at \d+ items to ([\d.-]+) at 20 items", text)
    alpha = re.search(r"<div class=\"big\">(0\.\d\d)<span", text)
    assert label is not None
    assert alpha is not None
    assert label[1] == alpha[1]


def test_the_owner_settles_items_without_a_decision(site: Site, owner: Visitor, visit: Visit) -> None:
    row = site.add(task("rate"), responses(site.folder, 4), "AK", "BR", annotators=2)
    _judge_all(site, row, visit, {"AK": {1, 2}, "BR": {2, 3}})
    page = owner.open(f"/projects/{row.number}")
    assert "To settle: 2 items" in page.text
    assert "2 to settle" in page.text
    (about,) = {"question: " in row for row in page.text.split("<tr data-item>")[1:]}
    assert about, "each row says which question its response answers"
    page.open(f"/projects/{row.number}/items/1")
    assert "gpt-4o" in page.text or "qwen-vl" in page.text  # The owner sees the facts that are hidden.
    form = page.hidden["form"]
    assert _post(page, f"/projects/{row.number}/items/1", **{"form": form, "f-verdict": "1"}) == 303
    assert _post(page, f"/projects/{row.number}/items/1", **{"form": form, "f-verdict": "1"}) == 303
    assert "1 settled" in page.open(f"/projects/{row.number}").text
    assert "To settle: 1 item" in page.text
    assert [entry.annotator for entry in site.log(row)].count(0) == 1
    assert _post(page, f"/projects/{row.number}/items/1", form="new") == 422
    assert _post(page, f"/projects/{row.number}/items/99", **{"form": form, "f-verdict": "1"}) == 404


def test_the_page_says_why_equal_judgements_have_no_alpha(site: Site, owner: Visitor, visit: Visit) -> None:
    row = site.add(task("rate"), responses(site.folder, 4), "AK", "BR", annotators=2)
    _judge_all(site, row, visit, {"AK": set(), "BR": set()})
    page = owner.open(f"/projects/{row.number}")
    assert "There is no chart: all judgements are equal." in page.text


def test_a_project_without_answers_has_no_page_to_compare_them(rating: ProjectRow, owner: Visitor) -> None:
    assert owner.open(f"/projects/{rating.number}/answers").status == 404


def test_the_lines_of_a_text_stay_lines(site: Site, owner: Visitor, visit: Visit) -> None:
    note = Field("note", "text", lines=3)
    made = replace(task("rate"), fields=(note,), decides=(), produces="judgements")
    row = site.add(made, responses(site.folder, 1), "AK")
    visit().begin(site.link(row, "AK")).judge(f_note="one\ntwo")
    assert "one\ntwo" in owner.open(f"/projects/{row.number}/items/1").text
    assert "one\\ntwo" not in owner.text.partition("<form")[0]


def test_a_personal_link_is_made_renewed_and_revoked(
    site: Site, rating: ProjectRow, owner: Visitor, visit: Visit
) -> None:
    place = f"/projects/{rating.number}"
    assert _post(owner, f"{place}/annotators", name="DT", role="adjudicator", days="3") == 303
    added = site.annotator(rating, "DT")
    assert (added.role, added.expires) == ("adjudicator", site.clock() + 3 * DAY)
    link = site.link(rating, "DT")
    assert f"{HOST}{link}" in owner.open(place).text
    assert _post(owner, f"{place}/annotators/{added.number}", action="renew", days="14") == 303
    assert visit().open(link).status == 403
    assert visit().open(site.link(rating, "DT")).status == 200
    assert _post(owner, f"{place}/annotators/{added.number}", action="revoke") == 303
    assert visit().open(site.link(rating, "DT")).status == 403
    assert site.link(rating, "DT") not in owner.open(place).text
    for wrong in (
        {"name": ""},
        {"name": "X", "days": "0"},
        {"name": "X", "days": "1e3"},
        {"name": "X", "role": "king"},
    ):
        assert _post(owner, f"{place}/annotators", **({"role": "rater", "days": "3"} | wrong)) == 400


def test_pause_and_failed_gold_items_stop_an_annotator_until_the_owner_resumes(
    site: Site, owner: Visitor, visit: Visit
) -> None:
    made = replace(task("rate"), gold=GoldRule(every=1, failures=1, action="pause"))
    items = [
        replace(item, expected={"verdict": "wrong"}) if item.number == 3 else item
        for item in responses(site.folder, 3)
    ]
    row = site.add(made, items, "AK")
    page = visit().begin(site.link(row, "AK"))
    assert page.item == 3
    page.accept()
    assert "paused" in page.text
    assert "0 of 1" in owner.open(f"/projects/{row.number}").text
    assert _post(owner, f"/projects/{row.number}/annotators/1", action="resume") == 303
    assert page.open(f"/annotate/{row.number}/item").item in (1, 2)
    assert _post(owner, f"/projects/{row.number}/annotators/1", action="pause") == 303
    assert "paused" in page.open(f"/annotate/{row.number}/item").text


def test_a_closed_project_takes_nothing_and_opens_again(
    site: Site, rating: ProjectRow, owner: Visitor, visit: Visit
) -> None:
    place = f"/projects/{rating.number}"
    page = visit().begin(site.link(rating, "AK"))
    assert _post(owner, f"{place}/state", action="close") == 303
    assert page.accept().status == 409
    assert "Open project again" in owner.open(place).text
    assert _post(owner, f"{place}/state", action="reopen") == 303
    assert page.begin(site.link(rating, "AK")).accept().status == 200


@pytest.mark.slow
def test_the_export_equals_what_was_clicked(
    site: Site, rating: ProjectRow, owner: Visitor, visit: Visit
) -> None:
    clicked = {"AK": {1, 2, 3}, "BR": {2, 3, 4}, "CM": set()}
    _judge_all(site, rating, visit, clicked)
    answer = owner.client.get(f"/projects/{rating.number}/export.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        lines = [json.loads(line) for line in archive.read("verdicts.jsonl").splitlines()]
        assert {"log.jsonl", "items.csv", "judgements.csv", "items.xlsx"} <= set(archive.namelist())
    found = {(line["judge"], int(line["targets"][0], 16)): line["verdict"] for line in lines}
    assert found == {
        (name, number): "wrong" if number in items else "right"
        for name, items in clicked.items()
        for number in range(1, 21)
    }


def test_items_are_listed_by_their_state(
    site: Site, rating: ProjectRow, owner: Visitor, visit: Visit
) -> None:
    page = visit().begin(site.link(rating, "AK"))
    page.judge(action="broken", reason="black")
    listed = owner.open(f"/projects/{rating.number}/items?status=broken").text
    assert listed.count("<tr data-item>") == 1
    assert owner.open(f"/projects/{rating.number}/items").text.count("<tr data-item>") == 20
    assert owner.open(f"/projects/{rating.number}/items?after=15").text.count("<tr data-item>") == 5


def test_a_store_without_projects_says_how_to_begin(site: Site, owner: Visitor) -> None:
    assert "sightline annotate new" in owner.open("/projects").text
    assert owner.open("/projects/7").status == 404


def test_a_project_is_started_in_the_browser_from_what_the_server_shows(
    store_file: Path, codis: Path, tmp_path: Path
) -> None:
    copied = str(shutil.copy(store_file, tmp_path))
    with closing(Store.open(copied, create=False)) as store:
        owner = Visitor(AccessControl(create_app(store, [codis]), ACCESS))
        page = owner.open(f"/?token={TOKEN}").open("/projects").text
        assert "1: base on codis" in page
        form = {"task": "rate", "source": "1", "name": "blind", "data": "", "images": "4", "seed": "7"}
        for changed in (
            {"source": "/etc"},
            {"source": "99"},
            {"data": "/etc"},
            {"images": "-1"},
            {"name": " "},
            {"task": "none"},
            {"task": str(codis / "mine.toml")},
        ):
            assert _post(owner, "/projects", **(form | changed)) == 422, changed
        answer = owner.client.post("/projects", data=form | {"annotators": "x"}, headers={"origin": HOST})
        assert 'role="alert"' in answer.text
        assert 'name="name" value="blind"' in answer.text
        assert re.search(r'<option value="1" selected>', answer.text)
        answer = owner.client.post("/projects", data=form, headers={"origin": HOST})
        assert answer.status_code == 303
        made = AnnotationStore(store, time.time).project("blind")
        assert answer.headers["location"] == f"/projects/{made.number}"
        items = AnnotationStore(store, time.time).items(made.number)
        assert made.project.sources == ("1",)
        assert Path(made.project.data) == codis.resolve()
        assert len({item.cluster for item in items}) == 4
        assert main(["annotate", "new", "rate", "1", "--name", "same", "--data", str(codis), "--images", "4",
                     "--seed", "7", "--store", copied]) == 0  # fmt: skip
        assert items == AnnotationStore(store, time.time).items(made.number + 1)
        assert _post(owner, "/projects", **form) == 422  # The name is taken.
