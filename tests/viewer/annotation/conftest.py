"""A store with an annotation project, and the browsers of its annotators."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from PIL import Image
from starlette.testclient import TestClient
from tests.viewer.conftest import ACCESS, HOST

from sightline.annotation.links import token_of
from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.task import Task, task
from sightline.annotation.types import Annotator, Entry, Item, ItemImage, Project
from sightline.benchmarks.base import defaults
from sightline.benchmarks.registry import benchmark
from sightline.evaluation.options import setting_of
from sightline.store.store import Store
from sightline.viewer.access import AccessControl, Gate
from sightline.viewer.app import create_app
from sightline.viewer.projects import Projects

MODELS = ("gpt-4o", "qwen-vl")
DAY = 86_400.0
NOW = 2_000_000_000.0
RESPONSES = 20


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def defaults_of(name: str) -> dict[str, Any]:
    """The options of a benchmark where the user sets none."""
    if not name:
        return {}
    source = benchmark(name)
    return defaults(source, setting_of(source, name))


class Site(Struct):
    """A store with projects, and the application that serves it."""

    store: Store
    clock: Clock
    folder: Path
    projects: Projects

    @property
    def app(self) -> AccessControl:
        gate = Gate(self.projects, ACCESS.port, encrypted=False)
        return AccessControl(create_app(self.store, (), self.projects), ACCESS, gate)

    @property
    def annotations(self) -> AnnotationStore:
        return self.projects.annotations

    def add(
        self, made: Task, items: list[Item], *names: str, annotators: int = 3, benchmark: str = ""
    ) -> ProjectRow:
        """A project with annotators, whose links end in two weeks."""
        name = f"rate-{MODELS[0]}-{len(self.projects.rows())}"
        number = self.annotations.create(
            Project(
                name,
                made,
                data=str(self.folder),
                benchmark=benchmark,
                annotators=annotators,
                seed=7,
                options=defaults_of(benchmark),
            ),
            items,
        )
        for one in names:
            self.annotations.invite(number, Annotator(0, one, expires=self.clock() + 14 * DAY))
        return self.annotations.project(name)

    def link(self, row: ProjectRow, name: str) -> str:
        return "/annotate/" + token_of(row, self.annotator(row, name))

    def annotator(self, row: ProjectRow, name: str) -> Annotator:
        return next(one for one in self.annotations.annotators(row.number) if one.name == name)

    def log(self, row: ProjectRow) -> list[Entry]:
        return self.annotations.entries(row.number)


class Visitor:
    """An annotator's browser without scripts: it follows links and sends the forms of pages."""

    def __init__(self, app: AccessControl) -> None:
        self.client = TestClient(app, base_url=HOST, follow_redirects=False)
        self.status = 0
        self.path = ""
        self.text = ""

    def open(self, path: str) -> Visitor:
        """Open a page, and continue where it leads."""
        answer = self.client.get(path)
        while answer.status_code == 303:
            path = answer.headers["location"]
            answer = self.client.get(path)
        self.status, self.path, self.text = answer.status_code, path, answer.text
        return self

    def begin(self, link: str) -> Visitor:
        """Open a personal link, and go to the first item."""
        assert self.open(link).status == 200
        place = re.search(r"url=(/annotate/\d+/)", self.text)
        assert place is not None
        return self.open(f"{place[1]}item")

    @property
    def item(self) -> int:
        """The number of the item on the page."""
        found = re.search(r'id="judge".*action="/annotate/\d+/items/(\d+)"', self.text)
        assert found is not None, self.text
        return int(found[1])

    @property
    def hidden(self) -> dict[str, str]:
        """The hidden fields of the form that judges the item."""
        form = re.search(r'<form class="actions" id="judge".*?</form>', self.text, re.DOTALL)
        assert form is not None, self.text
        pairs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form[0])
        return {unescape(name): unescape(value) for name, value in pairs}

    def form(self, **fields: str) -> dict[str, str]:
        """The fields that the form of the page sends."""
        return self.hidden | {name.replace("f_", "f-"): value for name, value in fields.items()}

    def send(self, fields: dict[str, str], path: str = "", origin: str | None = HOST) -> Visitor:
        """Send a form to a path, and continue where it leads."""
        place = self.path.rpartition("/items/")[0] or self.path.rpartition("/")[0]
        answer = self.client.post(
            path or f"{place}/items/{self.item}", data=fields, headers={"origin": origin} if origin else {}
        )
        if answer.status_code == 303:
            return self.open(answer.headers["location"])
        self.status, self.text = answer.status_code, answer.text
        return self

    def judge(self, **fields: str) -> Visitor:
        """Fill the form of the page in."""
        return self.send(self.form(**fields))

    def accept(self) -> Visitor:
        return self.judge(f_verdict="0")

    def reject(self) -> Visitor:
        return self.judge(f_verdict="1")


def draw(folder: Path, name: str, colour: str, **options: object) -> ItemImage:
    """An image in the data folder."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 20), colour).save(file, **options)  # type: ignore[arg-type]
    return ItemImage(name, hashlib.sha256(file.read_bytes()).hexdigest())


def responses(folder: Path, count: int = RESPONSES) -> list[Item]:
    """Responses of two models to rate, each about an image that has the name of the model."""
    return [
        Item(
            number,
            texts={
                "question": (f"What does image {number} show?",),
                "reference": ("A clock.",),
                "response": (f"Response {number}.",),
            },
            images={"image": (draw(folder, f"{MODELS[number % 2]}/{number}.png", "red"),)},
            group=str(number // 2),
            cluster=f"cluster-{number}",
            targets=(f"{number:064x}",),
            hidden={"model": MODELS[number % 2]},
        )
        for number in range(1, count + 1)
    ]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    clock = Clock()
    store = Store.open(str(tmp_path / "sightline.db"))
    folder = tmp_path / "data"
    folder.mkdir()
    yield Site(store, clock, folder, Projects(store, clock))
    store.close()


@pytest.fixture
def rating(site: Site) -> ProjectRow:
    """20 responses, three raters each."""
    return site.add(task("rate"), responses(site.folder), "AK", "BR", "CM")


@pytest.fixture
def visit(site: Site) -> Callable[[], Visitor]:
    """Makes browsers without cookies."""
    app = site.app
    return lambda: Visitor(app)
