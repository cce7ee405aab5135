"""Crowd links: one link for all workers, each of whom is an annotator by the id in the address."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.viewer.annotation.conftest import DAY, Site, Visitor, responses
from tests.viewer.conftest import ACCESS

from sightline.annotation.export import project_verdicts
from sightline.annotation.links import invite, revoke, token_of
from sightline.annotation.store import ProjectRow
from sightline.annotation.task import task
from sightline.cli.main import main
from sightline.errors import UserError

Visit = Callable[[], Visitor]


@pytest.fixture
def row(site: Site) -> ProjectRow:
    return site.add(task("rate"), responses(site.folder, 4), "Anna")


def _link(site: Site, row: ProjectRow, **options: object) -> str:
    expires = site.clock() + DAY
    link = invite(site.annotations, row, "prolific", expires, role="crowd", **options)  # type: ignore[arg-type]
    return "/annotate/" + token_of(row, link)


def _exported(site: Site, row: ProjectRow, out: Path, name: str) -> list[dict[str, str]]:
    words = ["annotate", "export", row.project.name, "--out", str(out), "--store", site.store.name]
    assert main(words) == 0
    return list(csv.DictReader((out / name).read_text().splitlines()))


@pytest.mark.parametrize("parameter", ["PROLIFIC_PID", "workerId", "participantId", "id"])
def test_the_id_in_the_address_is_the_annotator(
    site: Site, row: ProjectRow, visit: Visit, parameter: str
) -> None:
    link = _link(site, row)
    worker = visit().begin(f"{link}?STUDY_ID=s&{parameter}=W1")
    first = worker.item
    assert worker.accept().status == 200
    # On another device, the same worker goes on; another id is another worker, who may get the same item.
    assert visit().begin(f"{link}?{parameter}=w1").item != first
    assert visit().begin(f"{link}?{parameter}=W2").item == first
    assert [one.name for one in site.annotations.annotators(row.number)] == ["Anna", "prolific", "W1", "W2"]


@pytest.mark.parametrize(
    "query", ["", "?id=", "?id=%0a", f"?id={'x' * 101}", "?id=Anna", "?id=prolific", "?id=%00<svg onload=1>"]
)
def test_no_id_and_that_of_somebody_with_another_link_open_nothing(
    site: Site, row: ProjectRow, visit: Visit, query: str
) -> None:
    page = visit().open(_link(site, row) + query)
    assert page.status == 400
    assert 'name="id"' in page.text
    assert "<svg onload" not in page.text
    assert visit().open(f"/annotate/{row.number}/item").status == 403
    assert len(site.annotations.annotators(row.number)) == 2


def test_the_crowd_link_itself_opens_no_item(site: Site, row: ProjectRow, visit: Visit) -> None:
    token = _link(site, row).rpartition("/")[2]
    page = visit().client
    page.cookies.set(f"sightline-annotate-{ACCESS.port}-{row.number}", token)
    assert page.get(f"/annotate/{row.number}/item").status_code == 403


def test_a_revoked_crowd_link_lets_nobody_in_and_a_revoked_worker_stays_out(
    site: Site, row: ProjectRow, visit: Visit
) -> None:
    link = _link(site, row)
    visit().begin(f"{link}?id=W1")
    revoke(site.annotations, row, site.annotator(row, "W1").number)
    assert visit().open(f"{link}?id=W1").status == 403
    revoke(site.annotations, row, site.annotator(row, "prolific").number)
    assert visit().open(f"{link}?id=W2").status == 403


def test_a_worker_without_a_judgement_reads_that_the_study_is_complete_and_gets_no_code(
    site: Site, row: ProjectRow, visit: Visit, tmp_path: Path
) -> None:
    link = _link(site, row, code="C1X7Q2")
    for name in ("W1", "W2", "W3"):
        page = visit().begin(f"{link}?id={name}")
        for _ in range(4):
            page.accept()
        assert "C1X7Q2" in page.text
    visit().begin(f"{link}?id=W4")
    late = visit().begin(f"{link}?id=W5")
    assert "The study is complete. You have judged no item" in late.text
    assert "C1X7Q2" not in late.text
    found = _exported(site, row, tmp_path / "out", "annotators.csv")
    assert {one["by"] for one in found if one["code"]} == {"W1", "W2", "W3"}


def test_after_the_last_item_a_worker_sees_the_code_that_the_export_has(
    site: Site, row: ProjectRow, visit: Visit, tmp_path: Path
) -> None:
    link, codes = _link(site, row, most=2, labels={"region": "KE"}), []
    for name in ("W1", "W2"):
        page = visit().begin(f"{link}?id={name}")
        for _ in range(2):
            assert "completion code" not in page.text
            site.clock.now += 30
            page.accept()
        assert "completion code" in page.text
        codes.append(site.annotator(row, name).code)
        assert codes[-1] in page.text
    assert len(set(codes)) == 2
    found = {one["by"]: one for one in _exported(site, row, tmp_path / "out", "annotators.csv")}
    assert [found[name]["code"] for name in ("W1", "W2", "Anna")] == [*codes, ""]
    assert [found["W1"][name] for name in ("link", "judgements", "seconds", "region")] == [
        "prolific",
        "2",
        "60.0",
        "KE",
    ]
    assert float(found["W1"]["last"]) - float(found["W1"]["began"]) == 30
    judged = _exported(site, row, tmp_path / "out", "judgements.csv")
    assert {(one["by"], one["annotator region"], one["seconds"]) for one in judged} == {
        ("W1", "KE", "30.0"),
        ("W2", "KE", "30.0"),
    }


def test_the_owner_may_give_one_code_to_all_workers(site: Site, row: ProjectRow, visit: Visit) -> None:
    page = visit().begin(_link(site, row, most=1, code="C1X7Q2") + "?id=W1").accept()
    assert "C1X7Q2" in page.text


def test_the_verdicts_of_annotators_with_a_label_are_read_alone(
    site: Site, row: ProjectRow, visit: Visit
) -> None:
    for region, act in (("KE", Visitor.accept), ("US", Visitor.reject)):
        invite(site.annotations, row, f"in {region}", site.clock() + DAY, labels={"region": region})
        act(visit().begin(site.link(row, f"in {region}")))
    word = row.project.name
    found = {
        region: [one.verdict for one in project_verdicts(site.store, f"{word}@region={region}") or ()]
        for region in ("KE", "US")
    }
    assert found == {"KE": ["right"], "US": ["wrong"]}
    assert len(project_verdicts(site.store, word) or ()) == 2
    with pytest.raises(UserError, match="region=XX"):
        project_verdicts(site.store, f"{word}@region=XX")
