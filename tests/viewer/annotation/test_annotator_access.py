"""Who may use the pages of annotators: links, forged and replayed forms, other people's items, blindness."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.hostile.texts import TEXTS
from tests.viewer.annotation.conftest import DAY, MODELS, Site, Visitor, responses
from tests.viewer.conftest import ACCESS, HOST, TOKEN

from sightline.annotation.links import image_name, token_of
from sightline.annotation.store import ProjectRow
from sightline.annotation.task import Part, Task, task
from sightline.annotation.types import Item, ItemImage
from sightline.viewer.access import Access, AccessControl, Gate
from sightline.viewer.app import create_app

Visit = Callable[[], Visitor]

VIEWER = ("/", "/runs", "/compare", "/judges", "/data", "/projects", "/projects/1", "/nothing")


@pytest.fixture
def rater(site: Site, rating: ProjectRow, visit: Visit) -> Visitor:
    return visit().begin(site.link(rating, "AK"))


def test_a_link_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(
    site: Site, rating: ProjectRow, visit: Visit
) -> None:
    link = site.link(rating, "AK")
    answer = visit().client.get(link)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert link not in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_with_tls_the_cookie_is_sent_over_tls_only(site: Site, rating: ProjectRow) -> None:
    gate = Gate(site.projects, 1, encrypted=True)
    app = AccessControl(create_app(site.store, (), site.projects), Access(token=TOKEN, port=1), gate)
    answer = Visitor(app).client.get(site.link(rating, "AK"))
    assert "; secure" in answer.headers["set-cookie"].lower()


def test_a_link_opens_the_pages_of_its_project_and_nothing_of_the_viewer(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    other = site.add(task("rate"), responses(site.folder, 2), "AK")
    for path in (*VIEWER, f"/annotate/{other.number}/item", "/annotate", "/annotate/"):
        assert rater.open(path).status == 403, path
    style = re.search(r'href="(/static/[^"]+\.css)"', rater.open(f"/annotate/{rating.number}/item").text)
    assert style is not None
    assert rater.open(style[1]).status == 200


def test_a_cookie_of_one_project_does_not_open_another(site: Site, rating: ProjectRow, visit: Visit) -> None:
    other = site.add(task("rate"), responses(site.folder, 2), "AK")
    token = token_of(rating, site.annotator(rating, "AK"))
    cookie = f"sightline-annotate-{ACCESS.port}-{other.number}={token}"
    answer = visit().client.get(f"/annotate/{other.number}/item", headers={"cookie": cookie})
    assert answer.status_code == 403


def test_the_token_of_the_owner_is_no_personal_link(site: Site, rating: ProjectRow, visit: Visit) -> None:
    owner = visit()
    owner.open(f"/?token={TOKEN}")
    assert owner.open(f"/annotate/{rating.number}/item").status == 403


def test_expired_and_revoked_links_end_open_pages_too(site: Site, rating: ProjectRow, visit: Visit) -> None:
    link = site.link(rating, "BR")
    page = visit().begin(link)
    site.clock.now += 15 * DAY
    assert page.accept().status == 403
    assert "ended" in page.text
    site.clock.now -= 15 * DAY
    change = site.annotations.change_annotator
    change(rating.number, 2, lambda one: replace(one, version=one.version + 1, revoked=True))
    for path in (link, f"/annotate/{rating.number}/item"):
        assert page.open(path).status == 403
        assert "revoked" in page.text
    assert site.log(rating) == []


def test_a_renewed_link_opens_and_the_old_one_does_not(site: Site, rating: ProjectRow, visit: Visit) -> None:
    old = site.link(rating, "AK")
    site.annotations.change_annotator(rating.number, 1, lambda one: replace(one, version=2))
    assert visit().open(old).status == 403
    assert visit().open(site.link(rating, "AK")).status == 200


@pytest.mark.parametrize("forge", [0, 1, 2, 3, 4])
def test_a_changed_token_opens_nothing(site: Site, rating: ProjectRow, visit: Visit, forge: int) -> None:
    parts = token_of(rating, site.annotator(rating, "AK")).split(".")
    parts[forge] = str(int(parts[forge]) + 1) if forge < 4 else parts[4][::-1]
    page = visit()
    assert page.open("/annotate/" + ".".join(parts)).status == 403
    assert "set-cookie" not in page.client.get("/annotate/" + ".".join(parts)).headers


@pytest.mark.parametrize(
    "token", ["....", "1.2.3.4.", "a.b", "..", "1.1.1.9999999999.é", ".", "1.1.1.99999999999999999999.x"]
)
def test_nonsense_opens_nothing(rating: ProjectRow, visit: Visit, token: str) -> None:
    assert visit().open(f"/annotate/{token}").status in (403, 404)


def test_guessed_tokens_are_stopped_and_valid_links_never(
    site: Site, rating: ProjectRow, rater: Visitor, visit: Visit
) -> None:
    guesser = visit()
    body = token_of(rating, site.annotator(rating, "AK")).rpartition(".")[0]
    statuses = [guesser.open(f"/annotate/{body}.{number:024}").status for number in range(40)]
    assert statuses.count(403) == 20
    assert set(statuses[20:]) == {429}
    cookie = f"sightline-annotate-{ACCESS.port}-{rating.number}={body}.guess"
    answer = guesser.client.get(f"/annotate/{rating.number}/item", headers={"cookie": cookie})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    assert rater.accept().status == 200
    assert guesser.open(site.link(rating, "BR")).status == 200, "a link that this server has not seen"
    site.clock.now += 61
    assert guesser.open(f"/annotate/{body}.guess").status == 403


def test_a_browser_that_repeats_an_old_cookie_is_not_stopped(
    site: Site, rating: ProjectRow, visit: Visit
) -> None:
    page = visit()
    page.client.cookies.set(f"sightline-annotate-{ACCESS.port}-{rating.number}", "1.1.1.1.old")
    for _ in range(50):
        page.open(f"/annotate/{rating.number}/item")
    assert page.status == 403
    assert page.open(site.link(rating, "AK")).status == 200


def test_a_form_sent_twice_adds_one_entry(site: Site, rating: ProjectRow, rater: Visitor) -> None:
    fields, path = rater.form(f_verdict="0"), f"/annotate/{rating.number}/items/{rater.item}"
    rater.send(fields, path)
    after = rater.item
    assert rater.send(fields, path).item == after
    assert len(site.log(rating)) == 1


def test_a_form_sent_again_with_another_value_keeps_the_first_and_says_so(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    fields, path = rater.form(f_verdict="0"), f"/annotate/{rating.number}/items/{rater.item}"
    rater.send(fields, path)
    rater.send(fields | {"f-verdict": "1"}, path)
    assert "the first version is kept" in rater.text
    assert [entry.values for entry in site.log(rating)] == [{"verdict": "right"}]


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://127.0.0.1:1"])
def test_forms_of_other_sites_are_refused(
    site: Site, rating: ProjectRow, rater: Visitor, origin: str | None
) -> None:
    assert rater.send(rater.form(f_verdict="0"), origin=origin).status == 403
    assert site.log(rating) == []


@pytest.mark.parametrize("change", [{"check": ""}, {"check": "x" * 24}, {"check": "é"}, {"check": None}])
def test_forged_forms_are_refused(
    site: Site, rating: ProjectRow, rater: Visitor, change: dict[str, str | None]
) -> None:
    fields = {
        name: value for name, value in (rater.form(f_verdict="0") | change).items() if value is not None
    }
    assert rater.send(fields).status == 403
    assert site.log(rating) == []


def test_another_item_and_another_annotators_form_are_refused(
    site: Site, rating: ProjectRow, rater: Visitor, visit: Visit
) -> None:
    other = next(number for number in range(1, 21) if number != rater.item)
    place = f"/annotate/{rating.number}/items"
    assert rater.send(rater.form(f_verdict="0"), f"{place}/{other}").status == 403
    rater.begin(site.link(rating, "AK"))
    assert visit().begin(site.link(rating, "BR")).send(rater.form(f_verdict="0")).status == 403
    assert rater.open(f"{place}/{other}").status == 403
    assert rater.open(f"{place}/{other}/feedback").status == 403
    assert rater.open(f"{place}/999").status == 403
    assert site.log(rating) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"f-verdict": "2"},
        {"f-verdict": "-1"},
        {"f-verdict": "right"},
        {"f-verdict": "0", "action": "consent"},
        {"action": "adjudicate"},
        {"f-verdict": "٠"},
        {"f-verdict": ""},
        {"f-verdict": "9" * 10_000},
        {"f-verdict": "0", "step": "1e9"},
    ],
)
def test_values_that_no_page_offers_are_refused(
    site: Site, rating: ProjectRow, rater: Visitor, fields: dict[str, str]
) -> None:
    before = rater.item
    page = rater.send(rater.hidden | fields)
    entries = site.log(rating)
    assert page.status == 422 or [(one.item, one.values) for one in entries] == [
        (before, {"verdict": "right"})
    ]
    assert page.status == 200 or entries == []


@pytest.mark.parametrize("body", [b"\xff\xfe", b"a=1&" * 2000, b"%ff=%ff", b"{}"])
def test_bodies_that_are_no_form_are_refused(
    site: Site, rating: ProjectRow, rater: Visitor, body: bytes
) -> None:
    path = f"/annotate/{rating.number}/items/{rater.item}"
    answer = rater.client.post(path, content=body, headers={"origin": HOST})
    assert answer.status_code in (400, 403)
    assert site.log(rating) == []


def test_times_that_no_page_measured_are_cut(site: Site, rating: ProjectRow, rater: Visitor) -> None:
    rater.send(rater.form(f_verdict="0") | {"seconds": "nan", "shown": "-1e300"})
    rater.send(rater.form(f_verdict="0") | {"seconds": "1e11", "shown": "inf"})
    assert [0 <= one.seconds <= 1800 for one in site.log(rating)] == [True, True]


@pytest.mark.slow
def test_a_blind_page_names_no_model_project_store_or_file(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    hidden = (*MODELS, "cluster-", f"{1:064x}", "sightline.db", str(site.folder), rating.project.name)
    seen = []
    for _ in range(20):
        page = rater.client.get(f"/annotate/{rating.number}/item")
        seen.append(page)
        images = re.findall(r'src="(/annotate/[^"]+)"', page.text)
        assert images
        seen += [rater.client.get(url) for url in images]
        rater.open(f"/annotate/{rating.number}/item").accept()
    for answer in (
        *seen,
        rater.client.get(rater.path),
        rater.client.get(f"/annotate/{rating.number}/guidelines"),
    ):
        said = str(answer.url) + str(answer.headers)
        said += answer.text if answer.headers["content-type"].startswith("text") else ""
        assert not [word for word in hidden if word in said]


def test_images_have_another_name_in_each_item_and_for_each_project(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    items = site.projects.live(rating.number).state.items
    [image] = items[rater.item].images["image"]
    place = f"/annotate/{rating.number}/items"
    assert (
        rater.open(f"{place}/{rater.item}/images/{image_name(rating, rater.item, image.digest)}").status
        == 200
    )
    rater.begin(site.link(rating, "AK"))
    for name in (image.digest, image.path, image_name(rating, rater.item + 1, image.digest), "é", "x"):
        assert rater.client.get(f"{place}/{rater.item}/images/{name}").status_code == 404


@pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "link.png"])
def test_an_image_outside_the_data_folder_is_not_shown(site: Site, visit: Visit, path: str) -> None:
    from tests.viewer.annotation.conftest import draw

    outside = draw(site.folder.parent, "secret.png", "blue")
    (site.folder / "link.png").symlink_to(site.folder.parent / "secret.png")
    item = replace(responses(site.folder, 1)[0], images={"image": (ItemImage(path, outside.digest),)})
    page = visit().begin(site.link(site.add(task("rate"), [item], "AK"), "AK"))
    [url] = set(re.findall(r'src="(/annotate/[^"]+)"', page.text))
    answer = page.client.get(url)
    assert answer.status_code == 404
    assert "secret" not in answer.text
    assert "passwd" not in answer.text


ATTACKS = (
    "<script>window.hit = 1</script>",
    '"><img src=x onerror="window.hit=1">',
    "' onmouseover='window.hit=1",
    "</textarea><script>window.hit=1</script>",
    "{{ 7 * 7 }}",
    "[x](javascript:window.hit=1) ![y](http://evil.example/y)",
    *TEXTS,
)


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text in ATTACKS if not re.search("[\ud800-\udfff]", text)])
def test_markup_in_items_guidelines_and_the_annotators_own_text_stays_text(
    site: Site, visit: Visit, text: str
) -> None:
    note = replace(task("rate").fields[0], name="note", kind="text", label=text[:40], options=())
    made: Task = replace(
        task("rate"),
        title=text[:100],
        instruction=text,
        guidelines=text,
        fields=(note,),
        decides=(),
        produces="judgements",
        shows=(Part("response", "text", text[:40]), Part("options", "options", "Options")),
    )
    item = Item(1, texts={"response": (text,), "options": (text, "other")})
    row = site.add(made, [item], "AK")
    page = visit().begin(site.link(row, "AK"))
    pages = [page.text, page.open(f"/annotate/{row.number}/guidelines").text]
    page.open(f"/annotate/{row.number}/item").judge(f_note=text[:3000])
    pages.append(page.open(f"/annotate/{row.number}/items/1").text)
    for shown in pages:
        assert shown.count("<script") == 1
        assert not re.search(r"<(img|iframe)[^>]*(src=x|onerror|javascript)", shown)
        assert 'href="javascript' not in shown
        assert not re.search(r"<[^>]+ on\w+=(?![^<]*&)", shown)


def test_a_skipped_item_that_another_annotator_took_is_not_judged_twice(site: Site, visit: Visit) -> None:
    row = site.add(task("rate"), responses(site.folder, 2), "AK", "BR", annotators=1)
    one, other = (visit().begin(site.link(row, name)) for name in ("AK", "BR"))
    one.judge(action="skip", reason="unclear")
    while 'id="judge"' in other.text:
        other.accept()
    place = f"/annotate/{row.number}"
    skipped = next(entry.item for entry in site.log(row) if entry.action == "skip")
    assert one.open(f"{place}/items/{skipped}").accept().status == 403
    one.open(f"{place}/items/{skipped}")
    undo = one.form(action="undo") | {"form": "another"}
    assert one.send(undo, f"{place}/items/{skipped}").path.startswith(f"{place}/item")
    judged = [entry.item for entry in site.log(row) if entry.action == "judge"]
    assert len(judged) == len(set(judged))
