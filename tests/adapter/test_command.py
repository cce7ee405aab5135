"""`sightline adapter train` and `show`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

from msgspec.structs import replace
from tests.adapter.training import Folder, attached_to, run_training, small_training, write_groups

from sightline.adapter.architectures import AdapterConfig, BiLstm, Lora, Prefix
from sightline.adapter.saved_adapter import LOG
from sightline.adapter.training import train_adapter
from sightline.cli.main import main
from sightline.errors import UserError


def test_progress_shows_training_only_after_the_data_are_checked(
    folder: Folder, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int]] = []

    @contextmanager
    def progress(title: str, total: int, unit: str, *, done: int = 0, show_progress: bool) -> Iterator[Any]:
        assert show_progress
        told.append((title, done))

        def advance(more: int) -> None:
            told[-1] = (title, told[-1][1] + more)

        yield advance

    monkeypatch.setattr("sightline.adapter.training.progress", progress)
    training = small_training(folder("llava"), data, tmp_path / "out", adapter=Prefix())
    with pytest.raises(UserError, match="--max-answer-tokens"):
        train_adapter(replace(training, max_answer_tokens=1), show_progress=True)
    assert told == [("checking", 0)]
    stop = Event()
    with pytest.raises(KeyboardInterrupt):
        train_adapter(training, lambda *_: stop.set(), stop=stop, show_progress=True)
    assert told[1:] == [("checking", 24), ("training", 1)]
    train_adapter(training, show_progress=True)
    assert told[3:] == [("checking", 24), ("training", 6)]


TRACKER = """
from sightline.interop.tracking import Tracker


class Lines(Tracker):
    name = "lines"

    def start(self, run):
        self.file = open(run.arguments["file"], "w")
        print(run.kind, run.settings["recipe"]["steps"], file=self.file)

    def log(self, values, step):
        print(step, *sorted(values), values.get("training/loss"), file=self.file)

    def finish(self, files, exit_status):
        print("finish", exit_status, file=self.file, flush=True)


trackers = {"lines": Lines}
"""


def test_a_tracker_gets_each_step_and_each_validation(folder: Folder, data: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(TRACKER)
    words = ["adapter", "train", "--model", f"hf/{folder('llava')}", "--data", str(data.parent), "--json"]
    words += ["--out", str(tmp_path / "out"), "--kind", "prefix", "--steps", "3", "--validate-every", "2"]
    words += ["--plugin", str(tmp_path / "lines.py"), "--track", "lines"]
    assert main([*words, "--track-arg", f"file={tmp_path / 'told'}", "--quiet"]) == 0
    told = (tmp_path / "told").read_text().splitlines()
    held_out = "held_out/acc held_out/agree held_out/loss"
    log = (tmp_path / "out" / LOG).read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in log[1:]]
    both = "training/disagreement training/loss"
    assert told == [
        "training 3",
        f"0 {held_out} None",
        f"1 {both} {losses[0]}",
        f"2 {held_out} {both} {losses[1]}",
        f"3 {held_out} {both} {losses[2]}",
        "finish 0",
    ]


@pytest.mark.slow
def test_the_command_trains_and_run_uses_it(
    folder: Folder, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, model = tmp_path / "adapter", f"hf/{folder('llava')}"
    words = ["adapter", "train", "--model", model, "--data", str(data.parent), "--out", str(out)]
    words += [
        "--steps",
        "4",
        "--kind",
        "bilstm",
        "--set",
        "hidden=6",
        "--rate",
        "0.01",
        "--without",
        "wording=r3",
    ]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "parameters, trained on" in told.out
    assert "step 4: loss" in told.err
    other = write_groups(tmp_path / "other", seed=1)
    run = ["run", f"groups:{other}", "--model", model, "--quiet", "--store", str(tmp_path / "s.db")]
    run += ["--set", "embedder=none", "--gen", "max_tokens=4", "--json"]
    identities = []
    for more in ([], ["--model-arg", f"adapter={out}"]):
        assert main([*run, *more]) == 0
        identities.append(json.loads(capsys.readouterr().out)["model_identity"])
    assert identities[1].startswith(f"{identities[0]} adapter ")
    assert main(["adapter", "show", str(out)]) == 0
    assert "hidden" in capsys.readouterr().out
    assert main([*words, "--set", "depth=3"]) == 2
    assert main([*run[:3], "baseline/chance", "--model-arg", f"adapter={out}"]) == 2


@pytest.mark.parametrize("stopped_in", ["the first validation", "training"])
def test_an_interruption_reports_the_checkpoint_and_an_unfinished_training_is_no_adapter(
    stopped_in: str,
    folder: Folder,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        # What SIGTERM does: the step under way is not finished.
        raise KeyboardInterrupt

    place = "validate" if stopped_in == "the first validation" else "Trainer.steps"
    monkeypatch.setattr(f"sightline.adapter.training.{place}", interrupt)
    out, model = tmp_path / "adapter", f"hf/{folder('llava')}"
    words = ["adapter", "train", "--model", model, "--data", str(data), "--out", str(out), "--kind", "prefix"]
    assert main([*words, "--quiet"]) == 130
    told = capsys.readouterr().err
    assert "answered" not in told
    assert main(["adapter", "show", str(out)]) == 2
    shown = capsys.readouterr().err
    if stopped_in == "training":
        assert told == (
            f"interrupted; the last checkpoint is in {out}, run the same command to continue from there\n"
        )
        assert f"{out}: contains an unfinished training; expected the same" in shown
    else:
        assert told == "interrupted; no checkpoint was written yet; run the same command to start again\n"
        assert "lacks adapter.json" in shown


def _counts(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["adapter", "show", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_size_is_computed_from_the_configuration_alone(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_bytes((folder("llava") / "config.json").read_bytes())
    kinds: dict[str, AdapterConfig] = {"bilstm": BiLstm(), "prefix": Prefix(), "lora": Lora()}
    for name, kind in kinds.items():
        found = _counts(["--model", f"hf/{tmp_path}", "--kind", name], capsys)
        weights = attached_to(folder("llava"), kind).weights
        assert found["adapter"] == sum(weight.numel() for weight in weights.values())
        assert found["width"] == 32


def test_only_config_json_of_a_hub_model_is_downloaded(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    constants: Any = import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    config = (folder("llava") / "config.json").read_bytes()
    with _hub({"/org/tiny/resolve/main/config.json": config}) as (address, asked):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        words = ["--kind", "prefix", "--model"]
        assert _counts([*words, "hf/org/tiny"], capsys) == _counts([*words, f"hf/{folder('llava')}"], capsys)
        assert {path for path in asked if path.startswith("/org")} == {"/org/tiny/resolve/main/config.json"}
        assert main(["adapter", "show", *words, "hf/org/other"]) == 2
    assert "'org/other' cannot be downloaded from the Hugging Face Hub" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*") if path.is_symlink()] == ["config.json"]


@contextmanager
def _hub(files: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """A server with these files, as the Hub has them: its address, and the paths that it is asked for."""
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.send_header("ETag", f'"{hashlib.sha1(content or b"").hexdigest()}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(files.get(self.path, b""))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe": {"steps": 0}}, "--steps is too small"),
        ({"recipe": {"accumulate": 0}}, "--accumulate is too small"),
        ({"recipe": {"rate": -1.0}}, "--rate and --consistency must be above 0"),
        ({"recipe": {"consistency": 2.0}}, "--consistency has no effect with --loss ce"),
        ({"adapter": Prefix(prefix=0)}, "--set prefix is too small"),
        (
            {"adapter": Prefix(prefix=100_000)},
            r"the adapter's prefix 100,000; expected --set prefix=\d+ at most",
        ),
        ({"held_out": 1.5}, "--held-out is out of range"),
        ({"held_out": 0, "embedder": "all-MiniLM-L6-v2"}, "--embedder has no effect"),
        ({"model_arg": {"adapter": "old"}}, "cannot be trained on top of another one"),
        ({"model": "openai/gpt-4o"}, "openai/gpt-4o is not a local model"),
    ],
)
def test_numbers_out_of_range_and_options_without_effect_are_refused(
    change: dict[str, Any], said: str, folder: Folder, data: Path, tmp_path: Path
) -> None:
    training = small_training(folder("llava"), data, tmp_path / "out", recipe=change.pop("recipe", {}))
    with pytest.raises(UserError, match=said):
        run_training(replace(training, **change))
    assert not (tmp_path / "out").exists()
