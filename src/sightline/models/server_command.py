"""The command that starts vLLM or SGLang for a model, and the identity of that model."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from sightline.errors import UserError
from sightline.models.model_files import answer_files, digest_of_files, folder_of
from sightline.secret_text import is_key_shaped, is_secret_name

CHOSEN_HERE = {
    "--host", "--port", "--uds", "--ssl-keyfile", "--ssl-certfile",
    "--model", "--model-path", "--served-model-name", "--allowed-local-media-path",
}  # fmt: skip
SECRET = {"--api-key", "--admin-api-key", "--hf-token", "--ssl-keyfile-password"}
FILE_OF_FLAGS = "--config"
OF_NO_EFFECT = {
    "--tensor-parallel-size", "-tp", "--tp", "--tp-size",
    "--pipeline-parallel-size", "-pp", "--pp-size",
    "--data-parallel-size", "-dp", "--dp", "--dp-size",
    "--gpu-memory-utilization", "--mem-fraction-static", "--max-num-seqs", "--max-running-requests",
    "--download-dir", "--log-level", "--uvicorn-log-level",
    "--enable-prompt-tokens-details", "--enable-cache-report",
}  # fmt: skip
"""Flags that change where and how fast a model runs, not what it answers: not part of its identity."""

KEY_OF_SERVER = "VLLM_API_KEY"
"""The environment variable with the key of a server."""

_WITH_KEY = (
    f"import os, runpy, sys; sys.argv += ['--api-key', os.environ['{KEY_OF_SERVER}']]; "
    "runpy.run_module('sglang.launch_server', run_name='__main__')"
)
"""Starts SGLang with its key, which other users of the machine must not see among its arguments."""

_FLAG = re.compile(r"--?[A-Za-z]")


class ServerKind(Struct, frozen=True):
    """A server program that Sightline can start.

    Attributes:
        find: Finds the program of this environment, None if there is none.
    """

    name: str
    title: str
    words: tuple[str, ...]
    elsewhere: str
    program: str
    find: Callable[[], str | None]
    folder_flag: str = ""


class ServerCommand(Struct, frozen=True):
    """How one model is served."""

    command: tuple[str, ...]
    served_name: str
    identity: str


def launch_with_key(words: Sequence[str], python: Sequence[str] = ()) -> list[str]:
    """Let SGLang take its key from the environment variable that vLLM reads by itself.

    Args:
        python: The Python to start SGLang with; none for that of the command.
    """
    module = ["-m", "sglang.launch_server"]
    for at in range(1, len(words) - 1):
        if list(words[at : at + 2]) == module:
            return [*(python or words[:at]), "-c", _WITH_KEY, *words[at + 2 :]]
    return list(words)


def _vllm() -> str | None:
    return shutil.which("vllm") or shutil.which("vllm", path=str(Path(sys.executable).parent))


def _sglang() -> str | None:
    return sys.executable if find_spec("sglang") else None


VLLM = ServerKind(
    "vllm", "vLLM", ("serve",), "vllm", "the program vllm", _vllm, folder_flag="--allowed-local-media-path"
)
SGLANG = ServerKind(
    "sglang",
    "SGLang",
    ("-m", "sglang.launch_server", "--model-path"),
    "python3",
    "a Python with sglang installed",
    _sglang,
)


def server_command(
    kind: ServerKind,
    model: str,
    *,
    flags: str = "",
    program: str = "",
    starts: bool = True,
    images: Path | None = None,
) -> ServerCommand:
    """Build the command that serves a model.

    Args:
        images: The folder of images that the server may read; None for none.
    """
    user_words = _words(flags, "flags")
    units = _units(user_words)
    for name, *_ in units:
        _refuse(kind, name)
    _refuse_secret_words(user_words, "flags")
    location = served = weights = model
    folder = folder_of(model)
    words = _program(kind, program) if starts else _words(program, "executable") or [kind.elsewhere]
    if folder is not None:
        location, served, weights = (
            str(folder),
            folder.resolve().name,
            f"sha256:{digest_of_files(folder, answer_files(folder))}",
        )
    media = [kind.folder_flag, str(images)] if images is not None and kind.folder_flag else []
    telling = [shlex.join(unit) for unit in sorted(units, key=_order) if unit[0] not in OF_NO_EFFECT]
    return ServerCommand(
        command=(*words, *kind.words, location, "--served-model-name", served, *media, *user_words),
        served_name=served,
        identity=" ".join([kind.name, weights, *telling]),
    )


def _words(text: str, argument: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"--model-arg {argument}: {error}", expected="words as in a shell") from None


def _units(words: Sequence[str]) -> list[list[str]]:
    """Each flag with its values; names in one spelling, because both servers read --a_b=c as --a-b c."""
    units: list[list[str]] = []
    for word in words:
        if _FLAG.match(word):
            name, sign, value = word.partition("=")
            units.append([name.replace("_", "-"), *([value] if sign else [])])
        elif units:
            units[-1].append(word)
        else:
            raise UserError(
                "--model-arg flags does not begin with a flag", found=word, expected="--NAME VALUE ..."
            )
    return units


def _order(unit: Sequence[str]) -> str:
    """Sort key of a flag in the identity; a flag and its opposite keep their order: the last one counts."""
    return unit[0].replace("--no-", "--", 1)


def _refuse(kind: ServerKind, flag: str) -> None:
    """Refuse flags that the user must not set, abbreviations too: the servers accept prefixes of names."""
    full = next(
        (name for name in sorted(CHOSEN_HERE | SECRET | {FILE_OF_FLAGS}) if name.startswith(flag)), ""
    )
    label = flag if flag == full else f"{flag}, short for {full},"
    if full in CHOSEN_HERE:
        raise UserError(
            f"--model-arg flags: {label} is chosen by Sightline, which starts {kind.title} for itself alone",
            expected="flags without it, or a server of your own: --model http://HOST:PORT/v1#MODEL",
        )
    if full in SECRET:
        raise UserError(
            f"--model-arg flags: {label} would be written to the results",
            expected="HF_TOKEN in the environment to fetch weights; the server gets a random key",
        )
    if full == FILE_OF_FLAGS:
        raise UserError(
            f"--model-arg flags: {label} names a file of flags, which nobody would see in results",
            expected="the flags themselves",
        )


def _refuse_secret_words(words: Sequence[str], argument: str) -> None:
    """Refuse words that hold a secret, such as `env HF_TOKEN=... vllm`."""
    for word in words:
        name, sign, _ = word.partition("=")
        if (sign and is_secret_name(name)) or is_key_shaped(word):
            raise UserError(
                f"--model-arg {argument} contains a secret, which would be written to the results",
                found=name if sign and not is_key_shaped(name) else None,
                expected="the variable in the environment of this command, which the server inherits",
            )


def _program(kind: ServerKind, executable: str) -> list[str]:
    words = _words(executable, "executable") or [kind.find() or ""]
    _refuse_secret_words(words, "executable")
    program = shutil.which(os.path.expanduser(words[0])) if words[0] else None
    if program is None and executable:
        raise UserError(
            f"--model-arg executable: there is no program {words[0]}",
            expected=f"{kind.program}, of whichever environment",
        )
    if program is None:
        raise UserError(
            f"{kind.title} is not installed here",
            expected=f"pip install {kind.name}, or --model-arg executable=PATH of {kind.program}",
        )
    return [program, *words[1:]]
