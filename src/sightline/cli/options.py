"""Options that several commands share, and how their words become a Spec."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError
from sightline.plan.spec import Spec

if TYPE_CHECKING:
    from sightline.engine.client import Asking

Group = argparse.ArgumentParser | argparse._ArgumentGroup


def add_evaluation(parser: argparse.ArgumentParser) -> None:
    """What both `run` and `score` take."""
    parser.add_argument("task", help="BENCHMARK or BENCHMARK:SETTING, such as codis or iibench:cot")
    _add_data(parser.add_argument_group("what is evaluated"))
    _add_judging(parser.add_argument_group("judging"))
    add_asking(parser.add_argument_group("asking"))
    results = parser.add_argument_group("results")
    _add(
        results, "--out", "write metrics.json, answers.jsonl, verdicts.jsonl, report.md there", metavar="DIR"
    )
    _add(results, "--quiet", "no progress on standard error", action="store_true")
    add_table(parser, results)


def add_table(parser: argparse.ArgumentParser, group: Group | None = None) -> None:
    """How numbers are printed, where they are kept, what else is loaded."""
    group = group or parser
    forms = ("table", "markdown", "csv", "json")
    _add(group, "--against", "published row to set beside the numbers, such as GPT-4V", metavar="ROW")
    _add(group, "--by", "break the printed table down by this label", metavar="LABEL")
    _add(group, "--format", "how the numbers are printed", choices=forms, default="table")
    _add(group, "--json", "the same as --format json", action="store_const", dest="format", const="json")
    condition = "exit with status 5 where this holds, as 'acc_p<30', or has no number; may repeat"
    _add(group, "--fail-if", condition, action="append", default=[], metavar="CONDITION")
    add_store(group)


def add_store(group: Group, *, plugins: bool = True) -> None:
    """Where what was asked is kept; and what else is loaded, but where no model can be named."""
    store = "the store: a file, or a database URL (default ./sightline.db)"
    _add(group, "--store", store, default="sightline.db", metavar="URL")
    if plugins:
        plugin = "Python file that adds benchmarks or models"
        _add(group, "--plugin", plugin, action="append", default=[], metavar="FILE")


def _add_data(group: Group) -> None:
    _add(group, "--data", "data folder in the released layout (else SIGHTLINE_DATA)", metavar="DIR")
    _add(group, "--split", "split of the data", metavar="S")
    _add(group, "--limit", "only N groups (samples): the first ones", type=int, metavar="N")
    _add(group, "--shuffle", "with --limit: N groups drawn by --seed", action="store_true")
    _add(group, "--seed", "seed of draws, shuffles and intervals", type=int, default=0, metavar="N")
    _add(
        group,
        "--set",
        "option of the benchmark (see `sightline list BENCHMARK`)",
        action="append",
        default=[],
        metavar="KEY=VALUE",
    )
    unchanged = "the unchanged input in place of its variants: with --repeats 4, Sampling (MM-R3)"
    _add(group, "--unchanged", unchanged, action="store_true")


def chosen(options: argparse.Namespace) -> dict[str, Any]:
    """What `--set` and its short forms choose of the benchmark's options."""
    return {**({"unchanged": True} if options.unchanged else {}), **pairs(options.set, "--set")}


def _add_judging(group: Group) -> None:
    judges = "rules (default), a model, or human:FILE; may repeat"
    _add(group, "--judge", judges, action="append", metavar="SPEC")
    whose = "whose verdict counts where several judge: the first who decides, or the majority"
    _add(group, "--decide", whose, choices=("first", "majority"), default="first")
    _add(
        group,
        "--judge-gen",
        "sampling option for the judge",
        action="append",
        default=[],
        metavar="KEY=VALUE",
    )


def add_model(group: Group, *, required: bool = True, presets: bool = False, several: bool = False) -> None:
    """Who is asked, and with which sampling; `presets` says that the benchmark names some, `several` that
    more than one model may be named."""
    known = (
        "openai/NAME, http://HOST/v1#NAME, hf/ORG/NAME, hf/FOLDER, vllm/..., sglang/...,"
        " inspect/PROVIDER/NAME, mini, replay/FILE, baseline/chance (docs/models.md)"
    )
    how: dict[str, Any] = {"action": "append"} if several else {}
    _add(group, "--model", known + "; may repeat" * several, required=required, metavar="SPEC", **how)
    gen = "sampling option (null leaves it out)" + (", or the name of a preset such as `released`" * presets)
    _add(group, "--gen", gen, action="append", default=[], metavar="KEY=VALUE")
    backend = "argument of the backend: timeout, max_side, dtype, device, flags, ... as docs/models.md says"
    _add(group, "--model-arg", backend, action="append", default=[], metavar="KEY=VALUE")
    _add(group, "--model-id", "whose answers these are, in place of address and model name", metavar="NAME")


def add_augmenting(group: Group, *, several: bool = False) -> None:
    """What is told of images in their place; `several` says that more than one way may be named."""
    from sightline.models.augmented import HOW

    told = "tell images in words, and send none: their text (ocr), with its layout, and a caption"
    ways: dict[str, Any] = {"metavar": "HOW[,HOW...]"} if several else {"choices": HOW}
    _add(group, "--augment", told + f" ({', '.join(HOW)})" * several, **ways)
    _add(group, "--captioner", "for layout+caption: the model that is asked for captions", metavar="SPEC")
    _add(group, "--captions", "for layout+caption: captions of `build caption`", metavar="FILE")


def add_asking(group: Group) -> None:
    """How fast and how much is asked, and what configures it."""
    width = "calls in flight at one host, at most (default 64)"
    cost = "spend at most X, by the prices in sightline.toml (exit status 4)"
    _add(group, "--concurrency", width, type=int, default=64, metavar="N")
    _add(group, "--max-requests", "ask at most N requests, then stop (exit status 4)", type=int, metavar="N")
    _add(group, "--max-cost", cost, type=float, metavar="X")
    _add(group, "--retry-errors", "ask again what failed for good", action="store_true")
    _add(group, "--config", "configuration (default ./sightline.toml)", metavar="FILE")


def _add(group: Group, name: str, words: str, **how: Any) -> None:
    group.add_argument(name, help=words, **how)


def spec_of(options: argparse.Namespace, **more: Any) -> Spec:
    """The Spec that the words stand for."""
    from sightline.registry import plug_in

    for file in options.plugin:
        plug_in(file)
    return Spec(
        task=options.task,
        judges=tuple(options.judge or ("rules",)),
        data=options.data,
        split=options.split,
        limit=options.limit,
        shuffle=options.shuffle,
        seed=options.seed,
        concurrency=options.concurrency,
        store=options.store,
        out=options.out,
        against=options.against,
        judge_gen=pairs(options.judge_gen, "--judge-gen"),
        decide=options.decide,
        retry_errors=options.retry_errors,
        max_requests=options.max_requests,
        max_cost=options.max_cost,
        config=options.config,
        fail_if=tuple(options.fail_if),
        **more,
    )


def asking_of(options: argparse.Namespace, model: str, **more: Any) -> Asking:
    """Whom a builder asks, by what `add_asking` and `add_store` took."""
    from sightline.engine.client import Asking
    from sightline.registry import plug_in

    for file in options.plugin:
        plug_in(file)
    return Asking(
        model=model,
        store=options.store,
        concurrency=options.concurrency,
        max_requests=options.max_requests,
        max_cost=options.max_cost,
        retry_errors=options.retry_errors,
        config=options.config,
        **more,
    )


def asking_of_model(options: argparse.Namespace, fresh: str) -> Asking:
    """Whom a builder asks by --model, by what `add_model` took too."""
    return asking_of(
        options,
        options.model,
        gen=pairs(options.gen, "--gen"),
        model_args=pairs(options.model_arg, "--model-arg"),
        model_id=options.model_id,
        fresh=fresh,
        keyless=options.dry_run,
    )


def pairs(words: Iterable[str], option: str) -> dict[str, Any]:
    """KEY=VALUE words as a mapping; a value is read as JSON where it is JSON, on/off as a switch, else text.

    >>> pairs(["temperature=0", "stop=null", "cot=off", "name=a b"], "--gen")
    {'temperature': 0, 'stop': None, 'cot': False, 'name': 'a b'}
    """
    found: dict[str, Any] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise UserError(f"{option} {word} is no pair", expected=f"{option} KEY=VALUE")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    if text.lower() in ("on", "true", "off", "false"):
        return text.lower() in ("on", "true")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
