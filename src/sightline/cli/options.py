"""The options of commands: argparse arguments from declarations, and options that several commands share."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, Union, get_args, get_origin

from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.spec import DeclaredOption, OptionGroup, RunOptions, declared_options
from sightline.text import print_note

if TYPE_CHECKING:
    from sightline.annotation.state import State
    from sightline.annotation.store import AnnotationStore, ProjectRow
    from sightline.engine.client import ClientOptions
    from sightline.reporting.charts import ChartRequest
    from sightline.store.store import Store


REQUEST_LIMITS = (
    "concurrency",
    "max_requests",
    "max_cost",
    "retry_errors",
    "gen_any",
    "fingerprint",
    "accept_changed",
    "config",
    "on",
)
"""The declared options of `run` that builders take too; each is a field of `ClientOptions`."""

FORMATS = ("table", "markdown", "csv", "latex", "html", "json")


class GivenOnce(argparse.Action):
    """Store one value, and refuse a second one: neither the first nor the last wins silently.

    It replaces the actions `store` and `store_const` of every command.
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None
    ) -> None:
        if option is not None:
            given = vars(namespace).setdefault("given", {})
            before = given.setdefault(self.dest, option)
            if before != option:
                parser.error(f"{before} and {option} set the same value: expected one of them")
            if option in given:
                parser.error(f"{option} is given twice, and it takes one value")
            given[option] = option
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UserError and accepts no abbreviated options and no second value.

    `usual` names the options that `--help` shows, if it does not show all.
    """

    def __init__(self, *words: Any, **properties: Any) -> None:
        super().__init__(*words, **properties)
        self.usual: Collection[str] = ()
        for action in (None, "store"):
            self.register("action", action, GivenOnce)
        self.register("action", "store_const", partial(GivenOnce, nargs=0))

    def format_help(self) -> str:
        """The help; with `usual`, the other options are counted only."""
        shown = (*self.usual, "help", "help_all")
        hidden = [one for one in self._actions if self.usual and one.option_strings and one.dest not in shown]
        texts, epilog = [one.help for one in hidden], self.epilog
        for one in hidden:
            one.help = argparse.SUPPRESS
        if hidden:
            self.epilog = f"{len(hidden)} more options: {self.prog} --help-all\n\n{epilog or ''}"
        try:
            return super().format_help()
        finally:
            self.epilog = epilog
            for one, text in zip(hidden, texts, strict=True):
                one.help = text

    def error(self, message: str) -> NoReturn:
        """Raise UserError for a wrong call (exit status 2)."""
        raise UserError(f"{message.replace('argument ', '')}; see `{self.prog} --help`")


class ArgumentGroup(Protocol):
    """A parser or a group of its options."""

    def add_argument(self, *flags: str, **properties: Any) -> Any:
        """Add one argument, as argparse does."""


def add_evaluation(parser: Parser, options: type, *, several: bool = False) -> dict[str, ArgumentGroup]:
    """Add what run, score and sweep take: the task, the declared options, and how results are printed.

    With `several`, the command line may name several tasks and models; their options are lists.
    """
    parser.add_argument(
        "task",
        metavar="TASK",
        nargs="+" if several else None,
        help=f"BENCHMARK or BENCHMARK:SETTING, as codis or iibench:cot{'; may repeat' if several else ''}",
    )
    declared = sorted(declared_options(options), key=lambda option: not option.required)
    titles = [
        title for title in get_args(OptionGroup) if any(one.argument.group == title for one in declared)
    ]
    groups: dict[str, ArgumentGroup] = {title: parser.add_argument_group(title) for title in titles}
    for option in declared:
        changed: dict[str, Any] = {}
        if several and option.name == "model":
            changed = {"action": "append", "default": [], "help": f"{option.argument.help}; may repeat"}
        _add_declared(groups[option.argument.group], option, **changed)
    add_quiet(groups["results"])
    add_printing(groups["results"], brief=True)
    add_plugins(groups["results"])
    parser.usual = USUAL
    parser.add_argument("--help-all", action=_HelpAll, help="show the help with all options, and exit")
    return groups


USUAL = (
    *("model", "gen", "data", "set", "limit", "judge", "concurrency", "max_cost", "dry_run", "columns"),
    *("store", "out", "name", "against", "by", "all", "format", "explain"),
)
"""The options that the help of run, score and sweep shows first."""


class _HelpAll(argparse.Action):
    """Print the help with all options, and exit."""

    def __init__(self, option_strings: Sequence[str], dest: str, **properties: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **properties)

    def __call__(self, parser: Any, *_: Any) -> None:
        parser.usual = ()
        parser.print_help()
        parser.exit()


def _add_declared(group: ArgumentGroup, option: DeclaredOption, **changed: Any) -> None:
    """Add one declared option; `changed` are properties of argparse that replace the declared ones."""
    argument, default = option.argument, option.default
    written = ", ".join(default) if isinstance(default, tuple) else default
    has_text = isinstance(written, int | float | str) and not isinstance(written, bool) and written != ""
    suffix = f" (default: {written})" if has_text else ""
    properties = {"help": argument.help + suffix, "default": default, **_argument_properties(option.type)}
    if argument.metavar is not None:
        properties["metavar"] = argument.metavar
    if option.required:
        properties["required"] = True
    group.add_argument(option.flag, **{**properties, **changed})


def _argument_properties(declared: Any) -> dict[str, Any]:
    """The properties with which argparse parses a value of a declared type."""
    members = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    first, *others = [member for member in members if member is not type(None)]
    if first is bool:
        return {"action": "store_true"}
    if get_origin(first) is Mapping or first == Sequence[str]:
        return {"action": "append", "default": []}
    if get_origin(first) is Literal and not others:
        return {"choices": get_args(first)}
    return {"type": first} if first in (int, float) else {}


def add_options(
    group: ArgumentGroup, names: Collection[str], *, options: type = RunOptions, **changed: Any
) -> None:
    """Add some of the declared options of `run`, or of another command, to a command."""
    for option in declared_options(options):
        if option.name in names:
            _add_declared(group, option, **changed)


def add_printing(group: ArgumentGroup, *, by: bool = True, brief: bool = False) -> None:
    """Add --format and --json; --by if tables can be broken down, --all if less is printed by default."""
    if by:
        group.add_argument("--by", metavar="LABEL", help="add a row for each value of this label")
    if brief:
        group.add_argument(
            "--all",
            action="store_true",
            help="print all metrics and notes, and what they mean (other formats than a table always do)",
        )
    group.add_argument(
        "--format", choices=FORMATS, default="table", help="format of the output (default: table)"
    )
    group.add_argument(
        "--json", action="store_const", dest="format", const="json", help="the same as --format json"
    )


def add_quiet(group: ArgumentGroup) -> None:
    group.add_argument("--quiet", action="store_true", help="display no progress")


def add_dry_run(group: ArgumentGroup) -> None:
    group.add_argument("--dry-run", action="store_true", help="estimate the requests, and send none")


def add_plugins(group: ArgumentGroup) -> None:
    """Add --plugin; `main` loads the files before it executes the command."""
    group.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="Python file that adds benchmarks, models, perturbations or trackers; may repeat",
    )


def add_store(group: ArgumentGroup) -> None:
    add_options(group, ["store"])
    add_plugins(group)


def add_model(group: ArgumentGroup, *, required: bool = True) -> None:
    """Add the options of a model that a builder asks."""
    add_options(group, ["model"], required=required)
    add_options(group, ["gen", "model_arg", "model_id"])


def add_request_limits(group: ArgumentGroup) -> None:
    """Add the options that limit and repeat requests."""
    add_options(group, REQUEST_LIMITS)


def options_of(namespace: argparse.Namespace, options: type, omitted: Collection[str] = ()) -> dict[str, Any]:
    """Collect the declared options of a parsed command line."""
    given = dict(vars(namespace))
    found = {}
    for option in declared_options(options):
        value = None if option.name in omitted else given[option.name]
        if isinstance(option.default, Mapping) and value is not None:
            value = pairs(value, option.flag)
        if value not in (None, []):
            found[option.name] = value
    return found


def client_options(options: argparse.Namespace, model: str, **more: Any) -> ClientOptions:
    """Convert the options of `add_request_limits` and `add_store` for the client of a builder."""
    from sightline.engine.client import ClientOptions

    return ClientOptions(
        model=model,
        store=options.store,
        **{name: getattr(options, name) for name in REQUEST_LIMITS},
        **more,
    )


def model_client_options(options: argparse.Namespace, fresh: str) -> ClientOptions:
    """Convert the options of `add_model` too."""
    return client_options(
        options,
        options.model,
        gen=pairs(options.gen, "--gen"),
        model_arg=pairs(options.model_arg, "--model-arg"),
        model_id=options.model_id,
        fresh=fresh,
        keyless=options.dry_run,
    )


def pairs(words: Iterable[str], option: str, read: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Read KEY=VALUE words; a value is JSON, `on` or `off`, otherwise text, or what `read` makes of it.

    >>> pairs(["temperature=0", "stop=null", "cot=off", "name=a b"], "--gen")
    {'temperature': 0, 'stop': None, 'cot': False, 'name': 'a b'}
    """
    found: dict[str, Any] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise UserError(f"{option} {word}: '=' or the key is missing", expected=f"{option} KEY=VALUE")
        found[key] = (read or read_value)(value)
    return found


def columns(words: Iterable[str]) -> list[str]:
    """Split the values of --columns at their commas; each name of a column stays text.

    >>> columns(["id=question_id,response=a, b"])
    ['id="question_id"', 'response="a, b"']
    """
    parts = [part.partition("=") for word in words for part in re.split(r",(?=\w+=)", word)]
    return [f"{name}{sign}{json.dumps(column) if column else ''}" for name, sign, column in parts]


def read_value(text: str) -> Any:
    """A value as a user writes it: JSON, `on` or `off`, otherwise text."""
    if text.lower() in ("on", "true", "off", "false"):
        return text.lower() in ("on", "true")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


# -- Arguments that mean a run: its number or name in the store, or its results folder


def add_run(group: ArgumentGroup) -> None:
    group.add_argument("run", metavar="RUN", help="number or name of the run")


@contextmanager
def opened_run(word: str, store: str) -> Iterator[tuple[Store, int]]:
    from sightline.evaluation.runs import find_run, read_stored_run
    from sightline.store.store import Store

    opened = Store.open(store, create=False)
    try:
        yield opened, read_stored_run(opened, find_run(opened, word)).number
    finally:
        opened.close()


def note_shadowed_runs(folders: Iterable[str], store: str) -> None:
    """Say of each results folder that is used although a run of the store has the same name."""
    from sightline.evaluation.folder import holds_results
    from sightline.formats.jsonl import is_run_name

    alike = [word for word in folders if is_run_name(word) and holds_results(Path(word))]
    if not alike or not ("://" in store or Path(store).exists()):
        return
    from sightline.store.store import Store

    try:
        with closing(Store.open(store, create=False)) as opened:
            names = opened.labels.names()
    except (UserError, EnvironmentFailedError) as error:  # the folders need no store
        print_note(f"results folder {', '.join(alike)}; runs of the same name are not known: {error}")
        return
    for word in alike:
        if word in names:
            print_note(
                f"{word}: the results folder is used, not run {names[word]} of the same name"
                f" (its number names the run)"
            )


def add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="check the rules of a TOML file (docs/comparing.md); exit status 5 if one is not met, 1 if one"
        " is not decided",
    )
    parser.add_argument(
        "--policy-out",
        type=_policy_out,
        action="append",
        default=[],
        metavar="FILE",
        help="with --policy: write the rules and their states into FILE too, as JUnit XML (.xml) or Markdown"
        " (.md); may repeat",
    )


def check_policy_out(options: argparse.Namespace) -> None:
    if options.policy_out and options.policy is None:
        raise UserError("--policy-out needs --policy", expected="--policy FILE too")


def _policy_out(word: str) -> Path:
    file = Path(word)
    if file.suffix.lower() not in (".xml", ".md") or not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{word!r} is no name ending in .xml or .md in an existing folder")
    return file


# -- The options of commands that draw their table: --plot and what belongs to it


def add_plot(
    parser: argparse.ArgumentParser, kinds: Sequence[str] = (), *, drawn: str, metrics: bool = False
) -> None:
    """Add --plot and its width; its kind and metrics only where the table leaves a choice."""
    group = parser.add_argument_group("plot")
    add = group.add_argument
    add(
        "--plot",
        metavar="FILE",
        help=f"plot {drawn} into FILE, which ends in .svg, .pdf or .png, besides printing it; needs"
        " pip install 'sightline[plot]'",
    )
    if kinds:
        add(
            "--plot-kind",
            choices=kinds,
            help="another kind of plot than the usual one of the table (docs/plots.md)",
        )
    if metrics:
        add(
            "--plot-metric",
            action="append",
            default=[],
            metavar="NAME",
            help="metric to plot; may repeat (default: the leading metrics of the benchmark)",
        )
    add(
        "--plot-columns",
        type=int,
        choices=(1, 2),
        default=2,
        help="width of the plot: one (85 mm) or two (175 mm) columns of a paper (default: 2)",
    )


def chart_request(options: argparse.Namespace) -> ChartRequest | None:
    """Read the options of --plot, and check the file before any work; None without --plot."""
    kind, metrics = getattr(options, "plot_kind", None), tuple(getattr(options, "plot_metric", ()))
    if options.plot is None:
        if kind or metrics:
            raise UserError("--plot-kind and --plot-metric need --plot", expected="--plot FILE.svg")
        return None
    from sightline.reporting.charts import ChartRequest, check_chart_file

    check_chart_file(Path(options.plot))
    return ChartRequest(Path(options.plot), kind, metrics, options.plot_columns)


# -- Arguments and the store of the subcommands of `annotate`


def add_project(group: ArgumentGroup) -> None:
    group.add_argument("project", metavar="PROJECT", help="name or number of the project")
    add_store(group)


@contextmanager
def opened_project(word: str, url: str) -> Iterator[tuple[AnnotationStore, ProjectRow]]:
    from sightline.annotation.store import AnnotationStore
    from sightline.store.store import Store

    store = Store.open(url, create=False)
    try:
        annotations = AnnotationStore(store, time.time)
        yield annotations, annotations.project(word)
    finally:
        store.close()


def state_of(store: AnnotationStore, row: ProjectRow) -> State:
    from sightline.annotation.state import State

    return State(row.project, store.items(row.number)).advance(store.entries(row.number))
