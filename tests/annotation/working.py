"""Annotators who work without a browser, for tests of whole projects."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

from sightline.annotation.live import Form, LiveProject
from sightline.annotation.store import AnnotationStore
from sightline.annotation.types import Annotator, Item, is_asked, options_of
from sightline.cli.main import main
from sightline.store.store import Store

Answer = Callable[[Annotator, Item, str], str]
"""What an annotator fills into a field of an item: the value, or '' for the first option or a text."""


def command(*words: str | Path) -> None:
    """Run a command of `sightline` that succeeds."""
    assert main([str(word) for word in words]) == 0


def work(name: str, answer: Answer = lambda *_: "", store: str = "sightline.db") -> int:
    """Let all annotators do everything that they get, also again; returns the number of judgements."""
    opened = Store.open(store, create=False)
    annotations = AnnotationStore(opened, time.time)
    live = LiveProject(annotations, annotations.project(name), time.time)
    done, before = 0, -1
    while done > before:
        before = done
        for annotator in live.annotators():
            while (item := live.next_item(annotator)) is not None:
                given = _given(live, annotator, item, answer)
                live.submit(annotator, Form(uuid.uuid4().hex, item.number, "judge", given))
                done += 1
    opened.close()
    return done


def _given(live: LiveProject, annotator: Annotator, item: Item, answer: Answer) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for field in live.row.project.task.fields:
        if is_asked(field, item, given):
            options = options_of(field, item)
            text = options[0] if options else f"{field.name} of item {item.number}"
            if field.name.startswith("options_"):
                text = "\n".join(f"option {place} of {item.number}" for place in range(6))
            given[field.name] = [answer(annotator, item, field.name) or text]
    return given
