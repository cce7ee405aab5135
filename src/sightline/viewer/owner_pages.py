"""The owner's pages: projects, one project, its items, the forms that change it, corrected metrics."""

from __future__ import annotations

import io
import secrets
import tempfile
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sightline.annotation.creation import Draft, NewProject, draft_project
from sightline.annotation.decisions import (
    AnswerToCompare,
    answers_to_compare,
    decisions_of,
    gold_result,
    is_gold,
    open_labels,
    settlers,
    ties_of,
    verdicts,
)
from sightline.annotation.export import export_project
from sightline.annotation.links import image_name, invite, renew, revoke, token_of
from sightline.annotation.live import LiveProject
from sightline.annotation.overview import (
    AgreementPoint,
    Overview,
    label_agreement,
    mean_kappa,
    overview,
    pairwise,
    stuck_sentence,
)
from sightline.annotation.sources import SourceRequest
from sightline.annotation.state import State
from sightline.annotation.store import ProjectRow
from sightline.annotation.task import Task, task_names
from sightline.annotation.task import task as find_task
from sightline.annotation.types import OWNER, Annotator, Entry, Item, ItemImage, Project, Values, as_given
from sightline.benchmarks.registry import benchmark_names
from sightline.errors import UserError, unknown_name
from sightline.evaluation.judges import HUMAN_PREFIX, RecordedJudge
from sightline.evaluation.result import recompute
from sightline.evaluation.runs import find_run
from sightline.formats.jsonl import ANSWERS
from sightline.metrics.label_quality import LabelQuality, Vote, label_quality
from sightline.reporting.chart_kinds import growth
from sightline.reporting.charts import PAGE_INCHES
from sightline.reporting.table import ReportTable
from sightline.reporting.tables import corrected_tables
from sightline.text import local_time
from sightline.types import Verdict, each_value
from sightline.viewer.access import NOT_KEPT
from sightline.viewer.addresses import NotFoundError, number_of, read_word
from sightline.viewer.annotation_items import (
    ALL_STEPS,
    Fields,
    ItemView,
    given_values,
    item_image,
    view_item,
)
from sightline.viewer.annotation_items import one as one_value
from sightline.viewer.plots import PageChart, page_chart
from sightline.viewer.viewer import Viewer, run_name

SECTION = "Annotate"
PAGE = 100
MOST_DAYS = 365


def projects_page(viewer: Viewer, request: Request, given: Fields | None = None, fault: str = "") -> Response:
    """The projects, and the form that starts one; `given` is what it held when `fault` stopped it."""
    rows = []
    for row in viewer.projects.rows():
        live = viewer.projects.live(row.number)
        rows.append((row, overview(live.refresh(), live.annotators(), viewer.projects.clock(), growth=0)))
    context = {
        "section": SECTION,
        "rows": rows,
        "tasks": [(name, find_task(name).title) for name in task_names()],
        "sources": _sources(viewer),
        "folders": [path for path in viewer.data if path.is_dir()],
        "given": given or {},
        "fault": fault,
    }
    return viewer.page("projects_page.html", context, 422 if fault else 200)


def new_project(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Start a project; where something is wrong, the form says so and keeps what was filled in."""
    try:
        created = _draft(viewer, fields)
        number = viewer.projects.annotations.create(created.project, created.items)
    except UserError as error:
        return projects_page(viewer, request, fields, str(error))
    viewer.projects.notes[number] = created.notes
    return RedirectResponse(f"/projects/{number}", 303)


def _draft(viewer: Viewer, fields: Fields) -> Draft:
    sources = tuple(fields.get("source", ()))
    offered = {value for _, options in _sources(viewer) for value, _ in options}
    folders = [str(path) for path in viewer.data if path.is_dir()]
    # The form names only what the server shows already: no file of its computer.
    if not sources or not offered.issuperset(sources):
        raise UserError("nothing that is listed is selected", field="Sources", expected="what the task needs")
    name, folder = one_value(fields, "task"), one_value(fields, "data")
    if name not in task_names():
        raise unknown_name("task", name, task_names())
    if folder and folder not in folders:
        raise UserError("is not listed", field="Images from", found=folder, expected="serve --data DIR")
    request = SourceRequest(
        task=find_task(name),
        sources=sources,
        store=viewer.store,
        data=Path(folder) if folder else None,
        by=one_value(fields, "by").strip(),
        images=_whole(fields, "images"),
        seed=_whole(fields, "seed") or 0,
    )
    new = NewProject(one_value(fields, "name").strip(), annotators=_whole(fields, "annotators"))
    if not new.name:
        raise UserError("is empty", field="Name", expected="a name for the project")
    return draft_project(viewer.projects.annotations, request, new)


def _sources(viewer: Viewer) -> list[tuple[str, list[tuple[str, str]]]]:
    """What items can be made of: headings with values and names."""
    runs = [
        (str(one.run), f"{one.run}: {run_name(one.line)} on {one.line.task}")
        for one in reversed(viewer.index.runs())
    ]
    files = [(f"groups:{path}", f"groups:{path}") for path in viewer.data if path.is_file()]
    benchmarks = [(name, name) for name in benchmark_names() if name != "groups"]
    found = [
        ("Runs", runs),
        ("Data of this server", [(str(path), str(path)) for path in viewer.data]),
        ("Benchmarks", [*benchmarks, *files]),
        ("Projects", [(row.project.name, row.project.name) for row in viewer.projects.rows()]),
    ]
    return [(heading, options) for heading, options in found if options]


def _whole(fields: Fields, name: str) -> int | None:
    text = one_value(fields, name).strip()
    if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UserError("is no number", field=name, found=text, expected="a whole number, or nothing")
    return int(text) if text else None


def project_page(viewer: Viewer, request: Request) -> Response:
    """A project: progress, agreement, annotators, what to settle, personal links."""
    number = request.path_params["project"]
    row, live = viewer.projects.row(number), viewer.projects.live(number)
    state, annotators = live.refresh(), live.annotators()
    seen = overview(state, annotators, viewer.projects.clock())
    quality = quality_of(seen)
    pairs = pairwise(seen.votes.values())
    base = viewer.projects.base or f"{request.url.scheme}://{request.headers['host']}"
    return viewer.page(
        "project_page.html",
        {
            "section": SECTION,
            "row": row,
            "seen": seen,
            "stuck": stuck_sentence(seen),
            "left": seen.obtainable * (seen.seconds or 0),
            "chart": growth_chart(seen.growth),
            "pairs": pairs,
            "kappa": mean_kappa(pairs),
            "labels": label_agreement(state, annotators),
            "names": {one.number: one.name for one in annotators},
            "gold": sum(is_gold(state, item) for item in state.items.values()),
            "quality": {} if isinstance(quality, str) else {one.annotator: one for one in quality.annotators},
            "quality_notes": [] if isinstance(quality, str) else quality.notes(),
            "doubtful": doubtful_items(state, seen, annotators, quality),
            "links": personal_links(row, annotators, base, viewer.projects.clock()),
            "guidelines": state.guidelines,
            "versions": state.versions,
            "notes": viewer.projects.notes.get(number, ()),
            "changed": local_time(state.versions[-1].time) if state.versions else "",
        },
    )


def items_page(viewer: Viewer, request: Request) -> Response:
    live = viewer.projects.live(request.path_params["project"])
    state, annotators = live.refresh(), live.annotators()
    seen = overview(state, annotators, viewer.projects.clock(), growth=0)
    status, after = request.query_params.get("status", ""), number_of(request, "after") or 0
    chosen = (
        seen.broken if status == "broken" else seen.with_status(status) if status else list(seen.decisions)
    )
    following = [number for number in chosen if number > after]
    task, names = live.row.project.task, {one.number: one.name for one in annotators}
    rows = [
        (
            state.items[number],
            (item_text(task, state.items[number]), item_about(task, state.items[number])),
            seen.decisions[number],
            [(names.get(by, "owner"), entry) for by, entry in state.of_item(number).items()],
            seconds_of(list(state.of_item(number).values())),
        )
        for number in following[:PAGE]
    ]
    counts = {name: len(seen.with_status(name)) for name in ("open", "decided", "tie", "settled")}
    return viewer.page(
        "items_page.html",
        {
            "section": SECTION,
            "row": live.row,
            "rows": rows,
            "status": status,
            "counts": counts | {"broken": len(seen.broken)},
            "total": len(seen.decisions),
            "after": following[PAGE - 1] if len(following) > PAGE else 0,
            "said": said,
        },
    )


def settle(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Decide an item as the owner; then the next one to settle follows."""
    live = viewer.projects.live(request.path_params["project"])
    number = request.path_params["number"]
    if number not in live.state.items:
        raise NotFoundError("There is no such item.")
    task, item = live.row.project.task, live.state.items[number]
    try:
        live.settle(number, given_values(task, item, fields), one_value(fields, "form"))
    except UserError as error:
        return owner_item_page(viewer, request, fault=str(error))
    ties = ties_of(decisions_of(live.refresh(), live.annotators()))
    place = f"/projects/{live.row.number}"
    following = next((tie for tie in ties if tie > number), ties[0] if ties else None)
    return RedirectResponse(f"{place}/items/{following}?saved={number}" if following else place, 303)


class ShownAnswer(Struct, frozen=True):
    """An answer to compare, with the item as its page shows it and the expected answers."""

    answer: AnswerToCompare
    view: ItemView
    expected: Sequence[str]
    phase: str


def answers_page(viewer: Viewer, request: Request, fault: str = "") -> Response:
    """The answers of training and tests that rules cannot compare, which the owner accepts or rejects."""
    live = viewer.projects.live(request.path_params["project"])
    state, task = live.refresh(), live.row.project.task
    if task.produces != "answers" or all(phase.kind == "work" for phase in task.phases):
        raise NotFoundError("This project has no answers to compare.")
    found = answers_to_compare(state, live.annotators())
    context = {
        "section": SECTION,
        "row": live.row,
        "waiting": sum(one.accepted is None for one in found),
        "answers": [_shown_answer(live, task, one) for one in found],
        "form": secrets.token_urlsafe(18),
        "fault": fault,
    }
    response = viewer.page("answers_page.html", context, 422 if fault else 200)
    response.headers.update(NOT_KEPT)
    return response


def compare_answer(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Accept or reject an answer; annotators whose test depends on it go on, or are told."""
    live = viewer.projects.live(request.path_params["project"])
    item, response = one_value(fields, "item"), one_value(fields, "response")
    found = answers_to_compare(live.refresh(), live.annotators())
    one = next((one for one in found if (str(one.item.number), one.response) == (item, response)), None)
    if one is None:
        return answers_page(viewer, request, f"Nobody gives the answer '{response}' to item {item} any more.")
    try:
        action = read_word("action", one_value(fields, "action"), ("accept", "reject"))
        live.compare(one.item.number, response, accepts=action == "accept", form=one_value(fields, "form"))
    except UserError as error:
        return answers_page(viewer, request, str(error))
    return RedirectResponse(f"/projects/{live.row.number}/answers", 303)


def _shown_answer(live: LiveProject, task: Task, one: AnswerToCompare) -> ShownAnswer:
    def url(image: ItemImage) -> str:
        name = image_name(live.row, one.item.number, image.digest)
        return f"/projects/{live.row.number}/items/{one.item.number}/images/{name}"

    expected = [known for value in one.item.expected.values() for known in each_value(value)]
    view = view_item(task, one.item, {}, url, ALL_STEPS)
    return ShownAnswer(one, view, expected, task.phase(one.item.phase).title)


def invite_annotator(viewer: Viewer, request: Request, fields: Fields) -> Response:
    row = viewer.projects.row(request.path_params["project"])
    now = viewer.projects.clock()
    invite(
        viewer.projects.annotations,
        row,
        one_value(fields, "name"),
        now + _days(fields),
        role=one_value(fields, "role"),
    )
    return RedirectResponse(f"/projects/{row.number}#links", 303)


def change_annotator(viewer: Viewer, request: Request, fields: Fields) -> Response:
    """Pause, resume, forgive; renew or revoke a link."""
    row, number = viewer.projects.row(request.path_params["project"]), request.path_params["annotator"]
    store, action = viewer.projects.annotations, one_value(fields, "action")
    if action == "renew":
        renew(store, row, number, viewer.projects.clock() + _days(fields))
    elif action == "revoke":
        revoke(store, row, number)
    else:
        store.change_annotator(row.number, number, _change(viewer, row.number, action))
    return RedirectResponse(
        f"/projects/{row.number}#{'links' if action in ('renew', 'revoke') else 'annotators'}", 303
    )


def change_guidelines(viewer: Viewer, request: Request, fields: Fields) -> Response:
    live = viewer.projects.live(request.path_params["project"])
    live.change_guidelines(one_value(fields, "guidelines"))
    return RedirectResponse(f"/projects/{live.row.number}#guidelines", 303)


def close(viewer: Viewer, request: Request, fields: Fields) -> Response:
    row = viewer.projects.row(request.path_params["project"])
    viewer.projects.annotations.close(row.number, closed=one_value(fields, "action") == "close")
    return RedirectResponse(f"/projects/{row.number}", 303)


def export(viewer: Viewer, request: Request) -> Response:
    """The files of `sightline annotate export`, in one archive."""
    live = viewer.projects.live(request.path_params["project"])
    log = viewer.projects.annotations.entries(live.row.number)
    out = io.BytesIO()
    with (
        tempfile.TemporaryDirectory(prefix="sightline-") as scratch,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path, _ in export_project(live.refresh(), live.annotators(), log, Path(scratch), xlsx=True):
            archive.write(path, path.relative_to(scratch))
    headers = {
        "content-disposition": f'attachment; filename="project-{live.row.number}.zip"',
        **NOT_KEPT,
    }
    return Response(out.getvalue(), media_type="application/zip", headers=headers)


def owner_image(viewer: Viewer, request: Request) -> Response:
    return item_image(viewer, viewer.projects.live(request.path_params["project"]), request)


def owner_item_page(viewer: Viewer, request: Request, fault: str = "") -> Response:
    """An item with its judgements, which the owner can settle; `fault` says why that failed."""
    live, number = viewer.projects.live(request.path_params["project"]), request.path_params["number"]
    state, annotators = live.refresh(), live.annotators()
    if number not in state.items:
        raise NotFoundError("There is no such item.")
    item, task = state.items[number], live.row.project.task
    place = f"/projects/{live.row.number}"

    def url(image: ItemImage) -> str:
        return f"{place}/items/{number}/images/{image_name(live.row, number, image.digest)}"

    entries = state.of_item(number)
    values = entries[OWNER].values if OWNER in entries else {}
    decisions = decisions_of(state, annotators)
    names = {one.number: one.name for one in annotators}
    context = {
        "task": task,
        "item": item,
        "place": place,
        "name": live.row.project.name,
        "view": view_item(task, item, as_given(values), url, ALL_STEPS),
        "entries": [
            (names.get(by, "owner"), entry, said(task, entry.values)) for by, entry in entries.items()
        ],
        "decision": decisions.get(number),
        "ties": ties_of(decisions),
        "form": secrets.token_urlsafe(18),
        "saved": request.query_params.get("saved", ""),
        "fault": fault,
        "said": said,
    }
    response = viewer.page("owner_item_page.html", context, 422 if fault else 200)
    response.headers.update(NOT_KEPT)
    return response


def _change(viewer: Viewer, project: int, action: str) -> Callable[[Annotator], Annotator]:
    state = viewer.projects.live(project).refresh()
    changes: dict[str, Callable[[Annotator], Annotator]] = {
        "pause": lambda one: replace(one, paused=True),
        "resume": lambda one: replace(one, paused=False, forgiven=gold_result(state, one.number).failures),
    }
    if action not in changes:
        raise UserError("is not known", field="action", found=action, expected=", ".join(changes))
    return changes[action]


def _days(fields: Fields) -> float:
    text = one_value(fields, "days")
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= MOST_DAYS):
        raise UserError("is no number of days", field="days", found=text, expected=f"1 to {MOST_DAYS}")
    return int(text) * DAY


# -- What the owner's page shows beside the overview: the chart, the links, what to settle first

MOST_DOUBTFUL = 20
DOUBTFUL = 0.25
"""The probability that a majority is wrong, from which the owner is asked to look at the item."""

ABOUT = ("question", "reference")

DAY = 86_400.0


class Doubtful(Struct, frozen=True):
    """An item to adjudicate: its text and what it is about, the votes by name, and why.

    `is_tie`: without a decision; otherwise its majority is doubtful.
    """

    item: Item
    text: str
    about: Sequence[tuple[str, str]]
    is_tie: bool
    votes: Mapping[str, str]
    why: str


class PersonalLink(Struct, frozen=True):
    """A personal link: the annotator, the URL, and how long it lasts; '' if it has ended."""

    annotator: Annotator
    url: str
    left: str


def growth_chart(points: Sequence[AgreementPoint]) -> PageChart | None:
    """The agreement as it grows, from 0 to 1; None with fewer than two points that have a value."""
    drawn = [(point.items, point.value) for point in points if point.value.value is not None]
    if len(drawn) < 2:
        return None
    (first, start), *_, (last, end) = drawn
    label = f"Krippendorff's alpha from {start.value:.2f} at {first} items to {end.value:.2f} at {last} items"
    return page_chart(label, drawn, lambda: growth("alpha", drawn, PAGE_INCHES))


def quality_of(seen: Overview) -> LabelQuality | str:
    """Estimate labels and annotators, by their numbers, with Dawid and Skene, or say why not."""
    return label_quality(
        Vote(str(item), str(annotator), vote)
        for item, votes in seen.votes.items()
        for annotator, vote in votes.items()
    )


def doubtful_items(
    state: State, seen: Overview, annotators: Sequence[Annotator], quality: LabelQuality | str
) -> list[Doubtful]:
    """List the items to adjudicate: those without a decision, then, of enough items, doubtful majorities."""
    names = {one.number: one.name for one in annotators}
    labels = {} if isinstance(quality, str) else {int(one.item): one for one in quality.items}
    order = [*labels, *(number for number in seen.decisions if number not in labels)]
    ties = [number for number in order if seen.decisions[number].status == "tie"]
    doubted = [
        number
        for number, label in labels.items()
        if isinstance(quality, LabelQuality)
        and quality.orders
        and seen.decisions[number].status == "decided"
        and label.loss >= DOUBTFUL
    ]
    found = []
    for number in (*ties, *doubted[:MOST_DOUBTFUL]):
        label, decision, item = labels.get(number), seen.decisions[number], state.items[number]
        why = f"Dawid-Skene: {label.likely} {label.posterior[label.likely]:.2f}" if label else ""
        if decision.status == "tie":
            settling = settlers(annotators)
            differ = open_labels(state.project.task, item, state.of_item(number), settling)
            none = f"no majority for {', '.join(differ)}" if differ and not decision.votes else "no decision"
            why = none + (f"; {why}" if why else "")
        votes = {names.get(by, str(by)): vote for by, vote in decision.votes.items()}
        task, is_tie = state.project.task, decision.status == "tie"
        found.append(Doubtful(item, item_text(task, item), item_about(task, item), is_tie, votes, why))
    return found


def item_text(task: Task, item: Item) -> str:
    """Say in one line what an item is about."""
    parts = sorted(task.shows, key=lambda part: not part.highlight)
    return next((text for part in parts for text in item.texts.get(part.name, ())), "")


def item_about(task: Task, item: Item) -> list[tuple[str, str]]:
    """The question and the reference of an item, as far as they are not its one line."""
    line = item_text(task, item)
    found = [(name, item.texts.get(name) or item.hidden.get(f"{name}s", ())) for name in ABOUT]
    return [
        (name, text if isinstance(text, str) else "; ".join(text))
        for name, text in found
        if text and line not in text
    ]


def personal_links(
    row: ProjectRow, annotators: Sequence[Annotator], base: str, now: float
) -> list[PersonalLink]:
    """List the personal links of a project; `now` is in seconds since 1970."""
    links = []
    for one in annotators:
        days = (one.expires - now) / DAY
        left = "" if one.revoked or days <= 0 else f"{days:.0f} days left" if days >= 1.5 else "1 day left"
        # A worker of a crowd platform opens the crowd link again.
        if not one.crowd:
            links.append(PersonalLink(one, f"{base}/annotate/{token_of(row, one)}", left))
    return links


def said(task: Task, values: Values) -> str:
    labels = {(field.name, option.value): option.text for field in task.fields for option in field.options}
    words = []
    for field in task.fields:
        value = values.get(field.name, ())
        words += [labels.get((field.name, one), one) for one in each_value(value)]
    return ", ".join(words)


def seconds_of(entries: Sequence[Entry]) -> float | None:
    """The mean time in seconds that annotators took for an item; None without entries."""
    seconds = [entry.seconds for entry in entries if entry.action == "judge" and entry.seconds]
    return sum(seconds) / len(seconds) if seconds else None


# -- The metrics of the judged runs of a project, corrected by what its annotators found

NOTHING = (
    "Nothing is corrected: that takes a judge that read all answers, and humans who labelled whole clusters,"
    " but not all of them."
)


class CorrectedRun(Struct, frozen=True):
    """A run of the project: its corrected metrics, or why there are none, and the command that does it."""

    name: str
    tables: Sequence[ReportTable] = ()
    note: str = ""
    command: str = ""


def corrected_page(viewer: Viewer, request: Request) -> Response:
    """The runs of a project with the values of their judges, of the humans, and both."""
    live = viewer.projects.live(request.path_params["project"])
    project = live.row.project
    state, annotators = live.refresh(), live.annotators()
    found = list(verdicts(state, annotators)) if project.task.produces == "verdicts" else []
    runs = [_corrected(viewer, project, source, found) for source in project.sources] if found else []
    tables = [table for run in runs for table in run.tables]
    # What holds for all runs is said once, below them.
    said = [table.all_notes for table in tables]
    shared = [note for note in said[0] if all(note in notes for notes in said)] if said else []
    runs = [replace(run, tables=[_without(table, shared) for table in run.tables]) for run in runs]
    context = {"section": "Annotate", "row": live.row, "runs": runs, "notes": shared}
    return viewer.page("corrected_page.html", context)


def _without(table: ReportTable, notes: Collection[str]) -> ReportTable:
    return replace(table, notes=tuple(note for note in table.all_notes if note not in notes), legend=())


def _corrected(viewer: Viewer, project: Project, source: str, found: Sequence[Verdict]) -> CorrectedRun:
    if Path(source).exists():
        # The store has no probes of a results folder or a file: `score` needs the data to judge it again.
        answers = Path(source) / ANSWERS if Path(source).is_dir() else Path(source)
        judges = f"--judge rules --judge {HUMAN_PREFIX}{project.name}"
        command = (
            f"sightline score {project.benchmark or 'TASK'} {answers} --data {project.data or 'DIR'} {judges}"
        )
        return CorrectedRun(source, note="This run is not in the store.", command=command)
    try:
        humans = RecordedJudge(f"{HUMAN_PREFIX}{project.name}", found)
        result = recompute(viewer.store, find_run(viewer.store, source), humans=[humans])
    except UserError as error:
        return CorrectedRun(source, note=str(error))
    tables = corrected_tables(result)
    name = f"{result.model} on {result.benchmark}:{result.setting}, run {source}"
    return CorrectedRun(name, tables, "" if tables else NOTHING)
