"""The completion scripts complete commands, options, choices and tasks in bash, zsh and fish."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sightline.cli.completion import SHELLS
from sightline.cli.main import main
from sightline.store.store import Store

pytestmark = pytest.mark.slow

BASH = """
eval "$(sightline completion bash)"
COMP_LINE="$1"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
read -ra COMP_WORDS <<< "$1"
[[ "$1" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$(complete -p sightline | sed 's/.*-F \\([^ ]*\\).*/\\1/') sightline "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""

# The functions of zsh's completion system exist only at a prompt: two stand-ins register and print.
ZSH = """
compdef() { : }
_describe() { print -rl -- "${completions[@]}" }
eval "$(sightline completion zsh)"
BUFFER="$1"; CURSOR=${#BUFFER}; words=(${(z)BUFFER})
_python_argcomplete
"""

FISH = """
sightline completion fish | source
complete -C "$argv[1]"
"""

Complete = Callable[[str], list[str]]


@pytest.fixture(params=SHELLS)
def complete(request: pytest.FixtureRequest, tmp_path: Path) -> Complete:
    """Completes a line in a real shell; returns the words without what completes nothing."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "sightline"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m sightline "$@"\n')
    script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    calls = {
        "bash": ["bash", "--norc", "-c", BASH, "bash"],
        "zsh": ["zsh", "-f", "-c", ZSH, "zsh"],
        "fish": ["fish", "--no-config", "-c", FISH],
    }

    def run(line: str) -> list[str]:
        done = subprocess.run(
            [*calls[shell], line], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
        )
        # Descriptions follow a tab in fish, and a colon in zsh, which escapes the colons of words.
        words = [line.partition("\t")[0] for line in done.stdout.splitlines()]
        if shell == "zsh":
            words = [re.sub(r"(?<!\\):.*", "", word).replace("\\:", ":") for word in words]
        return [word.strip() for word in words]

    return run


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sightline run codis --decide ", ["first", "majority"]),
        ("sightline run con", ["contextual"]),
        ("sightline build restyle --pro", ["--processes"]),
    ],
)
def test_a_shell_completes_commands_options_choices_and_benchmarks(
    complete: Complete, line: str, expected: list[str]
) -> None:
    assert sorted(complete(line)) == expected


def test_settings_follow_a_benchmark(complete: Complete) -> None:
    # bash starts a new word at a colon, so its completions have no benchmark.
    assert {word.rpartition(":")[2] for word in complete("sightline run codis:n")} == {
        "no-cot",
        "no-instructions",
        "no-context",
    }


def test_names_of_runs_follow_a_command_that_takes_runs(complete: Complete, tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "sightline.db"))
    for name in ("baseline", "bare", "adapter"):
        store.labels.give_name(store.runs.start({}), name)
    store.close()
    assert sorted(complete("sightline report ba")) == ["bare", "baseline"]
    assert complete("sightline runs show ad") == ["adapter"]
    assert complete("sightline compare bare,ad") == ["bare,adapter"]


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err
