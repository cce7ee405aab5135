"""Builds the documentation site: python website/build.py --out site

The pages of docs/, and a reference made of what the code declares: commands, benchmarks, formats, Python API.
A link that leads nowhere is an error. The build needs the extra `docs` and no network.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType
from typing import Any

from sphinx.cmd.build import build_main

from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.cli.export import summaries
from sightline.cli.list import describe
from sightline.cli.main import COMMANDS, GROUPS, MODULES, build_parser, sentence
from sightline.evaluation.spec import RunOptions, ScoreOptions, SweepOptions, declared_options
from sightline.formats.other_tools import LAYOUTS
from sightline.reporting.notes import option_text, options_text

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder of the site, made anew"
    )
    parser.add_argument(
        "--source", metavar="URL", help="where the files of the repository are shown, such as .../blob/main"
    )
    options = parser.parse_args()
    if options.out.exists() and not (options.out / "objects.inv").exists():
        parser.error(
            f"{options.out} exists, and is no site: expected a new folder, or one that this command made"
        )
    shutil.rmtree(options.out, ignore_errors=True)
    with TemporaryDirectory() as folder:
        sources = Path(folder)
        for name, text in {**pages(options.source), **reference()}.items():
            file = sources / f"{name}.md"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        shutil.copytree(DOCS / "images", sources / "images")
        words = ["-q", "-W", "--keep-going", "-E", "-d", f"{folder}/.cache", "-c", str(ROOT / "website")]
        return int(build_main([*words, "-b", "html", folder, str(options.out)]))


# -- The pages of docs/, and their order in the navigation


def pages(source: str | None) -> dict[str, str]:
    """The pages by name, with the links as the site has them; README is the front page."""
    found = {file.stem: _linked(file.read_text(encoding="utf-8"), source) for file in DOCS.glob("*.md")}
    front = found.pop("README")
    return {**found, "index": f"{front}\n{_navigation(front)}"}


def _linked(text: str, source: str | None) -> str:
    """A page whose links to files outside docs/ lead to the repository, or are texts where it is unknown."""
    outside = f"[\\1]({source}/\\2)" if source else "\\1"
    text = re.sub(r"\[([^]]+)\]\(\.\./([^)]+)\)", outside, text)
    return text.replace("](README.md", "](index.md")


def _navigation(front: str) -> str:
    """The contents of the site: the sections of the front page, and the generated reference in its own."""
    trees = ""
    for title, body in re.findall(r"^\*\*([^*\n]+)\*\*$(.*?)(?=^\*\*|\Z)", front, re.MULTILINE | re.DOTALL):
        names = re.findall(r"\]\(([\w-]+)\.md\)", body)
        if title == "Reference":
            names = ["commands/index", "metrics/index", "formats", "api/index", *names]
        trees += _contents(names, caption=title)
    return trees


def _contents(names: list[str], caption: str = "") -> str:
    option = f":caption: {caption}\n" if caption else ""
    return f"```{{toctree}}\n:hidden:\n{option}\n" + "\n".join(names) + "\n```\n\n"


# -- The reference, from declarations


def reference() -> dict[str, str]:
    return {**commands(), **metrics(), "formats": formats(), **api()}


def commands() -> dict[str, str]:
    """A page for each command, with the options of its parsers."""
    found = {f"commands/{name}": _command(name) for name in COMMANDS}
    index = "# Commands\n\nEvery option of every command, as the commands themselves declare them.\n"
    for title, members in GROUPS.items():
        index += f"\n## {title.capitalize()}\n\n| command | what it does |\n| --- | --- |\n"
        index += "".join(f"| [`{name}`]({name}.md) | {_escaped(text)} |\n" for name, text in members.items())
    return {**found, "commands/index": f"{index}\n{_contents(list(COMMANDS))}"}


def _command(name: str) -> str:
    module = importlib.import_module(f"sightline.cli.{MODULES.get(name, name.replace('-', '_'))}")
    text = f"# `sightline {name}`\n\n{_escaped(sentence(COMMANDS[name]))}\n\n"
    if not hasattr(module, "SUBCOMMANDS"):
        return text + _options(build_parser([name])[1])
    text += f"```none\n{module.EXAMPLE.strip()}\n```\n"
    for subcommand, (_, summary) in module.SUBCOMMANDS.items():
        text += f"\n## `{name} {subcommand}`\n\n{_escaped(sentence(summary))}\n\n"
        text += _options(build_parser([name, subcommand])[1])
    return text


def _options(parser: argparse.ArgumentParser) -> str:
    """The arguments of a parser in its groups, then its examples."""
    formatter: Any = parser._get_formatter()
    text = f"```{{program}} {parser.prog}\n```\n"
    for group in parser._action_groups:
        shown = [one for one in group._group_actions if one.help != argparse.SUPPRESS and one.dest != "help"]
        if shown and group.title and group.title not in ("positional arguments", "options"):
            text += f"\n**{group.title.capitalize()}**\n\n"
        for one in shown:
            directive = "option" if one.option_strings else "describe"
            text += f"```{{{directive}}} {formatter._format_action_invocation(one)}\n"
            text += f"{_escaped(formatter._expand_help(one))}\n```\n"
    return text + (f"\n```none\n{parser.epilog.strip()}\n```\n" if parser.epilog else "")


def metrics() -> dict[str, str]:
    """A page for each benchmark: what `sightline list BENCHMARK` prints."""
    found = {name: describe(name) for name in benchmark_names()}
    index = "# Settings, options and metrics\n\n| benchmark | title | paper |\n| --- | --- | --- |\n"
    for name, one in found.items():
        index += f"| [`{name}`]({name}.md) | {_escaped(one['title'])} | {_escaped(one['citation'])} |\n"
    made = {f"metrics/{name}": "\n".join(_benchmark(one)) for name, one in found.items()}
    return {**made, "metrics/index": f"{index}\n{_contents(list(found))}"}


def _benchmark(one: dict[str, Any]) -> Iterator[str]:
    yield f"# `{one['name']}`\n\n{_escaped(one['title'])}. {_escaped(one['citation'])}.\n"
    yield f"Splits: {', '.join(one['splits'])}. Judged by: {', '.join(one['judged_by'])}."
    yield f"More about it: [](../benchmarks.md); on a terminal: `sightline list {one['name']}`.\n"
    yield "## Settings\n\n| task | setting | reproduces |\n| --- | --- | --- |"
    for setting in one["settings"]:
        task = f"{one['name']}:{setting['name']}"
        yield f"| `{task}` | {_escaped(setting['summary'])} | {_escaped(setting['reproduces'])} |"
    first = one["settings"][0]
    yield f"\nSampling (`--gen`): `{options_text(first['sampling'])}` ({_escaped(first['sampling_source'])})."
    for name, preset in one["presets"].items():
        yield f"\n`--preset {name}`: `{options_text(preset)}`"
    yield "\n## Options (`--set`) with their defaults\n"
    for key, option in one["options"].items():
        meaning = _escaped(f"{option['summary']} ({option['allowed']})")
        yield f"```{{describe}} {key}={option_text(option['default'])}\n{meaning}\n```"
    yield "\n## Metrics\n\n| metric | meaning | range | source |\n| --- | --- | --- | --- |"
    for name, metric in one["metrics"].items():
        texts = (metric["meaning"], metric["direction"], metric["source"])
        yield f"| `{name}` | {' | '.join(map(_escaped, texts))} |"
    yield f"\n## Published rows (`--against`)\n\n{_escaped(', '.join(one['published_rows'])) or 'None.'}\n"


def formats() -> str:
    """The formats that `export` writes, and the layouts of answers that `score` and `import` recognise."""
    text = "# Formats of answers\n\n## Written by `sightline export`\n\n| `--as` | content |\n| --- | --- |\n"
    text += "".join(f"| `{name}` | {_escaped(summary)} |\n" for name, summary in summaries().items())
    text += "\n## Recognised by `sightline score` and `sightline import`\n\n"
    text += "| answers to | layout |\n| --- | --- |\n"
    for name in benchmark_names():
        for layout in benchmark_class(name).answer_files.layouts:
            text += f"| `{name}` | {_escaped(layout.fields)} |\n"
    text += "".join(f"| any benchmark | {_escaped(layout.fields)} |\n" for layout in LAYOUTS)
    return f"{text}| any benchmark | logs of inspect_ai |\n\n[](results.md) describes our own files.\n"


FUNCTIONS = "run arun score sweep report compare judge_report export"
API = {
    "functions": (
        "Functions and their results",
        "`import sightline` has these functions; [](../python.md) shows them in use.",
        {
            "sightline.api": f"{FUNCTIONS} Evaluation Sweep Tables UserError",
            "sightline.errors": "EnvironmentFailedError",
        },
    ),
    "records": (
        "Records",
        "What samples, requests, answers, verdicts, groups, metrics and results hold. "
        "[](../results.md) describes the files that are written of them.",
        {"sightline.types": ""},
    ),
    "benchmarks": (
        "Interface of benchmarks, metrics and judges",
        "[](../adding-a-benchmark.md) and [](../extending.md) show them in use.",
        {
            "sightline.benchmarks.base": "Benchmark BenchmarkOption Setting Release UserRecords "
            "ByLabel PairCounts Shares Against Together Differences ByJudge "
            "ByOwnLabels",
            "sightline.scoring.scorer": "Reading RuleScorer ModelScorer VectorScorer",
            "sightline.formats.prediction": "AnswerFiles Layout PredictionFile Prediction",
        },
    ),
    "models": (
        "Interface of models",
        "[](../models.md) shows it in use.",
        {"sightline.models.base": "Model Capabilities ServerReport"},
    ),
    "perturbations": (
        "Interface of perturbations",
        "[](../building.md) shows it in use.",
        {"sightline.builders.perturb": "Perturbation TextPerturbation Perturbed"},
    ),
    "trackers": (
        "Interface of trackers",
        "[](../tracking.md) says what a tracker gets, [](../extending.md) shows one.",
        {"sightline.interop.tracking": "Tracker TrackedRun"},
    ),
    "formats": (
        "Interface of export formats",
        "[](../extending.md) shows it in use.",
        {"sightline.formats.jsonl": "ExportFormat AnswersToExport"},
    ),
}
"""Page -> its title, its first line, and the names of each module that it documents ('': all public)."""


def api() -> dict[str, str]:
    """The Python API and the interfaces of plugins, from their docstrings."""
    found = {f"api/{page}": _documented(*parts) for page, parts in API.items()}
    found["api/functions"] += _evaluation_options()
    index = "# Python API and plugin interfaces\n\n"
    index += "".join(f"- [{title}]({page}.md)\n" for page, (title, *_) in API.items())
    return {**found, "api/index": f"{index}\n{_contents(list(API))}"}


def _documented(title: str, purpose: str, modules: Mapping[str, str]) -> str:
    text = f"# {title}\n\n{purpose}\n\n```{{eval-rst}}\n"
    for module, names in modules.items():
        found = importlib.import_module(module)
        for name in names.split() or _public(found):
            is_class = isinstance(getattr(found, name), type)
            text += f".. auto{'class' if is_class else 'function'}:: {module}.{name}\n"
            text += "   :members:\n" * is_class + "\n"
    return f"{text}```\n"


def _public(module: ModuleType) -> list[str]:
    """The classes and functions that a module defines, in its order."""
    return [
        name
        for name, one in vars(module).items()
        if isinstance(one, type | FunctionType) and one.__module__ == module.__name__ and name[0] != "_"
    ]


def _evaluation_options() -> str:
    """The options that `run`, `score` and `sweep` take as keyword arguments."""
    classes = {"run": RunOptions, "score": ScoreOptions, "sweep": SweepOptions}
    taken = {name: {one.name: one for one in declared_options(one)} for name, one in classes.items()}
    text = "\n## Options of run, score and sweep\n\n| option | of | meaning |\n| --- | --- | --- |\n"
    for name, option in {**taken["run"], **taken["sweep"], **taken["score"]}.items():
        takers = ", ".join(command for command, options in taken.items() if name in options)
        text += f"| `{name}` | {takers} | {_escaped(option.argument.help)} |\n"
    return text


def _escaped(text: str) -> str:
    """A plain text as Markdown: code between backticks stays, options become code, pages links."""
    parts = re.split(r"(`[^`]+`)", text)
    plain = [re.sub(r"([\\*_<>\[\]#|$~])", r"\\\1", part) for part in parts[::2]]
    plain = [re.sub(r"(?<![\w-])--[a-z][\w-]*", r"`\g<0>`", part) for part in plain]
    plain = [re.sub(r"docs/([\w-]+)\.md", r"[](/\1.md)", part) for part in plain]
    parts[::2] = plain
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
