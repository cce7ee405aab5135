"""The options of run, score and sweep, each declared once.

A field of a TypedDict below states what a user may write, and how the command line presents it; the field
of `Spec` with the same name states the stored type and the default. The command line, the Python API's typed
signatures and the arguments of inspect tasks derive from these two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Struct, field

from sightline.errors import UserError, unknown_name
from sightline.types import Augmentation, Fingerprint

Decide = Literal["first", "majority"]
OptionGroup = Literal["model", "data", "judging", "requests", "images as text", "results"]
StrPath = str | os.PathLike[str]
Names = str | Sequence[str]
Pairs = Mapping[str, Any]

_PATHS = {"captions", "config", "data", "out", "store"}
"""Options that are paths: those may have any bytes."""


class Argument(Struct, frozen=True):
    """How `--help` presents an option, and whether results record it.

    Attributes:
        help: The text of `--help`.
        group: The group of options in `--help`.
        metavar: The placeholder of the value.
        recorded: Whether metrics.json records the value, because it affects the numbers.
    """

    help: str
    group: OptionGroup
    metavar: str | None = None
    recorded: bool = False


class TaskOptions(TypedDict, total=False):
    """Options of run, score, sweep and inspect tasks."""

    data: Annotated[
        StrPath | None,
        Argument("data folder in the released format (default: SIGHTLINE_DATA)", "data", "DIR"),
    ]
    split: Annotated[str | None, Argument("split of the data (default: the benchmark's first)", "data", "S")]
    set: Annotated[
        Pairs,
        Argument("option of the benchmark, see `sightline list BENCHMARK`; may repeat", "data", "KEY=VALUE"),
    ]
    seed: Annotated[int, Argument("seed of samples and shuffles", "data", "N", recorded=True)]
    judge: Annotated[
        Names, Argument("rules, a model, human:FILE, human:PROJECT; may repeat", "judging", "SPEC")
    ]
    store: Annotated[StrPath, Argument("the store: a file, or a database URL", "results", "URL")]


class EvaluationOptions(TaskOptions, total=False):
    """Options of run, score and sweep."""

    limit: Annotated[
        int | None, Argument("use only the first N groups (samples)", "data", "N", recorded=True)
    ]
    shuffle: Annotated[
        bool, Argument("with --limit: use N random groups, chosen by --seed", "data", recorded=True)
    ]
    decide: Annotated[
        Decide,
        Argument(
            "with several judges: the first that decides, or the majority, gives the verdict",
            "judging",
            recorded=True,
        ),
    ]
    judge_gen: Annotated[Pairs, Argument("sampling option of the judge; may repeat", "judging", "KEY=VALUE")]
    judge_repeats: Annotated[
        int,
        Argument(
            "ask every judge model N times about each case, as separate draws; their majority counts",
            "judging",
            "N",
            recorded=True,
        ),
    ]
    gen_any: Annotated[
        bool,
        Argument("send sampling options with unknown names too, to model and judges", "requests"),
    ]
    concurrency: Annotated[int, Argument("maximum number of requests in flight at one host", "requests", "N")]
    max_requests: Annotated[
        int | None,
        Argument("stop this run after N requests; every attempt counts (exit status 4)", "requests", "N"),
    ]
    max_cost: Annotated[
        float | None,
        Argument("stop at cost X, by the prices in sightline.toml (exit status 4)", "requests", "X"),
    ]
    retry_errors: Annotated[bool, Argument("retry requests that failed permanently", "requests")]
    fingerprint: Annotated[
        Fingerprint,
        Argument(
            "check that endpoints still have the models that gave their cached answers (docs/models.md)",
            "requests",
            recorded=True,
        ),
    ]
    accept_changed: Annotated[
        bool,
        Argument("use cached answers although their endpoint changed", "requests", recorded=True),
    ]
    config: Annotated[
        StrPath | None, Argument("configuration file (default: ./sightline.toml)", "requests", "FILE")
    ]
    out: Annotated[
        StrPath | None,
        Argument("write metrics.json, answers.jsonl, verdicts.jsonl and report.md to DIR", "results", "DIR"),
    ]
    force: Annotated[bool, Argument("replace the results of another run in the folder of --out", "results")]
    against: Annotated[
        Names, Argument("compare with this published row, such as GPT-4V; may repeat", "results", "ROW")
    ]
    fail_if: Annotated[
        Names,
        Argument(
            "exit with status 5 if this holds, as 'acc_p<30', or has no value; may repeat",
            "results",
            "CONDITION",
        ),
    ]


class RequestOptions(EvaluationOptions, total=False):
    """Options of run and sweep, which send requests to a model."""

    gen: Annotated[
        Pairs,
        Argument("sampling option of the model (null: do not send it); may repeat", "model", "KEY=VALUE"),
    ]
    preset: Annotated[
        str | None, Argument("named sampling options of the benchmark, as `released`", "model", "NAME")
    ]
    model_arg: Annotated[
        Pairs,
        Argument(
            "argument of the model's back end: timeout, max_side, dtype, device, ... (docs/models.md);"
            " may repeat",
            "model",
            "KEY=VALUE",
            recorded=True,
        ),
    ]
    model_id: Annotated[
        str | None,
        Argument(
            "identity of the model in the cache, instead of server and model name",
            "model",
            "NAME",
            recorded=True,
        ),
    ]
    on: Annotated[
        str | None,
        Argument(
            "run replicas of model and judges on processes[:N], slurm[:PROFILE] or ray[:ADDRESS]"
            " (docs/cluster.md)",
            "model",
            "PLACE",
        ),
    ]
    captioner: Annotated[
        str | None,
        Argument("with --augment layout+caption: the model that writes captions", "images as text", "SPEC"),
    ]
    captions: Annotated[
        StrPath | None,
        Argument(
            "with --augment layout+caption: the captions of `sightline build caption`",
            "images as text",
            "FILE",
        ),
    ]
    repeats: Annotated[
        int, Argument("send each request N times, as separate draws", "requests", "N", recorded=True)
    ]
    name: Annotated[
        str | None,
        Argument(
            "name of the run in the store, for report and compare; a sweep adds the values of each run",
            "results",
            "NAME",
        ),
    ]
    tag: Annotated[Names, Argument("tag of the run in the store; may repeat", "results", "TAG")]
    batch: Annotated[
        bool,
        Argument(
            "send requests to endpoints in the provider's batches, answered within a day at a lower price"
            " (docs/models.md)",
            "requests",
        ),
    ]
    fresh: Annotated[
        str,
        Argument("ignore cached answers and store new ones under this tag", "requests", "TAG", recorded=True),
    ]


class RunOptions(RequestOptions, total=False):
    """Options of run."""

    model: Required[
        Annotated[
            str,
            Argument(
                "openai/NAME, http://HOST/v1#NAME, hf/ORG/NAME, hf/FOLDER, vllm/..., sglang/..., "
                "inspect/PROVIDER/NAME, mini, replay/FILE, baseline/chance (docs/models.md)",
                "model",
                "SPEC",
            ),
        ]
    ]
    augment: Annotated[
        Augmentation | None,
        Argument(
            "replace images by OCR text: plain (ocr), with layout, or with layout and a caption",
            "images as text",
        ),
    ]


class SweepOptions(RequestOptions, total=False):
    """Options of sweep; a list under `set` or `gen` holds the values to vary."""

    model: Required[
        Annotated[Names, Argument("model, see `sightline run --help`; may repeat", "model", "SPEC")]
    ]
    augment: Annotated[
        Augmentation | Sequence[Augmentation],
        Argument(
            "ways to replace images by text: ocr, layout, layout+caption", "images as text", "HOW[,HOW...]"
        ),
    ]


class ScoreOptions(EvaluationOptions, total=False):
    """Options of score."""

    model: Annotated[
        str,
        Argument(
            "name of the model in the results (default: the file's); selects one model of several in FILE",
            "model",
            "NAME",
        ),
    ]
    allow_missing: Annotated[
        bool, Argument("count missing answers as wrong instead of refusing the file", "data")
    ]
    only_answered: Annotated[
        bool, Argument("leave out samples of which FILE has no answer: it is a sample of the data", "data")
    ]


class Spec(Struct, frozen=True, kw_only=True):
    """One evaluation: the task, BENCHMARK or BENCHMARK:SETTING, and all its options with their defaults.

    It has more than 15 fields because it is the declaration: one field for each option.
    """

    task: str
    data: str | None = None
    split: str | None = None
    set: Pairs = field(default_factory=dict)
    seed: int = 0
    judge: tuple[str, ...] = ("rules",)
    store: str = "sightline.db"
    limit: int | None = None
    shuffle: bool = False
    decide: Decide = "first"
    judge_gen: Pairs = field(default_factory=dict)
    judge_repeats: int = 1
    gen_any: bool = False
    concurrency: int = 64
    max_requests: int | None = None
    max_cost: float | None = None
    retry_errors: bool = False
    fingerprint: Fingerprint = "on"
    accept_changed: bool = False
    config: str | None = None
    out: str | None = None
    force: bool = False
    against: tuple[str, ...] = ()
    fail_if: tuple[str, ...] = ()
    gen: Pairs = field(default_factory=dict)
    preset: str | None = None
    model_arg: Pairs = field(default_factory=dict)
    model_id: str | None = None
    on: str | None = None
    captioner: str | None = None
    captions: str | None = None
    repeats: int = 1
    name: str | None = None
    tag: tuple[str, ...] = ()
    batch: bool = False
    fresh: str = ""
    model: str = ""
    augment: Augmentation | None = None
    allow_missing: bool = False
    only_answered: bool = False


class DeclaredOption(Struct, frozen=True):
    """One option of a command: its name, the type that a user writes, its default and its presentation."""

    name: str
    type: Any
    default: Any
    required: bool
    argument: Argument

    @property
    def flag(self) -> str:
        """The option on the command line, such as `--model-arg`."""
        return f"--{self.name.replace('_', '-')}"


def declared_options(options: type) -> list[DeclaredOption]:
    """List the options of a command.

    Args:
        options: One of the TypedDicts above.

    Returns:
        The options, in the order of their declaration.
    """
    return list(_declared(options))


@cache
def _declared(options: type) -> tuple[DeclaredOption, ...]:
    """The options of a command; reading its hints takes 5 ms, and lists of runs need them for each run."""
    defaults = Spec(task="")
    found = []
    for name, hint in get_type_hints(options, include_extras=True).items():
        required = get_origin(hint) is Required
        annotated = get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint
        written, argument = get_args(annotated)
        found.append(DeclaredOption(name, written, getattr(defaults, name), required, argument))
    return tuple(found)


def recorded_options(spec: Spec) -> dict[str, Any]:
    """Select the options that metrics.json records.

    Args:
        spec: The evaluation.

    Returns:
        Option name -> value; None for a switch that is off, for a check that is on, and for an empty text or
        mapping.
    """
    recorded = [option for option in declared_options(RunOptions) if option.argument.recorded]
    values = ((option, getattr(spec, option.name)) for option in recorded)
    return {option.name: None if _is_unset(value, option.default) else value for option, value in values}


def _is_unset(value: Any, default: Any) -> bool:
    return value is False or value in ("", {}) or value == default == "on"


def spec_of(task: str, options: Mapping[str, Any], allowed: type) -> Spec:
    """Convert options, as a user writes them, to a Spec.

    Args:
        task: BENCHMARK or BENCHMARK:SETTING.
        options: Values by option name; paths may be `Path`, and a single name may replace a list of names.
        allowed: The TypedDict that declares which options may be there.

    Returns:
        The Spec, with defaults for absent options.

    Raises:
        UserError: An option does not exist, is missing, or has a value of a wrong type.
    """
    check_options(options, allowed)
    defaults = Spec(task=task)
    plain = {name: _plain(value, getattr(defaults, name)) for name, value in options.items()}
    try:
        spec = msgspec.convert({"task": task, **plain}, Spec)
    except msgspec.ValidationError as error:
        raise _wrong_type(str(error), options) from None
    _check_encoding({name: getattr(spec, name) for name in ("task", *plain) if name not in _PATHS})
    return spec


def _check_encoding(values: Mapping[str, Any]) -> None:
    """Refuse what JSON cannot hold: Python reads bytes of a command that are not UTF-8 as lone surrogates."""
    for name, value in values.items():
        try:
            msgspec.json.encode(value, enc_hook=str)
        except UnicodeEncodeError:
            raise UserError(f"the option {name} is not UTF-8 text", found=value, expected="UTF-8") from None


def _wrong_type(message: str, options: Mapping[str, Any]) -> UserError:
    """Convert an error of msgspec, such as "Expected `int | null`, got `str` - at `$.limit`"."""
    what, _, path = message.partition(" - at `$.")
    name = path.rstrip("`").partition("[")[0]
    if name not in options:
        return UserError("the task has the wrong type", expected="text such as codis or iibench:cot")
    field_type = get_type_hints(Spec)[name]
    choices = [choice for part in (field_type, *get_args(field_type)) for choice in _choices(part)]
    kind = what.removeprefix("Expected ").partition(",")[0].strip("`").removesuffix(" | null")
    expected = f"one of {', '.join(choices)}" if choices else kind.replace("object", "a mapping")
    return UserError(f"wrong value of the option {name}", found=options[name], expected=expected)


def _choices(kind: Any) -> tuple[str, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def check_options(options: Mapping[str, Any], allowed: type) -> None:
    """Check the names of options.

    Args:
        options: Values by option name.
        allowed: The TypedDict that declares the options.

    Raises:
        UserError: An option does not exist, or a required one is missing.
    """
    declared = declared_options(allowed)
    names = [option.name for option in declared]
    for name in options:
        if name not in names:
            raise unknown_name("option", name, names)
    for option in declared:
        if option.required and not options.get(option.name):
            raise UserError(f"the option {option.name} is missing", expected=option.argument.help)


def _plain(value: Any, default: Any) -> Any:
    """A path as text, and one name as a list of one if the option takes several."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return [value] if isinstance(value, str) and isinstance(default, tuple) else value
