"""`--batch`: answers of batches are those of single requests, and nothing is paid twice."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models.batch_provider import POLL, RunningProvider

from sightline.evaluation.batches import BatchJournal
from sightline.store.store import Store
from training.scenes.build import generate_codis

QUESTIONS = 20

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[RunningProvider]:
    running = RunningProvider()
    configure(tmp_path, running)
    yield running
    running.stop()


def configure(folder: Path, provider: RunningProvider, batch: str = POLL, more: str = "") -> None:
    (folder / "sightline.toml").write_text(provider.config(batch, more))


@pytest.fixture
def data(iibench_folder: Callable[..., Path]) -> Path:
    return iibench_folder(QUESTIONS)


@pytest.fixture
def words(provider: RunningProvider, data: Path) -> list[object]:
    return ["run", "iibench", "--data", data, "--model", provider.model, "--store", "s.db"]


def responses(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / "answers.jsonl").read_text().splitlines()
    return [(line["sample"], line["response"]) for line in map(json.loads, lines)]


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "waited for 30 seconds"
        time.sleep(0.05)


def open_batches(folder: Path) -> int:
    store = Store.open(str(folder / "s.db"))
    try:
        return len(BatchJournal(store).all())
    finally:
        store.close()


def claims(folder: Path) -> int:
    """The requests that processes work on now, and the batches that they follow."""
    store = Store.open(str(folder / "s.db"))
    try:
        return len(store.claims.held())
    finally:
        store.close()


def test_batches_and_single_requests_share_answers(
    provider: RunningProvider, words: list[object], command: Command, tmp_path: Path
) -> None:
    assert command(*words, "--batch", "--out", "batch")[0] == 0
    assert (provider.paid, provider.sizes, provider.provider.live) == (QUESTIONS, [QUESTIONS], 0)
    assert open_batches(tmp_path) == 0
    assert command(*words, "--out", "live", "--fingerprint", "off")[0] == 0
    assert (provider.paid_twice, provider.provider.live) == (0, 0)
    elsewhere = ["other.db" if word == "s.db" else word for word in words]
    assert command(*elsewhere, "--out", "other")[0] == 0
    assert provider.provider.live == QUESTIONS
    assert responses(tmp_path / "batch") == responses(tmp_path / "live") == responses(tmp_path / "other")
    numbers = [json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("batch", "other")]
    assert numbers[0]["metrics"] == numbers[1]["metrics"]


def test_an_endpoint_is_checked_by_single_requests(
    provider: RunningProvider, words: list[object], command: Command
) -> None:
    assert command(*words, "--limit", "10")[0] == 0
    assert provider.provider.live == 10
    assert command(*words, "--batch", "--limit", "15")[0] == 0
    assert (provider.provider.live, provider.sizes) == (18, [5])
    provider.set(reply="(Z) something else")
    status, _, errors = command(*words, "--batch", "--set", "prompt=cot")
    assert (status, len(provider.sizes)) == (0, 2), errors
    status, _, errors = command(*words, "--batch")
    assert (status, len(provider.sizes)) == (2, 2)
    assert "is not the model that gave its cached answers" in errors


@pytest.mark.parametrize("limit", ["lines = 8", "bytes = 9000"])
def test_requests_are_divided_into_files_within_the_limits(
    limit: str, provider: RunningProvider, words: list[object], command: Command, tmp_path: Path
) -> None:
    configure(tmp_path, provider, f"{POLL}, {limit}")
    told = json.loads(command(*words, "--batch", "--dry-run", "--json")[1])
    assert command(*words, "--batch")[0] == 0
    assert (provider.paid, provider.paid_twice, sum(provider.sizes)) == (QUESTIONS, 0, QUESTIONS)
    files = [body for name, body in provider.provider.files.items() if "output" not in name]
    assert len(files) >= 3
    assert all(len(body) <= 9000 for body in files) or max(provider.sizes) == 8
    assert told["batch_files"] == len(files)
    assert told["batch_bytes"] == pytest.approx(sum(map(len, files)), rel=0.15)


@pytest.mark.slow
def test_failed_lines_are_asked_again_together(
    provider: RunningProvider, words: list[object], command: Command
) -> None:
    provider.set(fail_rate=0.4)
    assert command(*words, "--batch")[0] == 0
    assert (provider.paid, provider.paid_twice) == (QUESTIONS, 0)
    first, *further = provider.sizes
    assert first == QUESTIONS
    assert 0 < len(further) <= sum(further) / 2


@pytest.mark.parametrize(
    "options",
    [
        {"expire_after": 7},
        {"omit": True},
        {"break_downloads": 2},
        {"outage": 4},
        {"refusals": 2},
        {"lose_reply": 1},
        {"no_line_feed": True},
        {"problem": '[{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]'},
        {"line_status": 429, "line_message": "slow down"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_fails_on_the_way_costs_no_answer_and_no_money(
    options: dict[str, Any], provider: RunningProvider, words: list[object], command: Command
) -> None:
    provider.set(**options)
    status, _, errors = command(*words, "--batch", "--out", "out")
    assert status == 0, errors
    assert (provider.paid, provider.paid_twice, provider.provider.live) == (QUESTIONS, 0, 0)


def test_the_lines_of_a_batch_that_expired_are_kept(
    provider: RunningProvider, words: list[object], command: Command
) -> None:
    provider.set(expire_after=7)
    assert command(*words, "--batch")[0] == 0
    assert provider.sizes == [QUESTIONS, QUESTIONS - 7]


def test_a_line_that_the_provider_refuses_is_recorded_and_the_others_are_sent_again(
    provider: RunningProvider, words: list[object], command: Command
) -> None:
    provider.set(problem='[{"code": "invalid_request", "message": "max_tokens is too large", "line": 3}]')
    status, _, errors = command(*words, "--batch")
    assert status == 1
    assert "1 of 20 probes has no answer" in errors
    assert "max_tokens is too large" in errors
    assert provider.sizes == [QUESTIONS, QUESTIONS - 1]
    assert command(*words, "--batch", "--retry-errors", "--fingerprint", "off")[0] == 0
    assert (provider.sizes[2:], provider.paid_twice) == ([1], 0)


def test_a_blocked_line_is_not_asked_again(
    provider: RunningProvider, words: list[object], command: Command, tmp_path: Path
) -> None:
    provider.set(line_status=400, line_message="content_filter")
    assert command(*words, "--batch")[0] == 1
    assert (provider.sizes, open_batches(tmp_path)) == ([QUESTIONS], 0)
    assert command(*words, "--batch")[0] == 1
    assert provider.sizes == [QUESTIONS]


def test_a_batch_that_the_provider_refuses_ends_the_run(
    provider: RunningProvider, words: list[object], command: Command, tmp_path: Path
) -> None:
    provider.set(problem='[{"code": "model_not_found", "message": "no batches of m"}]')
    status, _, errors = command(*words, "--batch")
    assert status == 2
    assert "no batches of m" in errors
    assert open_batches(tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["upload", "create", "created", "poll", "download"])
def test_a_killed_run_is_continued_and_nothing_is_paid_twice(
    moment: str,
    provider: RunningProvider,
    words: list[object],
    command: Command,
    start: Callable[..., Any],
    tmp_path: Path,
) -> None:
    provider.set(seconds=0.3)
    process = start(*words, "--batch")
    provider.set(kill=process.pid, kill_at=moment)
    assert process.end()[0] == -signal.SIGKILL
    status, _, errors = command(*words, "--batch", "--out", "out")
    assert status == 0, errors
    assert (provider.paid, provider.paid_twice) == (QUESTIONS, 0)
    assert len(provider.sizes) == 1
    assert len(responses(tmp_path / "out")) == QUESTIONS
    assert ("fetching" in errors) == (moment != "upload")
    assert open_batches(tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_second_process_waits_for_the_batch_of_the_first_and_takes_it_over_after_its_end(
    is_killed: bool,
    provider: RunningProvider,
    words: list[object],
    start: Callable[..., Any],
    tmp_path: Path,
) -> None:
    provider.set(seconds=60.0, fail_rate=0.2)
    first = start(*words, "--batch")
    wait_until(lambda: claims(tmp_path) == QUESTIONS + 1)
    second = start(*words, "--batch", "--out", "second")
    time.sleep(3.0)
    assert claims(tmp_path) == QUESTIONS + 1
    if is_killed:
        first.kill()
        first.end()
        wait_until(lambda: claims(tmp_path) == QUESTIONS + 1)
    provider.set(seconds=0.1)
    assert is_killed or first.end()[0] == 0
    status, _, errors = second.end()
    assert status == 0, errors
    assert ("fetching" in errors) == is_killed
    assert (provider.paid, provider.paid_twice) == (QUESTIONS, 0)
    assert len(responses(tmp_path / "second")) == QUESTIONS
    assert (claims(tmp_path), open_batches(tmp_path)) == (0, 0)


def test_a_batch_is_found_on_a_later_page_of_the_list(
    provider: RunningProvider, words: list[object], command: Command, start: Callable[..., Any]
) -> None:
    process = start(*words, "--batch")
    provider.set(kill=process.pid, kill_at="created", page=2)
    process.end()
    for number in range(5):
        newer = provider.provider.batches["batch_0"] | {"id": f"other_{number}", "input_file_id": "another"}
        provider.provider.batches[f"other_{number}"] = newer | {"status": "completed"}
    assert command(*words, "--batch")[0] == 0
    assert (provider.paid, provider.paid_twice, len(provider.sizes)) == (QUESTIONS, 0, 6)


@pytest.mark.slow
def test_an_interrupted_run_leaves_its_batch_running_and_says_how_to_fetch_it(
    provider: RunningProvider, words: list[object], command: Command, start: Callable[..., Any]
) -> None:
    provider.set(seconds=60.0)
    process = start(*words, "--batch")
    wait_until(lambda: bool(provider.sizes))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    status, _, errors = process.end()
    assert status == 130
    assert f"it fetches what goes on at the provider: 1 batch (20 requests) at {provider.address}" in errors
    status, _, errors = command(*words)
    assert (status, provider.provider.live) == (1, 0)
    assert "20 requests not sent, because a batch at the provider holds them; add --batch" in errors
    assert command(*words, "--fresh", "again", "--limit", "2", "--fingerprint", "off")[0] == 0
    assert provider.provider.live == 2
    provider.set(seconds=0.0)
    status, _, errors = command(*words, "--batch")
    assert (status, len(provider.sizes)) == (0, 1)
    assert f"{provider.host}: fetching batch_0 (20 requests, sent 0:00 h ago)" in errors
    assert command(*words)[0] == 0


def test_a_run_fetches_only_its_own_requests_of_a_batch(
    provider: RunningProvider,
    words: list[object],
    command: Command,
    start: Callable[..., Any],
    tmp_path: Path,
) -> None:
    process = start(*words, "--batch")
    provider.set(kill=process.pid, kill_at="poll", seconds=0.2)
    process.end()
    assert command(*words, "--batch", "--limit", "4")[0] == 0
    assert open_batches(tmp_path) == 1
    assert command(*words, "--batch", "--fingerprint", "off")[0] == 0
    assert (len(provider.sizes), provider.paid_twice, open_batches(tmp_path)) == (1, 0, 0)


@pytest.mark.slow
def test_results_that_the_provider_has_deleted_are_asked_again_only_on_request(
    provider: RunningProvider, words: list[object], command: Command, start: Callable[..., Any]
) -> None:
    process = start(*words, "--batch")
    provider.set(kill=process.pid, kill_at="download")
    process.end()
    for name in [name for name in provider.provider.files if "output" in name]:
        del provider.provider.files[name]
    status, _, errors = command(*words, "--batch")
    assert status == 1
    assert "no such file" in errors
    assert len(provider.sizes) == 1
    assert command(*words, "--batch", "--retry-errors")[0] == 0
    assert len(provider.sizes) == 2


@pytest.mark.slow
def test_a_batch_at_another_address_of_the_model_is_not_paid_again(
    provider: RunningProvider, words: list[object], command: Command, start: Callable[..., Any], data: Path
) -> None:
    named = [*words, "--batch", "--model-id", "m"]
    process = start(*named)
    provider.set(kill=process.pid, kill_at="poll", seconds=0.2)
    process.end()
    moved = [word if word != provider.model else provider.model.replace("/v1#", "/v1/#") for word in named]
    assert command(*moved)[0] == 0  # the same address, with another slash
    other = RunningProvider()
    try:
        provider.set(seconds=60.0, kill=0)
        process = start(*named, "--gen", "seed=1")
        wait_until(lambda: len(provider.sizes) == 2)
        process.kill()
        process.end()
        elsewhere = [other.model if word == provider.model else word for word in named]
        status, _, errors = command(*elsewhere, "--gen", "seed=1", "--fingerprint", "off")
        assert (status, other.sizes) == (1, [])
        assert f"the request is in a batch at {provider.address}" in errors
    finally:
        other.stop()


def test_the_judge_is_asked_in_batches_too(
    provider: RunningProvider, command: Command, tmp_path: Path
) -> None:
    folder, judge = generate_codis(tmp_path / "codis", pairs=6), f"{provider.address}#judge"
    run = ["run", "codis", "--data", folder, "--model", provider.model, "--judge", judge, "--store", "s.db"]
    provider.set(reply="It shows very old things.")
    assert "in batches: 1 file" in command(*run, "--batch", "--dry-run")[1]
    status, _, errors = command(*run, "--batch", "--out", "out")
    assert status == 0, errors
    # The replies to the question of equal meaning hold no verdict: they are asked for once more.
    assert (provider.provider.live, len(provider.sizes), provider.sizes[0]) == (0, 3, 12)
    verdicts = [json.loads(line) for line in (tmp_path / "out" / "verdicts.jsonl").read_text().splitlines()]
    assert "right" in {one["verdict"] for one in verdicts if one["judge"] == judge}
    assert command(*run, "--batch", "--fingerprint", "off")[0] == 0
    assert (provider.provider.live, len(provider.sizes)) == (0, 3)


def test_a_judge_that_runs_here_is_asked_as_usual(
    provider: RunningProvider, command: Command, tmp_path: Path
) -> None:
    folder = generate_codis(tmp_path / "codis", pairs=3)
    run = ["run", "codis", "--data", folder, "--model", provider.model, "--judge", "baseline/chance"]
    assert command(*run, "--batch", "--store", "s.db")[0] in (0, 1)
    assert provider.sizes == [6]


def test_a_sweep_sends_a_batch_for_each_point(
    provider: RunningProvider, words: list[object], command: Command
) -> None:
    status, _, errors = command("sweep", *words[1:], "--gen", "temperature=0,0.5", "--batch", "--out", "out")
    assert status == 0, errors
    assert (provider.sizes, provider.provider.live) == ([QUESTIONS, QUESTIONS], 0)


def test_budgets_count_requests_of_batches(
    provider: RunningProvider, words: list[object], command: Command, tmp_path: Path
) -> None:
    assert command(*words, "--batch", "--max-requests", "6")[0] == 4
    assert provider.sizes == [6]
    assert command(*words, "--batch", "--max-requests", "100")[0] == 0
    assert sum(provider.sizes) == QUESTIONS


def test_a_maximum_cost_is_kept_without_waiting_for_one_answer_after_the_other(
    provider: RunningProvider, words: list[object], command: Command, tmp_path: Path
) -> None:
    configure(tmp_path, provider, more="[prices.m]\nprompt = 10\ncompletion = 100\n")
    limited = [*words, "--batch", "--gen", "max_tokens=100", "--fingerprint", "off"]
    # About 0.0103 at full length, 0.0012 as answered: first what fits at full length, then what is left.
    status, _, errors = command(*limited, "--max-cost", "0.0515", "--out", "out")
    assert status == 0, errors
    assert 3 <= provider.sizes[0] <= 5
    assert sum(provider.sizes) == QUESTIONS
    notes = " ".join(json.loads((tmp_path / "out" / "metrics.json").read_text())["notes"])
    assert "costs of batches are at the price of single requests; most providers charge half" in notes
    assert "cost 0.02" in errors


def test_the_price_of_batches_is_used(
    provider: RunningProvider, words: list[object], command: Command, tmp_path: Path
) -> None:
    prices = "[prices.m]\nprompt = 1000\ncompletion = 0\nbatch = { prompt = 500 }\n"
    configure(tmp_path, provider, more=prices)
    status, _, errors = command(*words, "--batch", "--out", "out")
    assert status == 0, errors
    assert "cost 1.00" in errors
    assert "price of single requests" not in (tmp_path / "out" / "metrics.json").read_text()
    told = json.loads(command(*words, "--fresh", "x", "--batch", "--dry-run", "--json")[1])
    assert told["expected_cost"] is None or told["full_length_cost"] > 0


def test_a_key_is_sent_and_never_shown(
    provider: RunningProvider,
    words: list[object],
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "sk-test-0123456789abcdefghij"
    (tmp_path / "sightline.toml").write_text(
        f'[hosts."{provider.host}"]\nkey = "PROVIDER_KEY"\nbatch = {{ {POLL} }}\n'
    )
    monkeypatch.setenv("PROVIDER_KEY", key)
    provider.set(key=key, reply=f"the key is {key}")
    status, out, errors = command(*words, "--batch", "--out", "out")
    assert status == 0, errors
    assert provider.provider.keys == {f"Bearer {key}"}
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(key.encode() in content for content in written)
    assert key not in out + errors
    assert "the key is [key]" in (tmp_path / "out" / "answers.jsonl").read_text()
    monkeypatch.setenv("PROVIDER_KEY", "sk-wrong-0123456789abcdefghij")
    status, _, errors = command(*words, "--batch", "--fresh", "x", "--fingerprint", "off")
    assert status == 2
    assert "refuses the API key" in errors
    assert "sk-" not in errors


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--model", "baseline/chance"], "--batch has no effect"),
        (["--model", "http://127.0.0.1:1/v1,http://127.0.0.1:2/v1#m"], "--batch needs one server"),
        (["--augment", "layout+caption", "--captioner", "SAME"], "--batch writes no captions"),
    ],
)
def test_what_has_no_batches_is_refused_before_anything_is_sent(
    more: list[str], reason: str, provider: RunningProvider, words: list[object], command: Command
) -> None:
    changed = [provider.model if word == "SAME" else word for word in more]
    if "--model" in more:
        at = words.index("--model")
        words = [*words[:at], *words[at + 2 :]]
    status, _, errors = command(*words, *changed, "--batch")
    assert (status, provider.provider.calls) == (2, {})
    assert reason in errors


def test_a_server_without_batches_is_named(
    provider: RunningProvider, words: list[object], command: Command
) -> None:
    provider.set(no_batches=True)
    status, _, errors = command(*words, "--batch")
    assert status == 2
    assert f"{provider.address}/files does not exist: {provider.host} has no batches (HTTP 404)" in errors
