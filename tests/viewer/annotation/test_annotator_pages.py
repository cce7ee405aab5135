"""What an annotator's pages do without scripts: judge, skip, undo, change, consent, training, steps."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import unescape

import pytest
from msgspec.structs import replace
from tests.viewer.annotation.conftest import MODELS, Site, Visitor, draw, responses
from tests.viewer.conftest import TOKEN

from sightline.annotation.exchange import judgements_table
from sightline.annotation.links import form_token
from sightline.annotation.overview import overview
from sightline.annotation.store import ProjectRow
from sightline.annotation.task import Field, GoldRule, Option, Part, Phase, PhaseKind, Task, task
from sightline.annotation.types import Item

Visit = Callable[[], Visitor]


@pytest.fixture
def rater(site: Site, rating: ProjectRow, visit: Visit) -> Visitor:
    return visit().begin(site.link(rating, "AK"))


def test_a_judgement_is_in_the_log_when_the_page_confirms_it(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    site.clock.now += 12
    first = rater.item
    rater.accept()
    assert "Saved: Accept." in rater.text
    assert rater.item != first
    [entry] = site.log(rating)
    assert (entry.item, entry.action, entry.values) == (first, "judge", {"verdict": "right"})
    assert entry.seconds == pytest.approx(12, abs=0.01)


def test_undo_gives_the_item_back_and_adds_an_entry(site: Site, rating: ProjectRow, rater: Visitor) -> None:
    first = rater.item
    rater.reject()
    undo = rater.form(action="undo") | {"check": _undo_check(rater)}
    rater.send(undo, f"/annotate/{rating.number}/items/{first}")
    assert rater.item == first
    assert "open again" in rater.text
    rater.accept()
    assert [(one.action, one.values.get("verdict")) for one in site.log(rating)] == [
        ("judge", "wrong"),
        ("undo", None),
        ("judge", "right"),
    ]


def test_an_earlier_item_can_be_changed(site: Site, rating: ProjectRow, rater: Visitor) -> None:
    first = rater.item
    rater.accept()
    rater.open(f"/annotate/{rating.number}/items/{first}")
    assert 'aria-pressed="true"' in rater.text
    rater.reject()
    state = site.projects.live(rating.number).refresh()
    [entry] = state.of_item(first).values()
    assert entry.values == {"verdict": "wrong"}


@pytest.mark.parametrize("action", ["skip", "broken"])
def test_an_item_is_skipped_or_reported_with_a_reason(
    site: Site, rating: ProjectRow, rater: Visitor, action: str
) -> None:
    first = rater.item
    assert rater.judge(action=action, reason="  ").status == 422
    assert "Reason" in rater.text
    rater.judge(action=action, reason="The image is black.")
    [entry] = site.log(rating)
    assert (entry.item, entry.action, entry.reason) == (first, action, "The image is black.")


def test_nothing_is_saved_without_a_value_and_the_page_says_what_is_missing(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    assert rater.judge().status == 422
    assert "Judgement: nothing is filled in" in rater.text
    assert site.log(rating) == []


def test_work_goes_on_in_another_browser(
    site: Site, rating: ProjectRow, rater: Visitor, visit: Visit
) -> None:
    for _ in range(3):
        rater.accept()
    other = visit().begin(site.link(rating, "AK"))
    assert other.item == rater.item
    assert "3 / 20" in other.text


@pytest.mark.slow
def test_at_the_end_the_page_thanks_and_leads_back(
    site: Site, visit: Visit, rating: ProjectRow, rater: Visitor
) -> None:
    for _ in range(20):
        rater.accept()
    assert "You have done 20 items" in rater.text
    assert len({entry.item for entry in site.log(rating)}) == 20
    assert f"/annotate/{rating.number}/items/" in rater.text


def test_consent_comes_first(site: Site, visit: Visit) -> None:
    made = replace(task("rate"), consent="You take part in a study.")
    row = site.add(made, responses(site.folder, 2), "AK")
    page = visit().begin(site.link(row, "AK"))
    assert page.path.endswith("/consent")
    assert "You take part in a study." in page.text
    check = page.text.partition('name="check" value="')[2].partition('"')[0]
    page.send({"check": check, "form": "1"}, page.path)
    assert page.path.endswith("/guidelines")
    assert "<strong>Accept</strong>" in page.text
    assert page.open(f"/annotate/{row.number}/").path.endswith("/guidelines")
    page.open(f"/annotate/{row.number}/item").accept()
    assert [entry.action for entry in site.log(row)] == ["consent", "judge"]


def test_nothing_is_judged_without_consent(site: Site, visit: Visit) -> None:
    made = replace(task("rate"), consent="You take part in a study.")
    row = site.add(made, responses(site.folder, 2), "AK")
    page = visit().begin(site.link(row, "AK"))
    check = form_token(row, site.annotator(row, "AK"), 1)
    page.send({"check": check, "form": "1", "f-verdict": "0"}, f"/annotate/{row.number}/items/1")
    assert page.path.endswith("/consent")
    assert site.log(row) == []


def test_training_shows_the_expected_value_afterwards_and_no_other_phase_does(
    site: Site, visit: Visit
) -> None:
    phases = (Phase("practice", "Training", "training"), Phase("work", "Rating"))
    made = replace(task("rate"), phases=phases, gold=GoldRule(every=1))
    first, second, gold = responses(site.folder, 3)
    items = [
        replace(first, phase="practice", expected={"verdict": "right"}),
        replace(second, phase="work"),
        replace(gold, phase="work", expected={"verdict": "wrong"}),
    ]
    page = visit().begin(site.link(site.add(made, items, "AK"), "AK"))
    assert page.reject().path.endswith("/feedback")
    assert "Not as expected" in page.text
    place = page.path.rpartition("/items/")[0]
    for _ in range(2):
        page.open(f"{place}/item").accept()
        assert not page.path.endswith("/feedback")
        assert "expected" not in page.text
    assert page.open(f"{place}/items/3/feedback").status in (403, 404)
    assert "Reject" not in page.text


ANSWER_FIRST = Task(
    name="review",
    title="Review",
    items="probes",
    shows=(
        Part("question", "text", "Question"),
        Part("options", "options", "Options"),
        Part("reference", "text", "Reference", after="answer"),
    ),
    fields=(
        Field("answer", "choice", "Your answer", options_from="options"),
        Field(
            "accurate",
            "choice",
            options=(Option("yes", "Accurate", "y"), Option("no", "Not accurate", "x")),
        ),
        Field("why", "text", "Why", when={"accurate": ("no",)}),
    ),
)


def test_a_part_after_an_answer_is_not_in_the_page_before_it(site: Site, visit: Visit) -> None:
    item = Item(
        1, texts={"question": ("Q?",), "options": ("cat\r\ndog", "bird"), "reference": ("the hidden truth",)}
    )
    row = site.add(ANSWER_FIRST, [item], "AK")
    page = visit().begin(site.link(row, "AK"))
    assert "the hidden truth" not in page.text
    assert page.judge(f_accurate="0").status == 422  # The answer is missing.
    assert "the hidden truth" not in page.text
    page.judge(f_answer="0")
    assert "the hidden truth" in page.text
    assert site.log(row) == []
    assert page.judge(f_accurate="1").status == 422  # The reason is missing.
    page.judge(f_accurate="1", f_why="It is a bird.")
    [entry] = site.log(row)
    assert entry.values == {"answer": "cat\r\ndog", "accurate": "no", "why": "It is a bird."}


def test_an_answer_that_was_given_blind_stays_after_its_part_is_shown(site: Site, visit: Visit) -> None:
    item = Item(1, texts={"question": ("Q?",), "options": ("cat", "bird"), "reference": ("the truth",)})
    page = visit().begin(site.link(site.add(ANSWER_FIRST, [item], "AK"), "AK")).judge(f_answer="0")
    assert 'value="earlier"' not in page.text
    assert page.send(page.form(action="earlier")).status == 422


def test_an_author_goes_back_to_the_question_and_nothing_is_lost(site: Site, visit: Visit) -> None:
    item = Item(1, images={"image": (draw(site.folder, "1.png", "red"),)})
    row = site.add(task("author-codis"), [item], "AK")
    page = visit().begin(site.link(row, "AK"))
    assert 'value="earlier"' not in page.text
    page.judge(f_category="0", f_question="Is it red?")
    assert "Similar existing items" in page.text
    page.send(page.form(action="earlier", f_context_1="It is a sign."))
    assert "Similar existing items" not in page.text
    assert 'value="Is it red?"' in page.text or ">\nIs it red?<" in page.text
    page.judge(f_category="0", f_question="Is it a stop sign?")
    assert "Is it a stop sign?" in page.text
    assert "It is a sign." in page.text
    assert site.log(row) == []


def test_texts_are_saved_as_they_were_typed_with_line_feeds(site: Site, visit: Visit) -> None:
    made = Task("note", "Note", "images", (Field("note", "text", "Note", lines=3),))
    row = site.add(made, [Item(1, texts={})], "AK")
    page = visit().begin(site.link(row, "AK"))
    page.judge(f_note="line 1\r\n  שלום\u200f & <b>")
    [entry] = site.log(row)
    assert entry.values == {"note": "line 1\n  שלום\u200f & <b>"}
    page.open(f"/annotate/{row.number}/items/1")
    assert "line 1\n  שלום\u200f &amp; &lt;b&gt;</textarea>" in page.text


def test_right_to_left_texts_have_their_own_direction(rater: Visitor) -> None:
    assert rater.text.count('dir="auto"') >= 3


def test_an_image_is_shown_upright_as_models_see_it(site: Site, visit: Visit) -> None:
    from PIL import Image, ImageOps

    exif = Image.Exif()
    exif[274] = 6
    image = draw(site.folder, "turned.jpg", "red", exif=exif)
    item = replace(responses(site.folder, 1)[0], images={"image": (image,)})
    page = visit().begin(site.link(site.add(task("rate"), [item], "AK"), "AK"))
    url = page.text.partition('<a href="')[2].partition('"')[0]
    with (
        Image.open(io.BytesIO(page.client.get(url).content)) as shown,
        Image.open(site.folder / "turned.jpg") as kept,
    ):
        assert shown.getexif().get(274, 1) == 1
        assert shown.tobytes() == ImageOps.exif_transpose(kept).convert("RGB").tobytes()
    assert "width=" not in page.text.partition("<figure")[2].partition("</figure>")[0]


@pytest.mark.slow
def test_a_paused_annotator_and_a_closed_project_say_so(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    number = site.annotator(rating, "AK").number
    site.annotations.change_annotator(rating.number, number, lambda one: replace(one, paused=True))
    assert "paused" in rater.accept().text
    assert site.log(rating) == []
    site.annotations.change_annotator(rating.number, number, lambda one: replace(one, paused=False))
    rater.open(f"/annotate/{rating.number}/item")
    site.annotations.close(rating.number)
    assert rater.accept().status == 409
    assert "This project is closed" in rater.text
    assert "sightline annotate" not in rater.text
    assert "This project is closed" in rater.open(f"/annotate/{rating.number}/item").text


def test_an_image_that_is_missing_is_no_fault_of_the_page(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    url = rater.text.partition('<a href="')[2].partition('"')[0]
    for model in MODELS:
        for file in (site.folder / model).iterdir():
            file.unlink()
    answer = rater.client.get(url)
    assert answer.status_code == 404
    assert str(site.folder) not in answer.text
    assert not any(model in answer.text for model in MODELS)


def _undo_check(page: Visitor) -> str:
    return page.text.partition('<form id="undo"')[2].partition('name="check" value="')[2].partition('"')[0]


def test_a_field_whose_options_the_item_lacks_is_not_on_the_page(site: Site, visit: Visit) -> None:
    made = task("respond")
    phase = next(one.name for one in made.phases if one.kind == "work")
    items = [
        Item(1, texts={"question": ("Open?",)}, phase=phase),
        Item(2, texts={"question": ("Which?",), "options": ("cat", "dog")}, phase=phase),
    ]
    page = visit().begin(site.link(site.add(made, items, "AK"), "AK"))
    if page.item == 2:  # Everybody has an order of their own.
        page.judge(f_option="0")
    assert page.text.count('class="lab" for=') + page.text.count("<legend") == 3  # One field, reason, remark.
    assert "Test" not in page.text.partition("<main")[2]  # Phases without items are not shown.


def test_reviewers_see_all_options_when_they_judge_the_distractors(site: Site, visit: Visit) -> None:
    texts = {"question": ("Why?",), "options": ("a cat", "a dog", "a cow"), "right option": ("B: a dog",)}
    items = [Item(1, texts=texts, phase="blind"), Item(2, texts=texts, phase="review")]
    page = visit().begin(site.link(site.add(task("review"), items, "AK"), "AK"))
    assert page.text.count("a cow") == 1 + page.text.count(
        '<dd dir="auto">a cow'
    )  # Only as an option to choose.
    page.judge(f_answer="2")
    options = re.search(r'<ol class="letters">.*?</ol>', page.text, re.DOTALL)
    assert options is not None
    assert re.findall(r"<li[^>]*>(.*?)</li>", options[0]) == ["a cat", "a dog", "a cow"]


LONG = "Take the second street on the left, then walk until you see the church with two towers."


def _questions(kind: PhaseKind) -> tuple[Task, list[Item]]:
    """A question that rules can compare, one that they cannot, and one after them."""
    phases = (Phase("first", "First", kind), Phase("answer", "Questions"))
    known = {"How do I get there?": LONG, "Which street?": "Main Street"}
    items = [
        Item(
            number,
            texts={"question": (question,)},
            phase="first",
            expected={"answer": (reference,)},
            hidden={"sample": str(number), "references": (reference,)},
        )
        for number, (question, reference) in enumerate(known.items(), start=1)
    ]
    work = Item(3, texts={"question": ("What now?",)}, phase="answer", hidden={"sample": "3"})
    return replace(task("respond"), phases=phases), [*items, work]


def _respond(page: Visitor, to_long: str) -> None:
    for _ in range(2):
        page.judge(f_answer=to_long if "How do I" in page.text else "main street.")
        if page.path.endswith("/feedback"):
            return


def test_the_pages_of_a_test_say_its_rules(site: Site, visit: Visit) -> None:
    made, items = _questions("qualification")
    page = visit().begin(site.link(site.add(made, items, "AK", benchmark="contextual"), "AK"))
    assert "as expected are needed" in page.text
    page_of_rules = page.client.get(page.path.rpartition("/")[0] + "/guidelines").text
    assert "2 items, of which 2 must be answered as expected" in page_of_rules
    assert "an item that you skip or report counts as wrong" in page.text


def test_the_first_item_after_a_test_cannot_undo_the_test(site: Site, visit: Visit) -> None:
    made, items = _questions("qualification")
    page = visit().begin(site.link(site.add(made, items, "AK", benchmark="contextual"), "AK"))
    _respond(page, LONG)
    assert "What now?" in page.text
    assert 'id="undo"' not in page.text
    assert "Press U" not in page.text


def test_who_fails_later_cannot_save_the_item_in_hand(site: Site, visit: Visit) -> None:
    made, items = _questions("qualification")
    row = site.add(made, items, "AK", benchmark="contextual")
    page = visit().begin(site.link(row, "AK"))
    _respond(page, "Second left, up to the church.")
    owner = visit().open(f"/?token={TOKEN}").open(f"/projects/{row.number}/answers")
    assert "A rejection in the test ends the work" in owner.text
    form = {"item": "1", "response": "Second left, up to the church."}
    owner.send(form | {"form": "1", "action": "accept"}, f"/projects/{row.number}/answers")
    page.open(f"/annotate/{row.number}/item")
    assert "What now?" in page.text
    owner.send(form | {"form": "2", "action": "reject"}, f"/projects/{row.number}/answers")
    before = len(site.log(row))
    page.judge(f_answer="I wait.")
    assert page.status == 403
    assert "The test is not passed" in page.text
    assert "I wait." in page.text
    assert len(site.log(row)) == before


@pytest.mark.parametrize(("action", "follows"), [("accept", True), ("reject", False)])
def test_an_answer_that_only_a_human_can_compare_waits_for_the_owner(
    site: Site, visit: Visit, action: str, follows: bool
) -> None:
    made, items = _questions("qualification")
    row = site.add(made, items, "AK", "BR", benchmark="contextual")
    pages = {name: visit().begin(site.link(row, name)) for name in ("AK", "BR")}
    for page in pages.values():
        _respond(page, "Second left, up to the church.")
        assert "the owner of this project decides" in unescape(page.text).replace("\n", " ")
        assert 'id="judge"' not in page.text
        page.open(f"/annotate/{row.number}/items/1")
        assert "The test is over, and its answers stay." in unescape(page.text)
        assert "Second left, up to the church." in page.text
        for change in ("replaces it", 'id="judge"', 'id="undo"', "Save and next"):
            assert change not in page.text
    owner = visit().open(f"/?token={TOKEN}")
    owner.open(f"/projects/{row.number}")
    assert "Answers to compare: 1" in owner.text
    assert "1 answer waits to be compared" in owner.text
    owner.open(f"/projects/{row.number}/answers")
    for shown in ("1 answer waits", "How do I get there?", LONG, "Second left, up to the church.", "AK, BR"):
        assert shown in owner.text
    assert "Main Street" not in owner.text  # The rules compare it.
    form = {"form": "1", "item": "1", "response": "Second left, up to the church.", "action": action}
    owner.send(form, f"/projects/{row.number}/answers")
    assert "All answers are decided" in owner.text
    for page in pages.values():
        page.open(f"/annotate/{row.number}/item")
        assert ("What now?" in page.text) == follows
        assert ("1 of your answers are as expected, and 2 are needed" in page.text) != follows
    assert site.log(row)[-1].action == action


def test_a_decision_about_an_answer_can_be_changed_and_one_that_nobody_gave_is_refused(
    site: Site, visit: Visit
) -> None:
    made, items = _questions("qualification")
    row = site.add(made, items, "AK", benchmark="contextual")
    page = visit().begin(site.link(row, "AK"))
    _respond(page, "Ask somebody.")
    owner, place = visit().open(f"/?token={TOKEN}"), f"/projects/{row.number}/answers"
    form = {"item": "1", "response": "Ask somebody."}
    owner.send(form | {"form": "1", "action": "reject"}, place)
    owner.send(form | {"form": "2", "action": "accept"}, place)
    assert "What now?" in page.open(f"/annotate/{row.number}/item").text
    before = len(site.log(row))
    for wrong in ({"response": "No."}, {"item": "9"}, {"action": "judge"}, {"form": ""}):
        assert owner.send(form | {"form": "3", "action": "accept"} | wrong, place).status in (400, 404, 422)
    assert len(site.log(row)) == before


def test_in_training_the_annotator_is_told_that_the_owner_decides_and_goes_on(
    site: Site, visit: Visit
) -> None:
    made, items = _questions("training")
    row = site.add(made, items[:1] + items[2:], "AK", benchmark="contextual")
    page = visit().begin(site.link(row, "AK"))
    _respond(page, "Second left, up to the church.")
    assert "Waits for the owner" in page.text
    assert LONG in page.text
    assert (
        "expected" in visit().open(f"/?token={TOKEN}").open(f"/projects/{row.number}/answers").text.casefold()
    )
    page.open(f"/annotate/{row.number}/item")
    assert "What now?" in page.text


def test_only_verdicts_on_answers_have_the_colours_of_right_and_wrong(site: Site, visit: Visit) -> None:
    item = Item(1, texts=dict.fromkeys(("first", "second", "original", "variant", "response"), ("A.",)))
    for name in ("rate", "judge", "same-meaning", "equivalence", "screen-captions", "verify"):
        page = visit().begin(site.link(site.add(task(name), [item], "AK"), "AK")).text
        assert ('class="btn yes"' in page) == (name in ("rate", "judge", "verify")), name


def test_new_guidelines_are_told_to_those_who_have_begun_and_each_judgement_keeps_its_version(
    site: Site, rating: ProjectRow, rater: Visitor, visit: Visit
) -> None:
    live = site.projects.live(rating.number)
    first = rater.item
    rater.accept()
    live.change_guidelines("Reject **every** typo.")
    live.change_guidelines("Reject **every** typo.")  # the same text is no version
    rater.open(f"/annotate/{rating.number}/item")
    assert "The guidelines have changed since your last item" in rater.text
    assert "<strong>every</strong>" in rater.text
    second = rater.item
    rater.accept()
    assert "The guidelines have changed" not in rater.text
    newcomer = visit().begin(site.link(rating, "BR"))
    assert "The guidelines have changed" not in newcomer.text
    assert "version 2" in newcomer.open(f"/annotate/{rating.number}/guidelines").text
    table = judgements_table(live.refresh(), live.annotators())
    version, item = table[0].index("guidelines"), table[0].index("item")
    assert {(row[item], row[version]) for row in table[1:]} == {
        (f"item-{first:04d}", "1"),
        (f"item-{second:04d}", "2"),
    }


def test_a_remark_reaches_the_owner_and_changes_no_judgement(
    site: Site, rating: ProjectRow, rater: Visitor
) -> None:
    item = rater.item
    form = rater.form(action="remark", remark="  The image is <upside> down. ")
    rater.send(form)
    assert "Your remark is sent to the owner." in rater.text
    rater.send(form, f"/annotate/{rating.number}/items/{item}")
    assert rater.item == item
    assert rater.judge(action="remark", remark=" ").status == 422
    live = site.projects.live(rating.number)
    (entry,) = live.refresh().remarks
    assert (entry.item, entry.reason) == (item, "The image is <upside> down.")
    assert live.state.of_item(item) == {}
    rater.open(f"/annotate/{rating.number}/item").accept()
    assert live.refresh().of_item(item)[1].values == {"verdict": "right"}
    seen = overview(live.state, live.annotators(), site.clock())
    assert [one.item for one in seen.remarks] == [item]
    other = Item(99)
    assert rater.send(form, f"/annotate/{rating.number}/items/{other.number}").status == 403
