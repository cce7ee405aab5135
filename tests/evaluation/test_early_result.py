"""Answers are judged by rules while the model gives others; the result is that of judging them at the end."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.endpoint import Endpoint

import sightline
from sightline import registry
from sightline.builders.synthetic import generate_iibench
from sightline.engine import runner
from sightline.engine.answers import Answers, Attempt
from sightline.engine.retry import retry_delay
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation import early_result, judge_and_write, run
from sightline.evaluation.early_result import AnswersSoFar, may_count_early
from sightline.evaluation.prepare import prepare_evaluation
from sightline.evaluation.request_sender import RequestSender
from sightline.judging.groups import FEW_PROBES
from sightline.plan.spec import Spec
from sightline.plan.stored_probe import read_stored_probes
from sightline.results import folder
from sightline.types import Answer, Failure, Request

DEV = 90
SECONDS = 20.0
"""How long something may be awaited before a test fails."""
LETTERS = "ABCDEF"
EXAMPLES = count(1000)
"""Numbers of hypothesis's examples, whose answers share one store."""


def number(request: Request) -> int:
    """A number that depends on what is asked, and on the repeat."""
    return hashlib.sha256(request.key.encode()).digest()[0]


def choose(request: Request) -> Answer:
    """A letter; a few responses hold none."""
    return Answer((*LETTERS, "I cannot say.")[number(request) % 7], finish_reason="stop")


async def slow(request: Request) -> None:
    """Answers arrive in another order than that of the samples."""
    await asyncio.sleep(0.002 * (number(request) % 8))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Endpoint:
    made = Endpoint("model", choose)
    made.wait = slow  # type: ignore[method-assign]
    monkeypatch.setattr(
        registry, "_from_plugins", {**registry._from_plugins, "models": {"model": lambda *_: [made]}}
    )
    monkeypatch.setattr(early_result, "LOOK_AGAIN_SECONDS", 0.005)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_iibench(tmp_path_factory.mktemp("synthetic") / "iibench", questions=6, dev=DEV)


async def evaluate(data: Path, out: str = "out", **options: Any) -> sightline.Evaluation:
    options = {"store": f"{out}.db", "out": out, "concurrency": 8, **options}
    return await sightline.arun("iibench:none", model="model", data=data, split="dev", **options)


def files(out: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(out).iterdir()}


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of keys of each look-up that judges early."""
    found: list[int] = []
    look_up = AnswersSoFar.look_up

    def record(self: AnswersSoFar, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        found.append(len(keys))
        return look_up(self, keys)

    monkeypatch.setattr(AnswersSoFar, "look_up", record)
    return found


def fail_some(request: Request) -> Answer | Failure:
    return Failure("permanent", "refused") if number(request) % 11 == 0 else choose(request)


def fail_some_for_now(request: Request) -> Answer | Failure:
    return Failure("transient", "too busy") if number(request) % 29 == 0 else choose(request)


def soon(*args: Any) -> float | None:
    """As many retries as always, without delay."""
    return None if retry_delay(*args) is None else 0.001


def test_the_first_answers_are_judged_before_the_model_has_given_all(
    data: Path, model: Endpoint, lookups: list[int]
) -> None:
    """The last answers wait until others were judged."""

    async def wait(request: Request) -> None:
        async with asyncio.timeout(SECONDS):
            while len(model.asked) > DEV - 8 and not lookups:
                await asyncio.sleep(0.01)

    model.wait = wait  # type: ignore[method-assign]
    evaluation = asyncio.run(evaluate(data))
    assert (evaluation.counts.answered, evaluation.result.probes) == (DEV, DEV)


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        (choose, {"repeats": 2, "set": {"orders": 2}}),
        (choose, {"max_requests": DEV // 2}),
        (fail_some, {}),
        (fail_some_for_now, {}),
    ],
)
def test_the_files_are_those_of_judging_at_the_end(
    data: Path,
    model: Endpoint,
    lookups: list[int],
    monkeypatch: pytest.MonkeyPatch,
    reply: Any,
    options: dict[str, Any],
) -> None:
    """Also where requests fail, or a budget leaves some unsent."""
    monkeypatch.setattr(runner, "retry_delay", soon)
    model.reply = reply
    asyncio.run(evaluate(data, "early", **options))
    assert lookups
    monkeypatch.setattr(run, "may_count_early", lambda _: False)
    asyncio.run(evaluate(data, "after", **options))
    assert files("early") == files("after")


def test_the_result_is_cached_with_its_lines(
    data: Path, model: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(evaluate(data))
    found = files("out")

    def judge(*_: Any, **__: Any) -> Any:
        raise AssertionError("the result is not cached")

    monkeypatch.setattr(judge_and_write, "_judge", judge)
    asyncio.run(evaluate(data, out="again", store="out.db"))
    assert files("again") == found


def test_an_answer_that_comes_from_elsewhere_meanwhile_counts(
    data: Path, model: Endpoint, lookups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process answers the setting without images, which the metric `leakage` compares with."""

    def answer_partners(store: Store, number: int) -> None:
        partners = [one for probe in read_stored_probes(store, number) for one in probe.partners["no-image"]]
        store.answers.add([Attempt(one.key, b"{}", Answer("A", finish_reason="stop")) for one in partners])

    async def wait(request: Request) -> None:
        async with asyncio.timeout(SECONDS):
            while len(model.asked) == DEV and sum(lookups) < DEV:
                await asyncio.sleep(0.01)

    ask_judges = RequestSender.ask_judges

    async def from_elsewhere(self: Any, *args: Any) -> Any:
        store = Store.open("out.db")
        answer_partners(store, 1)
        store.close()
        return await ask_judges(self, *args)

    model.wait = wait  # type: ignore[method-assign]
    monkeypatch.setattr(RequestSender, "ask_judges", from_elsewhere)
    evaluation = asyncio.run(evaluate(data))
    (leakage,) = [one for one in evaluation.metrics if (one.metric, one.subset) == ("leakage", "all")]
    assert leakage.n == DEV


@pytest.mark.parametrize("before", [True, False])
def test_an_answer_that_comes_between_look_and_cache_does_not_make_the_cached_result_stale(
    data: Path, model: Endpoint, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """Another process asks again for the failures, just before or just after that look."""

    def answer_failures() -> None:
        with closing(Store.open("out.db")) as store:
            keys = [probe.key for probe in read_stored_probes(store, 1)]
            found = store.answers.look_up(keys)
            failed = [key for key in keys if isinstance(found[key], Failure)]
            store.answers.add([Attempt(key, b"{}", Answer("A", finish_reason="stop")) for key in failed])

    look = AnswersSoFar.are_current

    def from_elsewhere(self: AnswersSoFar) -> bool:
        if before:
            answer_failures()
        current = look(self)
        if not before:
            answer_failures()
        return current

    model.reply = fail_some
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(AnswersSoFar, "are_current", from_elsewhere)
        first = asyncio.run(evaluate(data))
    assert (first.result.errors == 0) is before
    again = asyncio.run(evaluate(data))
    assert (again.counts.cached, again.result.errors) == (DEV, 0)


def test_a_request_that_was_missing_and_then_failed_is_not_current(answers: Answers) -> None:
    key = f"{next(EXAMPLES) * 100:064x}"
    so_far = AnswersSoFar(answers)
    so_far.look_up([key])
    answers.add([Attempt(key, b"{}", Failure("permanent", "refused"))])
    so_far.look_up([key])
    assert not so_far.are_current()


def test_an_interrupted_run_leaves_no_folder_and_no_thread(
    data: Path, model: Endpoint, lookups: list[int]
) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(evaluate(data))

        async def cancel(request: Request) -> None:
            async with asyncio.timeout(SECONDS):
                while len(model.asked) > DEV // 2 and not lookups:
                    await asyncio.sleep(0.01)
            if len(model.asked) > DEV // 2:
                task.cancel()
                await asyncio.sleep(SECONDS)

        model.wait = cancel  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError, match="all answers so far are kept"):
            await task

    asyncio.run(main())
    assert not Path("out").exists()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sightline")]


def test_a_refused_run_leaves_no_folder(data: Path, model: Endpoint) -> None:
    def refuse(request: Request) -> Answer:
        raise UserError("the model has no licence")

    model.reply = refuse
    with pytest.raises(UserError, match="the model has no licence"):
        asyncio.run(evaluate(data))
    assert not Path("out").exists()


def test_an_error_while_the_model_answers_is_raised_at_the_end(
    data: Path, model: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are paid for first: a disk without room ends the run after the last of them."""

    def no_room(self: Any, lines: Any) -> None:
        raise EnvironmentFailedError("out: cannot be written: No space left on device")

    with monkeypatch.context() as full:
        full.setattr(folder.ResultsFolder, "write", no_room)
        with pytest.raises(EnvironmentFailedError, match="No space left"):
            asyncio.run(evaluate(data))
    assert asyncio.run(evaluate(data)).counts.cached == DEV


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"max_requests": 5}, True),
        ({"model": "baseline/chance"}, False),
        ({"repeats": FEW_PROBES // DEV}, True),
        ({"repeats": FEW_PROBES // DEV + 1}, False),
    ],
)
def test_only_rules_on_few_answers_of_an_endpoint_judge_meanwhile(
    data: Path, model: Endpoint, options: dict[str, Any], expected: bool
) -> None:
    spec = Spec(task="iibench:none", data=str(data), split="dev", **{"model": "model", **options})
    assert may_count_early(prepare_evaluation(spec)) is expected


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    store = Store.open(str(tmp_path_factory.mktemp("store") / "s.db"))
    yield store.answers
    store.close()


@given(first=st.sets(st.integers(0, 9)), later=st.sets(st.integers(0, 9)))
def test_answers_are_current_unless_one_came_after_its_look_up(
    answers: Answers, first: set[int], later: set[int]
) -> None:
    start = next(EXAMPLES) * 100
    keys = [f"{start + number:064x}" for number in range(10)]

    def add(numbers: set[int]) -> None:
        answers.add([Attempt(keys[one], b"{}", Answer("yes")) for one in sorted(numbers)])

    add(first)
    so_far = AnswersSoFar(answers)
    so_far.look_up(keys)
    add(later - first)
    assert so_far.are_current() is (later <= first)
