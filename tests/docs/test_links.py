"""Links in the documentation resolve, and its command lines use commands and options that exist."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from sightline.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "perf/README.md")),
        *(ROOT / "docs").glob("*.md"),
        ROOT / "src/sightline/models/mini/README.md",
    )
)
OTHER_OPTIONS = {
    "--enable-prompt-tokens-details",
    "--enable-cache-report",
    "--tensor-parallel-size",
    "--gpu-memory-utilization",
    "--quantization",
    "--config",
    "--cache",
    "--epochs",
    "--gen",  # the regular expression stops at the underscore of --gen_kwargs, --log_samples and the like
    "--log",
    "--reuse",
    "--tasks",
    "--use",
    "--temperature",
    "--short",
    "--sizes",
    "--package",
    "--gpu",
    "--again",
    "--only",
    "--cases",
    "--tree",
    "--walk",
    "--write-only",
    "--skip",
}
"""Options of vLLM, other evaluation tools and scripts in perf/, and an example of docs/extending.md."""


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def without_fences(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_fences(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def command_lines(page: str) -> list[list[str]]:
    """The words after `sightline` of every command line in the shell blocks of a page."""
    lines = []
    for block in re.findall(r"^```(?:bash|sh)\n(.*?)^```$", text_of(page), re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            for command in re.findall(r"(?:^|&& |\$\()(?:\S*/)?sightline (.*)", line):
                words = shlex.shlex(re.sub(r"\s#.*", "", command), posix=True, punctuation_chars="();<>|&")
                words.whitespace_split, words.commenters = True, ""
                kept = []
                for word in words:
                    if word[0] in "();<>|&":
                        break
                    kept.append(word)
                lines.append(kept)
    return lines


def inline_commands(page: str) -> list[list[str]]:
    """The words of the commands with options that a page names between backticks."""
    prose = without_fences(text_of(page)).replace("\n", " ")
    commands = []
    for code in re.findall(r"`([^`]+)`", prose):
        words = code.removeprefix("sightline ").split()
        if words and words[0] in COMMANDS and any(word.startswith("--") for word in words):
            commands.append(words)
    return commands


@cache
def options_of(command: str, kind: str = "") -> set[str]:
    """The options of a command, or of all its subcommands together if no subcommand is named."""
    _, innermost = build_parser([command, kind] if kind else [command])
    return set(innermost._option_string_actions)


@cache
def all_options() -> set[str]:
    found = set(build_parser([])[0]._option_string_actions)
    for command in COMMANDS:
        found |= options_of(command)
        for action in build_parser([command])[1]._actions:
            if isinstance(action.choices, dict):
                for kind in action.choices:
                    found |= options_of(command, kind)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_and_anchor_resolves(page: str) -> None:
    folder = (ROOT / page).parent
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_fences(text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = folder / file if file else ROOT / page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_of_a_shell_block_can_be_parsed(page: str) -> None:
    for words in command_lines(page):
        parser, _ = build_parser(words)
        assert callable(parser.parse_args(words).execute), words


@pytest.mark.parametrize("page", PAGES)
def test_every_option_that_a_page_names_exists(page: str) -> None:
    for words in inline_commands(page):
        kind = words[1] if len(words) > 1 and re.fullmatch("[a-z]+", words[1]) else ""
        known = options_of(
            words[0], kind if words[0] in ("build", "data", "adapter", "runs", "store", "annotate") else ""
        )
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert options - OTHER_OPTIONS <= known, words
    prose = without_fences(text_of(page))
    named = set(re.findall(r"`(--[a-z][a-z-]*)", prose)) - OTHER_OPTIONS
    assert named <= all_options()
