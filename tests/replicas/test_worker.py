"""A worker: answers as its model does in this process, to those who have the key."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pybase64
import pytest
from msgspec.structs import replace
from PIL import Image

from sightline.cli.main import main
from sightline.errors import EnvironmentFailedError, UserError
from sightline.images import inspect_image
from sightline.models.base import Model
from sightline.models.offline import ChanceBaseline
from sightline.models.registry import ModelOptions, resolve
from sightline.replicas import worker
from sightline.replicas.fleet import RemoteReplica, ReplicaLostError, Target, is_healthy
from sightline.replicas.slurm import Announcement, attach
from sightline.replicas.worker import Serving, serving_worker
from sightline.replicas.worker_client import WorkerClient
from sightline.types import Answer, Failure, ImageFile, ImageRef, Message, Part, Request, Text, user

KEY = "the key of the tests"
T = TypeVar("T")
GREEDY = {"temperature": 0.0, "max_tokens": 12}
SAMPLED = {"temperature": 1.5, "max_tokens": 12, "seed": 3, "top_k": 50}


class Echo(ChanceBaseline):
    """A model that answers with the text of the last message, after `seconds`."""

    batch_size = 1

    def __init__(self, seconds: float = 0.0, result: Failure | Exception | None = None) -> None:
        super().__init__(0)
        self.seconds = seconds
        self.result = result
        self.cancelled = 0
        self.asked: list[Request] = []

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        self.asked += requests
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.result, Exception):
            raise self.result
        for index, request in enumerate(requests):
            last = request.messages[-1].parts[-1]
            yield index, self.result or Answer(last.text if isinstance(last, Text) else "")


def with_worker(model: Model, use: Callable[[str], Awaitable[T]]) -> T:
    """Use a worker at its address."""

    async def session() -> T:
        serving = Serving(host="127.0.0.1", port=0, key=KEY)
        async with asyncio.timeout(60), serving_worker(model, serving) as (address, _):
            return await use(address)

    return asyncio.run(session())


async def call(
    address: str, body: object, *, key: str = KEY, path: str = "/v1/chat/completions"
) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(address + path, data=data) as reply,
    ):
        return reply.status, await reply.json()


def chat(*content: Any, **options: Any) -> dict[str, Any]:
    parts = content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)
    return {"model": Echo.name, "messages": [{"role": "user", "content": parts}], **options}


def shown(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def images(folder: Path) -> dict[str, ImageFile]:
    """Images in several formats and modes, turned by metadata, animated, and with a transform."""
    picture = Image.effect_noise((90, 60), 80).convert("RGB")
    clear = picture.convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(picture.size))
    turned = Image.Exif()
    turned[0x0112] = 6
    saves: dict[str, Callable[[Path], None]] = {
        "photo.jpg": lambda path: picture.save(path, quality=70, exif=turned),
        "clear.png": lambda path: clear.save(path),
        "small.png": lambda path: picture.quantize(16).save(path),
        "old.tiff": lambda path: picture.save(path),
        "moving.gif": lambda path: picture.save(path, save_all=True, append_images=[picture.rotate(90)]),
    }
    found = {}
    for name, save in saves.items():
        path = folder / name
        save(path)
        found[name] = inspect_image(ImageRef(str(path), str(folder)), {})
    found["scaled.png"] = replace(found["clear.png"], transform="jpeg-q95-side40")
    return found


def requests_of_all_kinds(folder: Path) -> list[Request]:
    files = images(folder)

    def make(key: str, *parts: Part | str, sampling: Any = GREEDY, **more: Any) -> Request:
        paths = [part.path for part in parts if isinstance(part, ImageRef)]
        shown = {path: shared for path, shared in by_path.items() if path in paths}
        return Request(key, (user(*parts),), sampling, shown, **more)

    by_path = {file.path: file for name, file in files.items() if name != "scaled.png"}
    refs = {name: ImageRef(file.path, str(folder)) for name, file in files.items()}
    scaled = files["scaled.png"]
    asked = [make(name, refs[name], "What is this?") for name in files if name != "scaled.png"]
    asked += [make(f"{n}", refs["photo.jpg"], "Say.", sampling=SAMPLED, draw=n) for n in range(3)]
    asked += [
        make(f"choose {n}", refs["photo.jpg"], "Which?", choices=("yes", "no", "a cat")) for n in (1, 2)
    ]
    asked += [
        Request("scaled", (user(refs["scaled.png"], "What?"),), GREEDY, {scaled.path: scaled}),
        make("text", "Größe: «日本» \u2028 ?"),
        make("between", "Look:", refs["old.tiff"], "and say"),
        make("two", refs["photo.jpg"], refs["clear.png"], "Which?"),
        make("twice", refs["photo.jpg"], refs["photo.jpg"], "Which?"),
        make("empty", ""),
        make("long", "word " * 5000),
        Request("turns", (Message("assistant", (Text("Hi"),)), user("And?")), GREEDY),
        Request("system", (Message("system", (Text("Be brief."),)), user("And?")), GREEDY),
    ]
    return asked


@pytest.mark.slow
def test_a_worker_answers_as_its_model_does_in_this_process(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs the extra local")
    asked = requests_of_all_kinds(tmp_path)
    # One request in a batch: answers of `mini` do not depend on others, but this test is not about that.
    options = ModelOptions(args={"batch": 1})

    async def here() -> dict[int, Answer | Failure]:
        (model,) = resolve("mini", options)
        async with model:
            return dict([pair async for pair in model.answer(asked)])

    async def there(address: str) -> list[Answer | Failure]:
        async with WorkerClient(address, "mini", KEY) as client:
            return await asyncio.gather(*map(client.send, asked))

    expected = asyncio.run(here())
    found = with_worker(resolve("mini", options)[0], there)
    for number, request in enumerate(asked):
        assert _untimed(found[number]) == _untimed(expected[number]), request.key
    kinds = {result.kind for result in expected.values() if isinstance(result, Failure)}
    assert "blocked" in kinds
    assert sum(isinstance(result, Answer) for result in expected.values()) >= 12


def _untimed(result: Answer | Failure) -> Answer | Failure:
    return replace(result, latency=0.0) if isinstance(result, Answer) else result


def test_a_worker_with_other_weights_is_refused() -> None:
    async def attached(address: str) -> None:
        host, port = address.removeprefix("http://").split(":")
        announced = Announcement(host=host, port=int(port), node="n1", restart=0)
        model = Echo()
        target = Target(model=model, spec="mini", args={}, weights=model.identity)
        server = await attach(target, "1_0", announced, KEY)
        assert server is not None
        await server.opened.aclose()
        assert await attach(target, "1_0", announced, "another key") is None
        with pytest.raises(UserError, match="job 1_0 on n1 is not the model of this machine"):
            await attach(replace(target, weights="sha256:other"), "1_0", announced, KEY)

    with_worker(Echo(), attached)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/"])
@pytest.mark.parametrize("key", ["", "wrong", KEY[:-1], KEY + "x", "schlüssel"])
def test_a_call_without_the_key_is_refused(path: str, key: str) -> None:
    model = Echo()
    status, body = with_worker(model, lambda address: call(address, chat("?"), key=key, path=path))
    assert status == 401
    assert body["error"]["type"] == "authentication_error"
    assert not model.asked


def test_other_clients_get_a_chat_completion() -> None:
    status, body = with_worker(Echo(), lambda address: call(address, chat("Say it", user="me", n=1)))
    assert status == 200
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Say it"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "no chat completions request"),
        (b"\xff", "no chat completions request"),
        (b"[" * 100_000, "no chat completions request"),
        ({"messages": "hi"}, "Expected `array`"),
        ({}, "Expected `array`"),
        ({"messages": []}, "messages is empty; expected one message or more"),
        (chat("?", stream=True), "stream=True is not supported"),
        (chat("?", n=2), "n=2 is not supported"),
        (chat("?", sightline={"keys": 1}), "unknown field `keys`"),
        (chat({"type": "audio"}), "Invalid value 'audio'"),
        (
            chat({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
            "expected a data URL",
        ),
        (chat({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}), "image 1: not base64"),
        (
            chat({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
            "image 1: not an image",
        ),
        (chat({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}), "expected a data URL"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_with_the_reason(body: object, message: str) -> None:
    model = Echo()
    status, reply = with_worker(model, lambda address: call(address, body))
    assert (status, reply["error"]["type"]) == (400, "invalid_request_error")
    assert message in reply["error"]["message"]
    assert "/tmp" not in reply["error"]["message"]
    assert not model.asked


def test_a_wrong_sampling_option_is_named_as_in_the_protocol() -> None:
    pytest.importorskip("transformers", reason="needs the extra local")
    status, reply = with_worker(
        resolve("mini", ModelOptions())[0],
        lambda address: call(address, {**chat("?", temperature=-1), "model": "mini"}),
    )
    assert status == 400
    assert reply["error"]["message"].startswith("temperature cannot be -1; expected a number, 0 or more")


@pytest.mark.parametrize("name", ["gpt-5", "Baseline/chance", 5])
def test_a_request_for_another_model_is_refused_as_by_vllm(name: object) -> None:
    model = Echo()
    status, reply = with_worker(model, lambda address: call(address, {**chat("?"), "model": name}))
    assert (status, reply["error"]["code"]) == (404, "model_not_found")
    expected = f"The model `{name}` does not exist; this worker serves `{Echo.name}`"
    assert reply["error"]["message"] == expected
    assert not model.asked


@pytest.mark.parametrize("given", [{}, {"model": None}, {"model": ""}])
def test_a_request_need_not_name_the_model(given: dict[str, Any]) -> None:
    body = {name: value for name, value in chat("?").items() if name != "model"} | given
    assert with_worker(Echo(), lambda address: call(address, body))[0] == 200


def test_a_run_that_asks_a_worker_for_another_model_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKER_KEY", KEY)
    Path("pairs.jsonl").write_text('{"group":"g","variant":"a","prompt":"Red?","references":["yes"]}\n')

    async def run(address: str) -> int:
        host = address.removeprefix("http://")
        Path("sightline.toml").write_text(f'[hosts."{host}"]\nkey = "WORKER_KEY"\n')
        words = ["run", "groups:pairs.jsonl", "--model", f"{address}/v1#minni", "--store", "s.db", "--quiet"]
        return await asyncio.to_thread(main, words)

    assert with_worker(Echo(), run) == 2
    assert "has no model 'minni' (HTTP 404)" in capsys.readouterr().err


def test_a_request_over_the_limit_of_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_BODY", 1000)
    status, body = with_worker(Echo(), lambda address: call(address, chat("x" * 1000)))
    assert (status, body["error"]["message"]) == (413, "the request is larger than 1,000 bytes")


def test_received_images_leave_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    url = f"data:image/png;base64,{pybase64.b64encode((tmp_path / 'a.png').read_bytes()).decode()}"
    model = Echo()
    body = chat(shown(url), {"type": "text", "text": "?"})
    assert with_worker(model, lambda address: call(address, body))[0] == 200
    assert len(model.asked[0].images) == 1
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("written", ["folder", "image"])
def test_a_worker_that_cannot_write_images_ends_and_names_the_file(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    url = f"data:image/png;base64,{pybase64.b64encode((tmp_path / 'a.png').read_bytes()).decode()}"

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if written == "folder":
        monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    else:
        monkeypatch.setattr(Path, "write_bytes", full)

    async def session() -> None:
        serving = Serving(host="127.0.0.1", port=0, key=KEY)
        async with serving_worker(Echo(), serving) as (address, failed):
            status, body = await call(address, chat(shown(url)))
            where = "TMPDIR" if written == "folder" else "sightline-images-"
            assert (status, body["error"]["type"]) == (500, "server_error")
            with pytest.raises(EnvironmentFailedError, match=f"{where}.*: cannot be written: No space left"):
                await failed

    asyncio.run(session())


@pytest.mark.parametrize(("kind", "status"), [("permanent", 400), ("blocked", 400), ("transient", 503)])
def test_a_failure_keeps_its_kind(kind: Any, status: int) -> None:
    failure = Failure(kind, "no room")

    async def ask(address: str) -> tuple[Any, tuple[int, Any]]:
        async with WorkerClient(address, Echo.name, KEY) as client:
            return await client.send(Request("k", (user("?"),), {})), await call(address, chat("?"))

    found, (code, body) = with_worker(Echo(result=failure), ask)
    assert found == failure
    assert (code, body["error"]["message"]) == (status, "no room")


def test_a_client_that_goes_away_cancels_its_request() -> None:
    model = Echo(seconds=30)

    async def leave(address: str) -> None:
        asking = asyncio.create_task(call(address, chat("?")))
        while not model.asked:
            await asyncio.sleep(0.01)
        asking.cancel()
        while not model.cancelled:
            await asyncio.sleep(0.01)

    with_worker(model, leave)


def test_a_lost_device_ends_the_worker() -> None:
    async def session() -> int:
        serving = Serving(host="127.0.0.1", port=0, key=KEY)
        model = Echo(result=EnvironmentFailedError("the device is lost"))
        async with serving_worker(model, serving) as (address, failed):
            status, _ = await call(address, chat("?"))
            with pytest.raises(EnvironmentFailedError):
                await failed
        return status

    assert asyncio.run(session()) == 500


def test_a_replica_whose_server_has_ended_is_lost_and_one_whose_call_broke_is_asked_again() -> None:
    broken = Failure("transient", "connection reset")

    async def send(_: Request) -> Answer | Failure:
        return broken

    async def session() -> None:
        request = Request("k", (user("?"),), {})
        async with serving_worker(Echo(), Serving(host="127.0.0.1", port=0, key=KEY)) as (address, _):
            assert await RemoteReplica("a", address, send).answer(request) == broken
        with pytest.raises(ReplicaLostError, match="connection reset"):
            await RemoteReplica("a", address, send).answer(request)

    asyncio.run(session())


def test_a_replica_that_is_known_to_be_lost_answers_nothing_more() -> None:
    async def send(_: Request) -> Answer | Failure:
        await asyncio.Event().wait()
        return Answer("")

    async def session() -> None:
        replica = RemoteReplica("a", "http://127.0.0.1:1", send)
        call = asyncio.create_task(replica.answer(Request("k", (user("?"),), {})))
        await asyncio.sleep(0)
        replica.lose("the node failed")
        with pytest.raises(ReplicaLostError, match="the node failed"):
            await call

    asyncio.run(session())


def test_too_many_open_files_at_the_driver_are_no_loss_of_the_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = Failure("transient", "OSError: [Errno 24] Too many open files")

    async def send(_: Request) -> Answer | Failure:
        return refused

    def no_files(*_: object, **__: object) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    async def session() -> None:
        replica = RemoteReplica("a", "http://127.0.0.1:1", send)
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", no_files)
            assert await replica.answer(Request("k", (user("?"),), {})) == refused
        assert not replica.is_lost

    asyncio.run(session())


def test_a_port_that_another_worker_has_is_refused_before_the_model_loads() -> None:
    class Unloadable(Echo):
        async def __aenter__(self) -> Any:
            pytest.fail("the model loads")

    async def session() -> None:
        first = Slow()
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            port = free_port()
            loading = tasks.create_task(serve_at(first, port))
            await first.begun.wait()
            with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
                await serve_at(Unloadable(), port)
            loading.cancel()

    asyncio.run(session())


def test_a_worker_that_is_loading_is_not_healthy_and_says_so() -> None:
    async def session() -> None:
        model = Slow()
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            port = free_port()
            loading = tasks.create_task(serve_at(model, port))
            await model.begun.wait()
            address = f"http://127.0.0.1:{port}"
            assert not await is_healthy(address)
            status, body = await call(address, chat("?"))
            assert (status, body["error"]["message"]) == (503, "the model is still loading")
            assert (await call(address, chat("?"), key="wrong"))[0] == 401
            model.may_end.set()
            while not await is_healthy(address):
                await asyncio.sleep(0.01)
            assert (await call(address, chat("?")))[0] == 200
            loading.cancel()

    asyncio.run(session())


class Slow(Echo):
    """A model that loads until `may_end` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __aenter__(self) -> Any:
        self.begun.set()
        await self.may_end.wait()
        return self


async def serve_at(model: Model, port: int) -> None:
    async with serving_worker(model, Serving(host="127.0.0.1", port=port, key=KEY)):
        await asyncio.Event().wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_the_key_of_a_request_does_not_depend_on_fields_that_are_ignored() -> None:
    model = Echo()

    async def ask(address: str) -> None:
        await call(address, chat("?", user="a", metadata={"run": "1"}, store=True))
        await call(address, chat("?"))
        await call(address, chat("?", temperature=0.5))

    with_worker(model, ask)
    assert model.asked[0].key == model.asked[1].key != model.asked[2].key
