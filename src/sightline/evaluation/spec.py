"""The options of run, score and sweep, each declared once.

A field of a class of options states the type, the default, and how the command line presents the option.
The command line, the arguments of the Python API and of inspect tasks, and `Spec` derive from it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from sightline.errors import UserError, unknown_name
from sightline.types import Augmentation, Canary, Fingerprint, Repeated

Decide = Literal["first", "majority"]
OptionGroup = Literal["model", "data", "judging", "requests", "images as text", "results"]
StrPath = str | os.PathLike[str]
Names = Sequence[str]
"""Several names; one name is a sequence too, and `spec_of` makes it a list of one."""
Pairs = Mapping[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


class Argument(Struct, frozen=True):
    """How `--help` presents an option, and whether metrics.json records it, as it affects the numbers."""

    help: str
    group: OptionGroup
    metavar: str | None = None
    recorded: bool = False


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """Options of run, score, sweep and inspect tasks; `task` is BENCHMARK or BENCHMARK:SETTING."""

    task: str = field(kw_only=False)
    data: Annotated[
        StrPath | None,
        Argument("data folder in the released format (default: SIGHTLINE_DATA)", "data", "DIR"),
    ] = None
    split: Annotated[
        str | None, Argument("split of the data (default: the benchmark's first)", "data", "S")
    ] = None
    set: Annotated[
        Pairs,
        Argument("option of the benchmark, see `sightline list BENCHMARK`; may repeat", "data", "KEY=VALUE"),
    ] = field(default_factory=dict)
    seed: Annotated[int, Argument("seed of samples and shuffles", "data", "N", recorded=True)] = 0
    judge: Annotated[
        Names,
        Argument(
            "rules, a model, human:FILE, human:PROJECT, or for the scores in a file its tool; may repeat",
            "judging",
            "SPEC",
        ),
    ] = ("rules",)
    store: Annotated[StrPath, Argument("the store: a file, or a database URL", "results", "URL")] = (
        "sightline.db"
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(TaskOptions):
    """Options of run, score and sweep."""

    limit: Annotated[
        int | None, Argument("use only the first N groups (samples)", "data", "N", recorded=True)
    ] = None
    shuffle: Annotated[
        bool, Argument("with --limit: use N random groups, chosen by --seed", "data", recorded=True)
    ] = False
    ids: Annotated[
        Names, Argument("use only the groups (samples) with these ids; may repeat", "data", "ID[,ID...]")
    ] = ()
    decide: Annotated[
        Decide,
        Argument(
            "with several judges: the first that decides, or the majority, gives the verdict",
            "judging",
            recorded=True,
        ),
    ] = "first"
    judge_gen: Annotated[
        Pairs, Argument("sampling option of the judge; may repeat", "judging", "KEY=VALUE")
    ] = field(default_factory=dict)
    judge_repeats: Annotated[
        int,
        Argument(
            "ask every judge model N times about each case, as separate draws; their majority counts",
            "judging",
            "N",
            recorded=True,
        ),
    ] = 1
    reasoning_tags: Annotated[
        Names,
        Argument(
            "more tags around reasoning, which is cut from responses: summary cuts <summary>...</summary>;"
            " may repeat",
            "judging",
            "NAME,...",
        ),
    ] = ()
    gen_any: Annotated[
        bool,
        Argument("send sampling options with unknown names too, to model and judges", "requests"),
    ] = False
    concurrency: Annotated[
        int | None,
        Argument(
            "maximum number of requests in flight at one host (default: 64; without this option, a server on"
            " this machine gets 4 at first)",
            "requests",
            "N",
        ),
    ] = None
    max_requests: Annotated[
        int | None,
        Argument("stop this run after N requests; every attempt counts (exit status 4)", "requests", "N"),
    ] = None
    max_cost: Annotated[
        float | None,
        Argument("stop at cost X, by the prices in sightline.toml (exit status 4)", "requests", "X"),
    ] = None
    retry_errors: Annotated[bool, Argument("retry requests that failed permanently", "requests")] = False
    fingerprint: Annotated[
        Fingerprint,
        Argument(
            "check that endpoints still have the models that gave their cached answers (docs/models.md)",
            "requests",
            recorded=True,
        ),
    ] = "on"
    accept_changed: Annotated[
        bool,
        Argument("use cached answers although their endpoint changed", "requests", recorded=True),
    ] = False
    config: Annotated[
        StrPath | None, Argument("configuration file (default: ./sightline.toml)", "requests", "FILE")
    ] = None
    out: Annotated[
        StrPath | None,
        Argument("write metrics.json, answers.jsonl, verdicts.jsonl and report.md to DIR", "results", "DIR"),
    ] = None
    name: Annotated[
        str | None,
        Argument(
            "name of the run in the store, for report and compare; a sweep adds the values of each run",
            "results",
            "NAME",
        ),
    ] = None
    tag: Annotated[Names, Argument("tag of the run in the store; may repeat", "results", "TAG")] = ()
    force: Annotated[
        bool, Argument("replace the results of another run in the folder of --out", "results")
    ] = False
    against: Annotated[
        Names, Argument("compare with this published row, such as GPT-4V; may repeat", "results", "ROW")
    ] = ()
    fail_if: Annotated[
        Names,
        Argument(
            "exit with status 5 if this holds, as 'acc_p<30', or has no value; may repeat",
            "results",
            "CONDITION",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class RequestOptions(EvaluationOptions):
    """Options of run and sweep, which send requests to a model."""

    gen: Annotated[
        Pairs,
        Argument("sampling option of the model (null: do not send it); may repeat", "model", "KEY=VALUE"),
    ] = field(default_factory=dict)
    preset: Annotated[
        str | None, Argument("named sampling options of the benchmark, as `released`", "model", "NAME")
    ] = None
    model_arg: Annotated[
        Pairs,
        Argument(
            "argument of the model's back end: timeout, max_side, dtype, device, ... (docs/models.md);"
            " may repeat",
            "model",
            "KEY=VALUE",
            recorded=True,
        ),
    ] = field(default_factory=dict)
    model_id: Annotated[
        str | None,
        Argument(
            "identity of the model in the cache, instead of server and model name",
            "model",
            "NAME",
            recorded=True,
        ),
    ] = None
    on: Annotated[
        str | None,
        Argument(
            "run replicas of model and judges on processes[:N], slurm[:PROFILE] or ray[:ADDRESS]"
            " (docs/cluster.md)",
            "model",
            "PLACE",
        ),
    ] = None
    captioner: Annotated[
        str | None,
        Argument("with --augment layout+caption: the model that writes captions", "images as text", "SPEC"),
    ] = None
    captions: Annotated[
        StrPath | None,
        Argument(
            "with --augment layout+caption: the captions of `sightline build caption`",
            "images as text",
            "FILE",
        ),
    ] = None
    repeats: Annotated[
        int, Argument("send each request N times, as separate draws", "requests", "N", recorded=True)
    ] = 1
    batch: Annotated[
        bool,
        Argument(
            "send requests to endpoints in the provider's batches, answered within a day at a lower price"
            " (docs/models.md)",
            "requests",
        ),
    ] = False
    canary: Annotated[
        Canary,
        Argument(
            "what to do where an endpoint takes images under equal text for one another, which a run of 200 "
            "requests or more asks first (docs/models.md)",
            "requests",
        ),
    ] = "stop"
    retry_truncated: Annotated[
        int | None,
        Argument(
            "ask answers that reached the token limit once more with at most N tokens, and report the values"
            " before and after (docs/models.md)",
            "requests",
            "N",
        ),
    ] = None
    fresh: Annotated[
        str,
        Argument("ignore cached answers and store new ones under this tag", "requests", "TAG", recorded=True),
    ] = ""

    track: Annotated[
        str | None,
        Argument(
            "send the numbers to an experiment tracker: wandb, or a plugin's (docs/tracking.md)",
            "results",
            "NAME",
        ),
    ] = None
    track_arg: Annotated[
        Pairs,
        Argument(
            "argument of the tracker, as project=vlm; step=N: the values are those of step N of a training; "
            "report=off: without the HTML report; may repeat",
            "results",
            "KEY=VALUE",
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunOptions(RequestOptions):
    """Options of run."""

    model: Annotated[
        str,
        Argument(
            "openai/NAME, http://HOST/v1#NAME, hf/ORG/NAME, hf/FOLDER, vllm/..., sglang/..., "
            "inspect/PROVIDER/NAME, mini, replay/FILE, baseline/chance (docs/models.md)",
            "model",
            "SPEC",
        ),
    ]
    augment: Annotated[
        Augmentation | None,
        Argument(
            "replace images by OCR text: plain (ocr), with layout, or with layout and a caption",
            "images as text",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SweepOptions(RequestOptions):
    """Options of sweep; a list under `set` or `gen` holds the values to vary."""

    model: Annotated[Names, Argument("model, see `sightline run --help`; may repeat", "model", "SPEC")]
    augment: Annotated[
        Augmentation | Sequence[Augmentation] | None,
        Argument(
            "ways to replace images by text: ocr, layout, layout+caption", "images as text", "HOW[,HOW...]"
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(EvaluationOptions):
    """Options of score."""

    model: Annotated[
        str,
        Argument(
            "name of the model in the results (default: the file's); selects one model of several in FILE",
            "model",
            "NAME",
        ),
    ] = ""
    allow_missing: Annotated[
        bool, Argument("count missing answers as wrong instead of refusing the file", "data")
    ] = False
    only_answered: Annotated[
        bool, Argument("leave out samples of which FILE has no answer: it is a sample of the data", "data")
    ] = False
    repeated: Annotated[
        Repeated,
        Argument("which of several answers of one probe counts, in the file of a tool that appends", "data"),
    ] = "error"
    columns: Annotated[
        Pairs,
        Argument(
            "columns or JSON fields of FILE, as id=question_id,response=answer (also variant, draw, "
            "question, options, error; group, cluster, references, label, score); may repeat",
            "data",
            "NAME=COLUMN[,...]",
        ),
    ] = field(default_factory=dict)
    explain: Annotated[
        bool,
        Argument(
            "print for each response the rule that gave its verdict, and the words that it read, the worst "
            "first (csv: instead of the metrics)",
            "results",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Spec(RunOptions, ScoreOptions):
    """One evaluation: the task and all its options with their defaults; here every path is text."""

    model: str = ""
    data: str | None = None
    captions: str | None = None
    config: str | None = None
    out: str | None = None
    store: str = "sightline.db"


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

    @property
    def is_path(self) -> bool:
        """Whether a value is a path, which may have any bytes."""
        return os.PathLike[str] in get_args(self.type)

    def stored(self, value: Any) -> Any:
        """Convert a path to text, a single name to a list; msgspec.ValidationError for a wrong type."""
        if self.is_path:
            text = os.fspath(value) if isinstance(value, os.PathLike) else value
            return msgspec.convert(text, str if self.default else str | None)
        if self.type == Names:
            return msgspec.convert((value,) if isinstance(value, str) else value, tuple[str, ...])
        return msgspec.convert(value, self.type)


@cache
def declared_options(options: type) -> tuple[DeclaredOption, ...]:
    # Reading the hints takes 5 ms, and lists of runs need them for each run.
    hints = get_type_hints(options, include_extras=True)
    found = []
    for one in fields(options):
        if get_origin(hints[one.name]) is Annotated:
            written, argument = get_args(hints[one.name])
            required = one.default is MISSING and one.default_factory is MISSING
            default = "" if required else one.default if one.default_factory is MISSING else {}
            found.append(DeclaredOption(one.name, written, default, required, argument))
    return tuple(found)


def takes(options: Callable[P, object]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Give a function the arguments of a class of options, for type checkers and editors.

    The function itself takes any arguments and checks them, because only its error messages name the remedy.
    """
    return lambda function: function


def recorded_options(spec: Spec) -> dict[str, Any]:
    """The options for metrics.json; None for a switch off, a check on, an empty text or mapping."""
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

    Raises:
        UserError: An option does not exist, is missing, or has a value of a wrong type.
    """
    check_options(options, allowed)
    if not isinstance(task, str):
        raise UserError("the task has the wrong type", expected="text such as codis or iibench:cot")
    _check_encoding("task", task)
    stored: dict[str, Any] = {}
    for option in declared_options(allowed):
        if option.name in options:
            try:
                value = stored[option.name] = option.stored(options[option.name])
            except msgspec.ValidationError as error:
                raise _wrong_type(str(error), option, options[option.name]) from None
            if not option.is_path:
                _check_encoding(option.name, value)
    return Spec(task, **stored)


def _check_encoding(name: str, value: Any) -> None:
    """Refuse what JSON cannot hold: Python reads bytes of a command that are not UTF-8 as lone surrogates."""
    try:
        msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        raise UserError(f"the option {name} is not UTF-8 text", found=value, expected="UTF-8") from None


def _wrong_type(message: str, option: DeclaredOption, value: Any) -> UserError:
    choices = [choice for part in (option.type, *get_args(option.type)) for choice in _choices(part)]
    kind = message.removeprefix("Expected ").partition(",")[0].strip("`").removesuffix(" | null")
    expected = f"one of {', '.join(choices)}" if choices else kind.replace("object", "a mapping")
    return UserError(f"wrong value of the option {option.name}", found=value, expected=expected)


def _choices(kind: Any) -> tuple[str, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def check_options(options: Mapping[str, Any], allowed: type) -> None:
    declared = declared_options(allowed)
    names = [option.name for option in declared]
    for name in options:
        if name not in names:
            raise unknown_name("option", name, names)
    for option in declared:
        if option.required and not options.get(option.name):
            raise UserError(f"the option {option.name} is missing", expected=option.argument.help)


# -- The data folder of an evaluation


def spec_data_folder(spec: Spec) -> Path | None:
    """--data, otherwise the environment variable SIGHTLINE_DATA, otherwise None."""
    path = spec.data or os.environ.get("SIGHTLINE_DATA")
    return Path(path) if path else None
