"""The command line's manners: quick help, nearest names, one message and the right exit status."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sightline.cli.main as main_module
from sightline.cli.build import SUBCOMMANDS
from sightline.cli.main import COMMANDS, GROUPS, WORDS_OF_OTHERS, main
from sightline.cli.options import pairs
from sightline.errors import EnvironmentFailedError, UserError


def test_help_loads_nothing_heavy() -> None:
    # The help of `export` lists the formats of all benchmarks, which it has to import.
    code = (
        "import sys, sightline, sightline.cli.main as m\n"
        "for command in ['', *m.COMMANDS]: command == 'export' or m.build_parser([command])\n"
        "heavy = {'torch', 'scipy', 'fastapi', 'sqlalchemy', 'numpy', 'aiohttp', 'PIL', 'rich'}\n"
        "heavy |= {'inspect_ai', 'platformdirs', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_models_and_replicas_load_no_http_client_before_they_call() -> None:
    """Each command would wait 0.2 s for it."""
    code = (
        "import sys, sightline.models.registry, sightline.replicas.on_ray, sightline.replicas.slurm\n"
        "print(sorted({'torch', 'aiohttp', 'ray', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"sightline {command}" in capsys.readouterr().out.split("example", 1)[1]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu"], "did you mean 'run'?"),
        (["run", "codis", "--modle", "x"], "did you mean '--model'?"),
        (["run", "codsi", "--model", "baseline/chance"], "did you mean 'codis'?"),
        (["run", "iibench:nnone", "--model", "baseline/chance"], "did you mean 'none'?"),
        (["run", "iibench", "--model", "baseline/chanse"], "did you mean 'baseline/chance'?"),
        (["run", "iibench", "--model", "opnai/gpt-4o"], "openai/"),
        (["run", "iibench", "--model", "baseline/chance", "--set", "ordres=2"], "did you mean 'orders'?"),
        (["run", "iibench", "--model", "baseline/chance", "--set", "extraction=strct"], "'strict'?"),
        (["run", "iibench", "--model", "baseline/chance", "--split", "tset"], "did you mean 'test'?"),
        (["run", "iibench", "--model", "baseline/chance", "--judge", "openai/x"], "--judge rules"),
        (["run", "iibench"], "--model"),
        (
            ["run", "codis", "--model", "mini", "--set", "unchanged=on"],
            "an option of groups and mmr3",
        ),
        (["run", "iibench", "--model", "http://127.0.0.1:1/v1"], "#MODEL"),
        (["run", "iibench", "--model", "baseline/chance", "--limit", "0"], "at least 1"),
        (["report", "--store", "no-such.db"], "no store here"),
        (["score", "codis", "x", "--by", "a", "--by", "b"], "--by is given twice, and it takes one value"),
        (["report", "--by=a", "--by", "a"], "--by is given twice"),
        (["report", "--json", "--format", "csv"], "--json and --format set the same value"),
        (["report", "--json", "--json"], "--json is given twice"),
        (["store", "merge", "a.db", "--into", "b.db", "--into", "c.db"], "--into is given twice"),
        (
            ["run", "codis", "--model", "mini", "--limit", "1", "--model", "mini"],
            '--model has the value "mini" twice',
        ),
    ],
)
def test_a_wrong_call_is_refused_with_a_hint(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert hint in error
    assert error.startswith("sightline: ")
    assert "Traceback" not in error


def test_the_summaries_name_all_that_is_built_and_run() -> None:
    assert all(kind in COMMANDS["build"] for kind in SUBCOMMANDS)
    assert all(name in COMMANDS["quickstart"] for name in ("CODIS", "II-Bench", "MM-R3"))


def test_a_pair_without_a_value_is_refused() -> None:
    with pytest.raises(UserError, match="--gen KEY=VALUE"):
        pairs(["temperature"], "--gen")


def test_every_command_stands_once_in_the_help_under_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if re.match(r"    [a-z]", line)]
    assert listed == list(COMMANDS)
    assert [line.strip(" :") for line in lines if re.fullmatch(r"  [a-z]+:", line)] == list(GROUPS)


@pytest.mark.parametrize("word", WORDS_OF_OTHERS)
def test_a_word_of_another_tool_names_the_command(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 2
    ours = WORDS_OF_OTHERS[word].split()
    assert f"it is `sightline {' '.join(ours)}` here" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main([*ours, "--help"])


@pytest.mark.parametrize("command", ["run", "score", "sweep"])
def test_the_help_shows_the_usual_options_and_help_all_every_one(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for word in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            main([command, word])
        shown.append(capsys.readouterr().out)
    usual, every = (set(re.findall(r"^  (--[\w-]+)", text, re.M)) for text in shown)
    assert usual < every
    assert len(usual) <= 21
    assert {"--data", "--judge", "--limit", "--out", "--model"} <= usual
    assert f"{len(every - usual)} more options: sightline {command} --help-all" in shown[0]


def test_a_call_without_a_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "commands:" in capsys.readouterr().out


def test_list_shows_every_metric_with_meaning_direction_and_range(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "codis"]) == 0
    listed = capsys.readouterr().out
    assert "acc_p: pairs of which both answers are right (0 to 100 %, higher is better; CODIS 3.3" in listed
    assert main(["list", "--json"]) == 0
    metrics = {one["name"]: one["metrics"] for one in json.loads(capsys.readouterr().out)}
    assert {"agreement", "human_consistency", "acc_p_images", "output_variability"} <= metrics["codis"].keys()
    assert {"rouge_l", "bertscore", "bleurt"} <= metrics["contextual"].keys()
    assert {"names_colour", "con_minus_sampling"} <= metrics["groups"].keys()
    for by_name in metrics.values():
        for metric in by_name.values():
            assert metric["meaning"]
            assert metric["better"] in ("higher", "lower", "neither")
            assert len(metric["range"]) == 2


def test_defaults_are_listed_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "iibench"]) == 0
    listed = capsys.readouterr().out
    assert "image=on:" in listed
    assert "orders=1:" in listed
    assert "options=null:" in listed


def test_an_unknown_option_points_to_the_help_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--pivt"]) == 2
    assert capsys.readouterr().err == (
        "sightline: unknown option --pivt, did you mean '--pivot'?; see `sightline report --help`\n"
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UserError("the user's"), 2),
        (EnvironmentFailedError("the disk's"), 3),
        (OSError(28, "No space left on device"), 3),
        (KeyError("ours"), 3),
    ],
)
def test_debug_adds_the_traceback_and_keeps_the_exit_status(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: list[str]) -> int:
        raise error

    monkeypatch.setattr(main_module, "_execute", fail)
    assert main(["list"]) == status
    message = capsys.readouterr().err
    assert main(["list", "--debug"]) == status
    traced = capsys.readouterr().err
    assert traced.startswith("Traceback (most recent call last)")
    assert traced.endswith(message)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_jobs_is_an_interruption_unless_it_is_ignored(name: str) -> None:
    number = getattr(signal, name)
    before, at_ctrl_c = signal.signal(number, signal.SIG_DFL), signal.getsignal(signal.SIGINT)
    try:
        main_module._handle_as_interrupt()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        # As a shell starts a command in the background of a script: Ctrl-C is not for it, this is.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.signal(signal.SIGINT, at_ctrl_c)
        signal.signal(number, signal.SIG_IGN)  # as `nohup` does
        main_module._handle_as_interrupt()
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
        signal.signal(signal.SIGINT, at_ctrl_c)


URL = "postgresql://me:p%40w%2Fsecret@127.0.0.1:1/name"


@pytest.mark.parametrize(
    "words",
    [
        ["report", URL],
        ["report", "--store", "postgresql://me:se@cret@127.0.0.1:1/name"],
        ["compare", URL, URL],
        ["score", "codis", URL],
        ["run", URL, "--model", "baseline/chance"],
        ["runs", "show", URL],
        ["store", "verify", "--store", f"{URL}?sslpassword=secret"],
        ["store", "merge", URL, "--into", "new.db"],
        ["serve", "--sotre", URL],
        ["serve", URL],
    ],
)
def test_the_password_of_a_url_is_never_printed(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) in (2, 3)
    printed = capsys.readouterr()
    assert "cret" not in printed.out + printed.err
    assert printed.err
