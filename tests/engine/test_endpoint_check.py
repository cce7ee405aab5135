"""Cached answers of an endpoint are used only if it still has the model that gave them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from sightline.engine.budget import Budget
from sightline.engine.cached_evidence import Asked, StoredRequests
from sightline.engine.check_rule import CLOSED
from sightline.engine.counts import Counts
from sightline.engine.endpoint_check import CheckPolicy, EndpointCheck
from sightline.engine.keys import KeyedRequest, with_key
from sightline.engine.sqlite_connections import FileConnection
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.models.base import Capabilities
from sightline.models.server_report import ServerReport
from sightline.types import Answer, Request, user


@pytest.fixture
def endpoint(scripted: Any) -> Callable[..., Any]:
    """Makes an endpoint whose texts begin with its weights, and grow with the number of the question."""

    def make(
        weights: str,
        root: str | None = None,
        version: str = "",
        words: str = "{weights} says of question {text} {more}",
        **properties: Any,
    ) -> Any:
        def reply(text: str, _: int) -> Answer:
            return Answer(words.format(weights=weights, text=text, more="x" * int(text)), version=version)

        model = scripted(reply, **properties)
        model.identity = "http://host m"
        model.capabilities = Capabilities(endpoint=True)

        async def server_report() -> ServerReport | None:
            return None if root is None else ServerReport(f"http://{model.host}/v1/models", "m", root)

        model.server_report = server_report
        return model

    return make


def requests(count: int, temperature: float | None = 0.0) -> list[KeyedRequest]:
    sampling = {} if temperature is None else {"temperature": temperature}
    return [with_key(Request("", (user(str(number)),), sampling), "http://host m") for number in range(count)]


@pytest.fixture
def run(store: Store, runner_of: Any) -> Callable[..., Any]:
    """Runs requests as one evaluation does; returns its counts and its notes."""

    def ask(
        asked: Sequence[KeyedRequest], *models: Any, accept: bool = False, **options: Any
    ) -> tuple[Counts, list[str]]:
        counts = Counts()
        check = EndpointCheck(store, models, CheckPolicy("--fresh TAG", accept))
        asyncio.run(runner_of(store, *models, counts=counts, **options).run(asked, check=check))
        return counts, check.notes

    return ask


def results(store: Store) -> list[str]:
    return [record.result for _, record in store.endpoints.records()]


def test_the_same_model_is_asked_its_three_longest_answers_again_and_nothing_else(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(20), endpoint("A"))
    before = store.answers.look_up([keyed.request.key for keyed in requests(20)])
    again = endpoint("A")
    counts, notes = run(requests(20), again)
    assert sorted(again.asked) == ["17", "18", "19"]
    assert (counts.sent, counts.checks, counts.cached, counts.answered, notes) == (3, 3, 20, 0, [])
    assert store.answers.look_up([keyed.request.key for keyed in requests(20)]) == before
    assert results(store) == ["same"]


@pytest.mark.parametrize("weights", ["A", "B"])
def test_a_run_that_the_store_answers_makes_only_the_requests_that_a_check_of_all_asks(
    store: Store, endpoint: Any, run: Any, runner_of: Any, weights: str
) -> None:
    asked = [*requests(20), *requests(25, temperature=1.0)[20:]]
    run(asked, endpoint("A"))
    with_all, with_stored = endpoint(weights), endpoint(weights)
    run(asked, with_all, accept=True)
    made: list[KeyedRequest] = []

    def make(keys: Collection[str]) -> list[KeyedRequest]:
        made.extend(one for one in asked if one.request.key in keys)
        return made

    temperatures = [one.request.sampling["temperature"] for one in asked]
    stored = StoredRequests(
        [Asked(one.request.key, heat == 0) for one, heat in zip(asked, temperatures, strict=True)], make
    )
    check = EndpointCheck(store, [with_stored], CheckPolicy("--fresh TAG", accept_changed=True))
    asyncio.run(runner_of(store, with_stored).check_endpoints(check, stored))
    assert sorted(with_stored.asked) == sorted(with_all.asked)
    assert results(store)[-1] == results(store)[-2] == ("same" if weights == "A" else "changed")
    assert len(made) <= CLOSED.most


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_check_keeps_to_the_concurrency_of_the_run(
    store: Store, endpoint: Any, run: Any, concurrency: int
) -> None:
    run(requests(20), endpoint("A"))
    again = endpoint("A", seconds=0.01)
    assert run(requests(20), again, concurrency=concurrency)[0].checks == 3
    assert again.peak == concurrency


def test_another_model_is_refused_before_anything_else_is_sent(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(20), endpoint("A"))
    other = endpoint("B")
    with pytest.raises(UserError, match=r"3 of 3 cached answers differ.*expected --fresh TAG"):
        run(requests(30), other)
    assert set(other.asked) == {"17", "18", "19"}
    assert len(store.answers.look_up([keyed.request.key for keyed in requests(30)])) == 20
    assert results(store) == ["changed"]
    counts, notes = run(requests(30), other, accept=True)
    assert counts.answered == 10
    assert "--accept-changed: cached answers of host are used although its endpoint changed" in notes[0]


def test_every_endpoint_of_a_model_is_checked(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A", host="one"), endpoint("A", host="two"))
    with pytest.raises(UserError, match="at two, 3 of 3"):
        run(requests(5), endpoint("A", host="one"), endpoint("B", host="two"))
    assert results(store) == ["same", "changed"]


def test_an_endpoint_that_is_down_does_not_stop_a_run_that_is_fully_cached(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(5), endpoint("A"))
    counts, notes = run(requests(5), endpoint("A", absent=True))
    assert (counts.sent, counts.cached, results(store)) == (0, 5, ["not checked"])
    assert "was not checked: its cached answers may come from other weights" in notes[0]
    with pytest.raises(UserError, match="no server answers at host"):
        run(requests(6), endpoint("A", absent=True))


def test_what_the_server_said_when_the_answers_were_cached_counts_not_what_it_said_last(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(5), endpoint("A", root="/step100"))
    other = endpoint("A", root="/step200")
    for _ in range(2):
        with pytest.raises(UserError, match="root is /step200, was /step100"):
            run(requests(5), other)
    assert other.asked == []
    assert run(requests(5), endpoint("A", root="/step100"))[1] == []
    assert results(store) == ["first contact", "changed", "changed", "same"]


def test_answers_at_other_temperatures_are_checked_by_name_only(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(5, 0.7), endpoint("A", root="/a"))
    counts, notes = run(requests(5, 0.7), endpoint("B", root="/a"))
    assert (counts.sent, results(store)) == (0, ["first contact", "by name"])
    assert "checked by name only" in notes[0]
    run(requests(3, None), endpoint("A"))
    assert "was not checked" in run(requests(3, None), endpoint("B"))[1][0]


def test_another_version_is_a_note_and_no_change(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A", version="m fp_1"))
    _, notes = run(requests(5), endpoint("A", version="m fp_2"))
    assert notes == ["host: the server reports the version 'm fp_2', a cached answer has 'm fp_1'"]


def test_the_check_is_part_of_the_budget(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A"))
    counts, notes = run(requests(5), endpoint("A"), budget=Budget(max_requests=0))
    assert (counts.sent, counts.stopped, counts.cached) == (0, "", 5)
    assert "the budget has no room for the check" in notes[0]
    counts, _ = run(requests(9), endpoint("A"), budget=Budget(max_requests=5))
    assert (counts.sent, counts.checks, counts.answered, counts.stopped) == (5, 3, 2, "budget")


@pytest.mark.parametrize("room", [1, 2])
def test_a_check_that_the_budget_cuts_is_reported_as_incomplete(
    store: Store, endpoint: Any, run: Any, room: int
) -> None:
    run(requests(20), endpoint("A"))
    counts, notes = run(requests(20), endpoint("A"), budget=Budget(max_requests=room))
    assert (counts.sent, results(store)) == (room, ["incomplete"])
    (note,) = notes
    assert "the check of host is incomplete" in note
    assert f"0 of {room} cached answers differ" in note
    assert "more could not be asked again: the budget has no room for the check" in note


def test_a_differing_answer_is_no_change_while_others_could_not_be_asked_again(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(20), endpoint("A"))
    counts, notes = run(requests(20), endpoint("B"), budget=Budget(max_requests=7))
    assert (counts.sent, results(store)) == (7, ["unsure"])
    assert "it is uncertain whether host is the model" in notes[0]


def test_more_of_short_answers_are_asked_again(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(20), endpoint("Yes", words="{weights}."))
    counts, notes = run(requests(20), endpoint("Yes", words="{weights}."))
    assert (counts.sent, counts.checks, notes) == (8, 8, [])
    with pytest.raises(UserError, match="8 of 8 cached answers differ"):
        run(requests(20), endpoint("No", words="{weights}."))


def test_the_models_of_a_store_are_looked_up_without_reading_its_requests(
    store: Store, endpoint: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(requests(5), endpoint("A"))
    statements: list[str] = []
    rows = FileConnection.rows

    def note(connection: FileConnection, sql: str, values: Sequence[Any] = ()) -> Any:
        statements.append(sql)
        return rows(connection, sql, values)

    monkeypatch.setattr(FileConnection, "rows", note)
    assert store.endpoints.has_requests("http://host m")
    assert not store.endpoints.has_requests("http://host other")
    queries = [one for one in statements if one.startswith("SELECT")]
    assert len(queries) == 2
    assert all("FROM models" in one for one in queries)


def test_answers_of_the_evaluation_itself_need_no_check(store: Store, endpoint: Any, runner_of: Any) -> None:
    model, counts = endpoint("A"), Counts()
    check = EndpointCheck(store, [model], CheckPolicy("--fresh TAG"))
    for _ in range(2):
        asyncio.run(runner_of(store, model, counts=counts).run(requests(5), check=check))
    assert (counts.sent, counts.cached, counts.checks) == (5, 5, 0)
