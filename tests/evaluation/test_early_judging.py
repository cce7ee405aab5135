"""Judges are asked while the model still answers; the result is that of a run that asks them afterwards."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.endpoint import Endpoint

import sightline
from sightline import plugins
from sightline.engine import limits, runner, selector
from sightline.errors import UserError
from sightline.evaluation.plan import PlannedProbe, StoredProbe, probe_position, read_stored_probes
from sightline.evaluation.prepare import prepare_evaluation
from sightline.evaluation.sending import (
    MOST_WAITING,
    AnsweredSample,
    AnsweredSamples,
    RequestSender,
    answered_only,
    may_judge_early,
)
from sightline.evaluation.spec import Spec
from sightline.store.answers import Attempt
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request
from training.scenes.build import generate_contextual

VAL = 60
SECONDS = 20.0
"""How long something may be awaited before a test fails."""
EXAMPLES = count(1000)
"""Numbers of hypothesis's examples, whose answers share one store."""


def describe(request: Request) -> Answer:
    """A response that differs between prompts, but is the same for some."""
    number = hashlib.sha256(repr(request.messages).encode()).digest()[0]
    return Answer(f"A sign says number {number}.", finish_reason="stop")


def judge(request: Request) -> Answer:
    """A verdict by the request; some replies hold none."""
    return Answer(("yes", "no", "yes", "perhaps")[int(request.key[0], 16) % 4], finish_reason="stop")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Endpoint]:
    made = {"model": Endpoint("model", describe)}
    made |= {name: Endpoint(name, judge) for name in ("judge", "second")}
    by_name = {name: lambda *_, name=name: [made[name]] for name in made}
    monkeypatch.setattr(plugins, "plugged_in", {**plugins.plugged_in, "models": by_name})
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_contextual(tmp_path_factory.mktemp("synthetic") / "contextual", questions=6, val=VAL)


async def run(data: Path, out: str = "out", **options: Any) -> sightline.Evaluation:
    options = {"judge": ["judge"], "store": f"{out}.db", "out": out, "concurrency": 8, **options}
    return await sightline.arun("contextual", model="model", data=data, split="val", **options)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(out, "answers.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_the_judge_is_asked_before_the_model_has_answered_all(
    data: Path, models: dict[str, Endpoint]
) -> None:
    """The model's last responses wait for the first request to the judge."""

    async def main() -> sightline.Evaluation:
        async def wait(request: Request) -> None:
            if len(models["model"].asked) > VAL // 2:
                async with asyncio.timeout(SECONDS):
                    await models["judge"].began.wait()

        models["model"].wait = wait  # type: ignore[method-assign]
        return await run(data, fresh="again")

    evaluation = asyncio.run(main())
    assert (evaluation.counts.answered, evaluation.counts.stopped) == (VAL, "")


def test_the_judge_is_asked_because_an_answer_was_stored_and_not_at_intervals(
    data: Path, models: dict[str, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each response of the model but the first waits until the judge was asked about the one before."""
    monkeypatch.setattr(selector, "REVISIT_SECONDS", 10 * SECONDS)

    async def wait(request: Request) -> None:
        before = len(models["model"].asked) - 1
        async with asyncio.timeout(SECONDS):
            while len(models["judge"].asked) < before:
                await asyncio.sleep(0)

    models["model"].wait = wait  # type: ignore[method-assign]
    models["model"].reply = lambda request: Answer(f"It says {request.key}.", finish_reason="stop")
    evaluation = asyncio.run(run(data, concurrency=1))
    assert (evaluation.counts.answered, evaluation.counts.failed) == (VAL, 0)


@pytest.mark.slow
def test_the_result_is_that_of_judging_afterwards(data: Path, models: dict[str, Endpoint]) -> None:
    """A budget that nothing reaches makes the judge wait for the end."""

    async def slow(request: Request) -> None:
        await asyncio.sleep(0.02)

    models["model"].wait = slow  # type: ignore[method-assign]
    early = asyncio.run(run(data, "early", judge_repeats=2))
    asked = models["judge"].asked.copy()
    models["judge"].asked.clear()
    after = asyncio.run(run(data, "after", judge_repeats=2, max_requests=10_000))
    assert models["judge"].asked == asked
    assert max(asked.values()) == 1
    assert lines("early") == lines("after")
    assert early.metrics == after.metrics
    for field in ("sent", "cached", "answered", "failed", "equal", "stopped"):
        assert getattr(early.judge_counts, field) == getattr(after.judge_counts, field), field


def test_what_failed_or_could_not_be_judged_early_is_judged_at_the_end(
    data: Path, models: dict[str, Endpoint]
) -> None:
    """Transient failures of the model, and replies without a verdict, which are asked again."""

    def fail_some(request: Request) -> Answer | Failure:
        if int(request.key[1], 16) < 3:
            return Failure("permanent", "refused")
        return describe(request)

    models["model"].reply = fail_some
    evaluation = asyncio.run(run(data))
    found = lines("out")
    failed = [line for line in found if line["status"] == "error"]
    assert 0 < len(failed) == evaluation.counts.failed < VAL
    judged = [line for line in found if line["status"] == "ok"]
    assert judged
    assert {line["judge"] for line in judged} == {"judge"}


@pytest.mark.slow
def test_a_failure_that_another_process_asks_again_meanwhile_is_judged(
    data: Path, models: dict[str, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_some(request: Request) -> Answer | Failure:
        return Failure("permanent", "refused") if int(request.key[1], 16) < 3 else describe(request)

    async def slow(request: Request) -> None:
        await asyncio.sleep(0.1)

    ask_judges = RequestSender.ask_judges

    async def from_elsewhere(self: Any, *args: Any) -> Any:
        assert models["judge"].asked, "nothing was judged early"
        with closing(Store.open("out.db")) as store:
            keys = [probe.key for probe in read_stored_probes(store, 1)]
            found = store.answers.look_up(keys)
            failed = [key for key in keys if isinstance(found[key], Failure)]
            assert failed
            store.answers.add([Attempt(key, b"{}", Answer(f"A sign says {key}.")) for key in failed])
        return await ask_judges(self, *args)

    models["model"].reply, models["model"].wait = fail_some, slow  # type: ignore[method-assign]
    monkeypatch.setattr(RequestSender, "ask_judges", from_elsewhere)
    evaluation = asyncio.run(run(data))
    assert (evaluation.result.errors, evaluation.result.judge_errors) == (0, 0)


def test_what_a_judge_was_asked_is_no_saving_where_another_judge_is_given_up(
    data: Path, models: dict[str, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All samples are judged at the end then; what the sound judge was asked before is cached, not equal."""

    async def slow(request: Request) -> None:
        await asyncio.sleep(0.02)

    monkeypatch.setattr(limits, "TRIAL_PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(runner, "retry_delay", lambda call, *_: 0.01 if call.attempts < 8 else None)
    models["model"].reply = lambda request: Answer(f"It says {request.key}.", finish_reason="stop")
    models["model"].wait = slow  # type: ignore[method-assign]
    models["second"].reply = lambda request: Failure("transient", "no connection")
    evaluation = asyncio.run(run(data, judge=["judge", "second"]))
    assert evaluation.judge_counts.stopped == "host"
    assert evaluation.judge_counts.equal.requests == 0
    assert len(models["judge"].asked) >= VAL


def test_an_interrupted_run_asks_no_judge_twice(data: Path, models: dict[str, Endpoint]) -> None:
    concurrency = 8

    async def main() -> None:
        task = asyncio.ensure_future(run(data, concurrency=concurrency))

        async def slow(request: Request) -> None:
            await asyncio.sleep(0.01)

        async def cancel(request: Request) -> None:
            if len(models["judge"].asked) == 12:
                task.cancel()
                await asyncio.sleep(SECONDS)

        models["model"].wait = slow  # type: ignore[method-assign]
        models["judge"].wait = cancel  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError, match="all answers so far are kept: run 1 has"):
            await task
        for name in ("model", "judge"):
            del models[name].wait

    asyncio.run(main())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sightline")]
    asyncio.run(run(data))
    for model in models.values():
        # What was in flight at the end is asked again, and an endpoint is checked with up to eight short
        # cached answers.
        twice = [key for key, times in model.asked.items() if times > 1]
        assert len(twice) <= concurrency + 8


def test_a_changed_judge_is_refused_before_anything_else_is_asked_where_replies_are_cached(
    data: Path, models: dict[str, Endpoint]
) -> None:
    asyncio.run(run(data, "first", limit=VAL // 2))
    cached = set(models["judge"].asked)
    models["judge"].asked.clear()
    models["judge"].reply = lambda request: Answer("It is none.", finish_reason="stop")

    async def slow(request: Request) -> None:
        await asyncio.sleep(0.01)

    models["model"].wait = slow  # type: ignore[method-assign]
    with pytest.raises(UserError, match="judge is not the model that gave its cached answers"):
        asyncio.run(run(data, "again", store="first.db"))
    assert models["judge"].asked
    assert set(models["judge"].asked) <= cached


def test_a_changed_judge_is_refused_at_the_end_where_cached_replies_are_to_later_responses(
    data: Path, models: dict[str, Endpoint]
) -> None:
    asyncio.run(run(data, "first"))
    models["judge"].reply = lambda request: Answer("It is none.", finish_reason="stop")
    begun = iter([Answer("The first response is another one.", finish_reason="stop")])
    models["model"].reply = lambda request: next(begun, describe(request))

    async def wait(request: Request) -> None:
        if len(models["model"].asked) > VAL + 8:
            async with asyncio.timeout(SECONDS):
                await models["judge"].began.wait()

    models["judge"].began.clear()
    models["model"].wait = wait  # type: ignore[method-assign]
    with pytest.raises(UserError, match="judge is not the model that gave its cached answers"):
        asyncio.run(run(data, "again", store="first.db", fresh="again"))


@pytest.mark.slow
def test_an_error_of_the_judge_ends_the_run_at_its_end(data: Path, models: dict[str, Endpoint]) -> None:
    """The answers that were paid for are kept, and the error is that of the judge."""

    def break_down(request: Request) -> Answer:
        raise UserError("the judge has no licence")

    models["judge"].reply = break_down
    with pytest.raises(
        UserError, match=rf"the judge has no licence; .*answers kept: {VAL} \(run 1, not finished\)"
    ):
        asyncio.run(run(data))
    models["judge"].reply = judge
    again = asyncio.run(run(data))
    assert (again.run, again.counts.cached) == (2, VAL)


def test_a_run_whose_requests_are_all_refused_leaves_no_run_behind(
    data: Path, models: dict[str, Endpoint]
) -> None:
    models["model"].reply = lambda request: Failure("permanent", "no such model", status=404)
    with pytest.raises(UserError, match="refused alike") as refused:
        asyncio.run(run(data))
    assert "answers kept" not in str(refused.value)
    with closing(Store.open("out.db", create=False)) as store:
        assert store.runs.all() == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"max_requests": 5}, False),
        ({"judge": ("model",)}, False),
        ({"judge": ("rules",)}, False),
        ({"judge": ("rules", "judge")}, True),
        ({"judge": ("judge", "mini")}, False),
    ],
)
def test_judges_wait_where_they_share_budget_server_or_memory_with_the_model(
    data: Path, models: dict[str, Endpoint], options: dict[str, Any], expected: bool
) -> None:
    spec = Spec(
        task="contextual", model="model", data=str(data), split="val", **{"judge": ("judge",), **options}
    )
    assert may_judge_early(prepare_evaluation(spec)) is expected


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store.open(str(tmp_path_factory.mktemp("store") / "s.db"))
    yield store
    store.close()


@given(
    samples=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=25),
    rounds=st.lists(st.sets(st.integers(0, 30)), max_size=4),
)
def test_a_sample_is_taken_once_and_as_soon_as_its_last_request_has_a_result(
    samples: list[list[int]], rounds: list[set[int]]
) -> None:
    asyncio.run(_take_in_rounds(samples, rounds))


async def _take_in_rounds(samples: list[list[int]], rounds: list[set[int]]) -> None:
    early = AnsweredSamples()
    early.add([one for number, keys in enumerate(samples) for one in _planned(number, keys)])
    settled: set[int] = set()
    taken: set[int] = set()
    for keys in rounds:
        taking = asyncio.ensure_future(early.take())
        await asyncio.sleep(0)
        early.settle(map(_key, keys))
        settled |= keys
        complete = {number for number, needed in enumerate(samples) if settled.issuperset(_own(needed))}
        if complete == taken:
            assert not taking.done()
            taking.cancel()
            continue
        lot = await taking
        assert {sample.number for sample in lot} == complete - taken
        early.record_judged(lot)
        taken |= complete
        assert {number for number in range(len(samples)) if early.is_judged(number)} == taken
    early.close()
    assert await early.take() == []


@given(
    samples=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=25),
    answered=st.sets(st.integers(0, 30)),
    failed=st.sets(st.integers(0, 30)),
)
def test_a_sample_is_judged_early_only_with_all_its_answers(
    store: Store, samples: list[list[int]], answered: set[int], failed: set[int]
) -> None:
    """Also those of the settings that it is compared with; a failure is none."""
    first = next(EXAMPLES) * 100
    results: list[tuple[set[int], Answer | Failure]] = [
        (answered, Answer("yes")),
        (failed - answered, Failure("permanent", "refused")),
    ]
    for keys, result in results:
        store.answers.add([Attempt(_key(first + key), b"{}", result) for key in keys])
    complete = [
        AnsweredSample(number, [one.probe for one in _planned(number, [first + key for key in keys])])
        for number, keys in enumerate(samples)
    ]
    assert [sample.number for sample in answered_only(complete, store.answers)] == [
        number for number, keys in enumerate(samples) if answered.issuperset(keys)
    ]


def test_memory_is_bounded_and_room_comes_back() -> None:
    async def main() -> None:
        early = AnsweredSamples()
        for number in range(MOST_WAITING + 10):
            early.add(_planned(number, [number]))
        early.settle(map(_key, range(MOST_WAITING + 20)))
        taken: list[int] = []
        while len(taken) < MOST_WAITING:
            taken += [sample.number for sample in await early.take()]
        assert taken == list(range(MOST_WAITING))
        early.add(_planned(MOST_WAITING + 15, [MOST_WAITING + 15]))
        early.settle([_key(MOST_WAITING + 15)])
        assert [sample.number for sample in await early.take()] == [MOST_WAITING + 15]

    asyncio.run(main())


def _own(keys: Sequence[int]) -> list[int]:
    """The requests that the run itself sends about a sample of `_planned`."""
    return [keys[0], *keys[:-1]]


def _planned(number: int, keys: Sequence[int]) -> list[PlannedProbe]:
    """A sample; its last probe stands for one of another setting that it is compared with."""
    *own, last = (
        StoredProbe(sample=str(number), variant=str(key), draw=0, key=_key(key), cluster="", question="")
        for key in [keys[0], *keys]
    )
    probes = [StoredProbe(**{**_fields(own[0]), "partners": {"other": (last,)}}), *own[1:]]
    return [PlannedProbe(probe_position(number, place), probe, None) for place, probe in enumerate(probes)]


def _fields(probe: StoredProbe) -> dict[str, Any]:
    return {name: getattr(probe, name) for name in probe.__struct_fields__}


def _key(number: int) -> str:
    return f"{number:064x}"
