"""The options of commands: argparse arguments from declarations, and options that several commands share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union, get_args, get_origin

from sightline.errors import UserError
from sightline.plan.spec import DeclaredOption, OptionGroup, RunOptions, declared_options

if TYPE_CHECKING:
    from sightline.engine.client import ClientOptions

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


class ArgumentGroup(Protocol):
    """A parser or a group of its options."""

    def add_argument(self, *flags: str, **properties: Any) -> Any:
        """Add one argument, as argparse does."""


def add_evaluation(parser: argparse.ArgumentParser, options: type) -> dict[str, ArgumentGroup]:
    """Add what run, score and sweep take: the task, the declared options, and how results are printed."""
    parser.add_argument(
        "task", metavar="TASK", help="BENCHMARK or BENCHMARK:SETTING, as codis or iibench:cot"
    )
    declared = sorted(declared_options(options), key=lambda option: not option.required)
    titles = [
        title for title in get_args(OptionGroup) if any(one.argument.group == title for one in declared)
    ]
    groups: dict[str, ArgumentGroup] = {title: parser.add_argument_group(title) for title in titles}
    for option in declared:
        _add_declared(groups[option.argument.group], option)
    add_quiet(groups["results"])
    add_printing(groups["results"])
    add_plugins(groups["results"])
    return groups


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


def add_options(group: ArgumentGroup, names: Collection[str], **changed: Any) -> None:
    """Add some of the declared options of `run` to another command."""
    for option in declared_options(RunOptions):
        if option.name in names:
            _add_declared(group, option, **changed)


def add_printing(group: ArgumentGroup, *, by: bool = True) -> None:
    """Add --format and --json, and --by if the command can break its tables down."""
    if by:
        group.add_argument("--by", metavar="LABEL", help="add a row for each value of this label")
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
        help="Python file that adds benchmarks, models or perturbations; may repeat",
    )


def add_store(group: ArgumentGroup) -> None:
    """Add --store and --plugin."""
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


def pairs(words: Iterable[str], option: str) -> dict[str, Any]:
    """Read KEY=VALUE words; a value is JSON, `on` or `off`, otherwise text.

    >>> pairs(["temperature=0", "stop=null", "cot=off", "name=a b"], "--gen")
    {'temperature': 0, 'stop': None, 'cot': False, 'name': 'a b'}
    """
    found: dict[str, Any] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise UserError(f"{option} {word}: '=' or the key is missing", expected=f"{option} KEY=VALUE")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    if text.lower() in ("on", "true", "off", "false"):
        return text.lower() in ("on", "true")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
