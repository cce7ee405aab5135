"""Stores for the tests of maintenance, as runs write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from sightline.evaluation.options import EvaluationDescription
from sightline.evaluation.plan import StoredProbe, read_stored_probes
from sightline.store.answers import Attempt, with_key
from sightline.store.store import Store
from sightline.types import Answer, Request, Usage, user

DESCRIPTION = msgspec.to_builtins(
    EvaluationDescription(
        benchmark="groups",
        setting="default",
        model="m",
        identity="m",
        judges=("rules",),
        decide="first",
        benchmark_options={},
        options={},
        data_digest="d",
        planned_samples=0,
    )
)

Content = tuple[dict[str, Answer], dict[str, tuple[bool, list[StoredProbe]]]]


def question(number: int, said: str = "It is") -> Attempt:
    """A request about a number, and an answer that is long for some numbers."""
    request = with_key(Request("", (user(f"What is {number}? Answer shortly."),), {}, {}), "m")
    words = " ".join(str(random.Random(number).random()) for _ in range(number % 7 * 40))
    answer = Answer(f"{said} {number}. {words}", "", "stop", Usage(10, 2, 1), 0.25, "m-1")
    return Attempt(request.request.key, request.canonical, answer)


def add_run(store: Store, numbers: Sequence[int], *, finish: bool = True, said: str = "It is") -> int:
    """A run that asks questions about numbers, and takes the answers that the store has."""
    body: dict[str, Any] = {"description": {**DESCRIPTION, "planned": len(numbers)}}
    run = store.runs.start(body)
    asked = [question(number, said) for number in numbers]
    probes = [
        StoredProbe(sample=f"s{number}", variant="v", draw=0, key=one.key, cluster="c", question=f"{number}?")
        for number, one in zip(numbers, asked, strict=True)
    ]
    store.runs.add_probes(run, [(place << 20, msgspec.json.encode(one)) for place, one in enumerate(probes)])
    known = store.answers.look_up([one.key for one in asked])
    if new := [one for one in asked if one.key not in known]:
        store.answers.add(new)
    if finish:
        store.runs.finish(run, body)
    return run


def make_store(path: Path, runs: Sequence[Sequence[int]], **options: Any) -> Path:
    """A closed store with runs that asked questions about numbers."""
    store = Store.open(str(path))
    for numbers in runs:
        add_run(store, numbers, **options)
    store.close()
    return path


def content(url: str | Path) -> Content:
    """The answers of a store by key, and its runs by identity: whether each is finished, and its probes."""
    store = Store.open(str(url), create=False)
    with store.database.read() as connection:
        identities = connection.core.exec_driver_sql("SELECT id, uid, finished FROM runs").all()
    runs = {
        uid: (finished is not None, list(read_stored_probes(store, number)))
        for number, uid, finished in identities
    }
    keys = sorted({probe.key for _, probes in runs.values() for probe in probes})
    answers = {key: one for key, one in store.answers.look_up(keys).items() if isinstance(one, Answer)}
    store.close()
    return answers, runs
