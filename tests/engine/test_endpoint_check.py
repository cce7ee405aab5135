"""Cached answers of an endpoint are used only if it still has the model that gave them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from sightline.engine.endpoint_check import EndpointCheck, choose, decide, report_changes
from sightline.engine.limits import Budget, Counts
from sightline.errors import UserError
from sightline.models.base import Capabilities, ServerReport, read_server_report
from sightline.store.answers import KeyedRequest, with_key
from sightline.store.database import Connection
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request, user


@pytest.fixture
def endpoint(scripted: Any) -> Callable[..., Any]:
    """Makes an endpoint whose texts begin with its weights, and grow with the number of the question."""

    def make(
        weights: str,
        root: str | None = None,
        version: str = "",
        words: str = "{weights} says of question {text} {more}",
        replies: Mapping[str, str] | None = None,
        fails: int = 0,
        **properties: Any,
    ) -> Any:
        failures = [Failure("transient", "busy", status=429, retry_after=0.01)] * fails

        def reply(text: str, _: int) -> Answer | Failure:
            if failures:
                return failures.pop()
            said = words.format(weights=weights, text=text, more="x" * int(text))
            return Answer((replies or {}).get(text, said), version=version)

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
        check = EndpointCheck(store, models, "--fresh TAG", accept_changed=accept)
        runner = runner_of(store, *models, counts=counts, **options)
        asyncio.run(runner.run(asked, check=check, reread=partial(iter, asked)))
        return counts, check.notes

    return ask


def results(store: Store) -> list[str]:
    return [record.result for _, record in store.endpoints.records()]


@pytest.mark.parametrize(
    ("chosen", "compared", "differing", "result"),
    [
        (3, 3, 0, "same"),
        (3, 3, 1, "unsure"),
        (3, 3, 2, "changed"),
        (3, 3, 3, "changed"),
        (2, 2, 1, "unsure"),
        (2, 2, 2, "changed"),
        (1, 1, 1, "changed"),
        (8, 8, 0, "same"),
        (8, 8, 4, "unsure"),
        (8, 8, 5, "changed"),
        (3, 2, 2, "changed"),
        (3, 1, 1, "unsure"),  # the two others could not be asked again
        (8, 4, 4, "unsure"),
        (3, 2, 0, "incomplete"),
        (3, 0, 0, "not checked"),
    ],
)
def test_an_endpoint_changed_if_most_of_the_chosen_answers_differ(
    chosen: int, compared: int, differing: int, result: str
) -> None:
    assert decide(chosen, compared, differing) == result


def test_closed_answers_are_short_ones_and_those_that_repeat() -> None:
    def chosen(*texts: str) -> list[str]:
        return choose({str(number): text for number, text in enumerate(texts)})

    long = [f"The image shows {number} red cars{'.' * number}" for number in range(8)]
    assert chosen(*long) == ["7", "6", "5"]
    assert chosen(*long[:2], "Yes.", "No.", long[2]) == ["4", "1", "0"], "open ones are preferred"
    assert chosen(long[0]) == ["0"]
    assert len(chosen(*["Yes.", "No."] * 4)) == 8
    assert len(chosen(*[long[7]] * 3, *long[:5])) == 8
    assert len(chosen(*long[:2], *["The answer is B."] * 6)) == 8
    assert chosen() == []


def test_the_same_model_is_asked_three_cached_answers_again_before_the_other_requests(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(20), endpoint("A"))
    before = store.answers.look_up([keyed.request.key for keyed in requests(20)])
    again = endpoint("A")
    counts, notes = run(requests(22), again)
    assert sorted(again.asked[:3]) == ["5", "6", "7"], "the longest of the first eight"
    assert sorted(again.asked[3:]) == ["20", "21"]
    assert (counts.sent, counts.checks, counts.cached, counts.answered, notes) == (5, 3, 20, 2, [])
    assert store.answers.look_up([keyed.request.key for keyed in requests(20)]) == before
    assert results(store) == ["same"]


def test_a_run_that_the_store_answers_sends_nothing_also_to_another_model(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(20), endpoint("A", root="/a"))
    other = endpoint("B", root="/b")
    counts, notes = run(requests(20), other)
    assert (other.asked, counts.sent, counts.cached, notes) == ([], 0, 20, [])
    assert results(store) == ["first contact"]


def test_cached_answers_behind_the_first_requests_are_found(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(300)[290:], endpoint("A"))
    other = endpoint("B")
    with pytest.raises(UserError, match="3 of 3 cached answers"):
        run(requests(300), other)
    assert len(other.asked) == 3


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_check_keeps_to_the_concurrency_of_the_run(
    store: Store, endpoint: Any, run: Any, concurrency: int
) -> None:
    run(requests(20), endpoint("A"))
    again = endpoint("A", seconds=0.01)
    assert run(requests(21), again, concurrency=concurrency)[0].checks == 3
    assert again.peak == concurrency


def test_another_model_is_refused_before_anything_else_is_sent(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(20), endpoint("A"))
    other = endpoint("B")
    with pytest.raises(
        UserError,
        match=r"at host, 3 of 3 cached answers, stored \d{4}-\d\d-\d\d .*, differ.*expected --fresh TAG",
    ):
        run(requests(30), other)
    assert set(other.asked) == {"5", "6", "7"}
    assert len(store.answers.look_up([keyed.request.key for keyed in requests(30)])) == 20
    assert results(store) == ["changed"]
    counts, notes = run(requests(30), other, accept=True)
    assert counts.answered == 10
    assert "--accept-changed: cached answers of host are used although its endpoint changed" in notes[0]


def test_some_differing_answers_are_a_note(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(20), endpoint("A"))
    again = endpoint("A", replies={"6": "A says something else of question 6"})
    counts, notes = run(requests(21), again)
    assert (counts.answered, results(store)) == (1, ["unsure"])
    (note,) = notes
    assert "it is uncertain whether host is the model" in note
    assert "1 of 3 cached answers" in note


def test_other_white_space_is_no_difference(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(20), endpoint("A"))
    assert run(requests(21), endpoint("A", words="{weights} says of  question {text}\n{more}"))[1] == []


def test_every_endpoint_of_a_model_is_checked(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A", host="one"), endpoint("A", host="two"))
    with pytest.raises(UserError, match="at two, 3 of 3"):
        run(requests(6), endpoint("A", host="one"), endpoint("B", host="two"))
    assert results(store) == ["same", "changed"]


def test_an_endpoint_that_is_down_is_not_checked(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A"))
    counts, notes = run(requests(6), endpoint("A"), endpoint("A", host="down", absent=True))
    assert (counts.answered, results(store)) == (1, ["same", "not checked"])
    assert "was not checked: its cached answers may come from other weights" in notes[0]
    with pytest.raises(UserError, match="no server answers at host"):
        run(requests(7), endpoint("A", absent=True))


def test_what_the_server_said_when_the_answers_were_cached_counts_not_what_it_said_last(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(5), endpoint("A", root="/step100"))
    other = endpoint("A", root="/step200")
    for _ in range(2):
        with pytest.raises(UserError, match="root is /step200, was /step100"):
            run(requests(6), other)
    assert other.asked == []
    assert run(requests(6), endpoint("A", root="/step100"))[1] == []
    assert results(store) == ["first contact", "changed", "changed", "same"]


def test_answers_at_other_temperatures_are_checked_by_name_only(
    store: Store, endpoint: Any, run: Any
) -> None:
    run(requests(5, 0.7), endpoint("A", root="/a"))
    counts, notes = run(requests(6, 0.7), endpoint("B", root="/a"))
    assert (counts.checks, results(store)) == (0, ["first contact", "by name"])
    assert "checked by name only" in notes[0]
    run(requests(3, None), endpoint("A"))
    assert "was not checked" in run(requests(4, None), endpoint("B"))[1][0]


def test_another_version_is_a_note_and_no_change(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A", version="m fp_1"))
    _, notes = run(requests(6), endpoint("A", version="m fp_2"))
    assert notes == ["host: the server reports the version 'm fp_2', a cached answer has 'm fp_1'"]


def test_the_check_is_the_first_part_of_the_budget(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A"))
    counts, notes = run(requests(6), endpoint("A"), budget=Budget(max_requests=0))
    assert (counts.sent, counts.stopped, counts.cached) == (0, "budget", 5)
    assert "the budget has no room for the check" in notes[0]
    counts, _ = run(requests(9), endpoint("A"), budget=Budget(max_requests=5))
    assert (counts.sent, counts.checks, counts.answered, counts.stopped) == (5, 3, 2, "budget")


@pytest.mark.parametrize("room", [1, 2])
def test_a_check_that_the_budget_cuts_is_reported_as_incomplete(
    store: Store, endpoint: Any, run: Any, room: int
) -> None:
    run(requests(20), endpoint("A"))
    counts, notes = run(requests(21), endpoint("A"), budget=Budget(max_requests=room))
    assert (counts.sent, results(store)) == (room, ["incomplete"])
    (note,) = notes
    assert "the check of host is incomplete" in note
    assert f"0 of {room} cached answers" in note
    assert "more could not be asked again: the budget has no room for the check" in note


def test_a_request_of_the_check_is_retried_as_others_are(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(5), endpoint("A"))
    counts, notes = run(requests(6), endpoint("A", fails=2))
    assert (counts.checks, counts.retried, counts.refused, notes) == (3, 2, 2, [])


def test_more_of_short_answers_are_asked_again(store: Store, endpoint: Any, run: Any) -> None:
    run(requests(20), endpoint("Yes", words="{weights}."))
    counts, notes = run(requests(21), endpoint("Yes", words="{weights}."))
    assert (counts.sent, counts.checks, notes) == (9, 8, [])
    with pytest.raises(UserError, match="8 of 8 cached answers"):
        run(requests(22), endpoint("No", words="{weights}."))


def test_the_models_of_a_store_are_looked_up_without_reading_its_requests(
    store: Store, endpoint: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(requests(5), endpoint("A"))
    statements: list[str] = []
    rows = Connection.rows

    def note(connection: Connection, sql: str, values: Sequence[Any] = ()) -> Any:
        statements.append(sql)
        return rows(connection, sql, values)

    monkeypatch.setattr(Connection, "rows", note)
    assert store.endpoints.has_requests("http://host m")
    assert not store.endpoints.has_requests("http://host other")
    queries = [one for one in statements if one.startswith("SELECT")]
    assert len(queries) == 2
    assert all("FROM models" in one for one in queries)


def test_answers_of_the_evaluation_itself_need_no_check(store: Store, endpoint: Any, runner_of: Any) -> None:
    model, counts = endpoint("A"), Counts()
    check = EndpointCheck(store, [model], "--fresh TAG")
    for count in (5, 6):
        asked = requests(count)
        runner = runner_of(store, model, counts=counts)
        asyncio.run(runner.run(asked, check=check, reread=partial(iter, asked)))
    assert (counts.sent, counts.cached, counts.checks) == (6, 5, 0)


def test_what_a_server_says_of_its_model_is_evidence_and_the_time_of_its_start_is_not() -> None:
    def report(**fields: object) -> ServerReport:
        body = {"data": [{"id": "other"}, {"id": "m", "created": 1, **fields}]}
        found = read_server_report(msgspec.json.encode(body), "http://h/v1/models", "m")
        assert found is not None
        return found

    before = report(root="/step100", max_model_len=4096, created=1)
    assert report_changes([before], report(root="/step100", max_model_len=4096, created=2)) == []
    assert report_changes([before], report(root="/step200", max_model_len=4096)) == [
        "root is /step200, was /step100"
    ]
    assert report_changes([before], report(root="/step100", max_model_len=8192)) == [
        "max_model_len is 8192, was 4096"
    ]
    assert report_changes([before], report()) == report_changes([], before) == []
    absent = read_server_report(b'{"data": [{"id": "other"}]}', "http://h/v1/models", "m")
    assert absent is not None
    # Servers load on demand and unload after idle minutes: cached requests are asked again.
    assert (report_changes([before], absent), absent.listed) == ([], ("other",))
