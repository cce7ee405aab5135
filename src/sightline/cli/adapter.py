"""`sightline adapter SUBCOMMAND`: train adapters, report their effect, describe them."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from sightline.cli.options import ArgumentGroup, add_plugins, add_printing, add_quiet, add_store, pairs
from sightline.cli.printing import print_json
from sightline.errors import UserError
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.adapter.architectures import AdapterConfig
    from sightline.adapter.saved_adapter import SavedAdapter
    from sightline.adapter.trainer import TrainingStep, Validation
    from sightline.adapter.training import TrainedAdapter, Training
    from sightline.reporting.adapter import AdapterRuns, Cost
    from sightline.store.store import Store

    TrackStep = Callable[[int, Validation | None, Mapping[str, float]], None]

EXAMPLE = """examples:
  sightline build restyle photos --out train
  sightline adapter train --model hf/llava-hf/llava-1.5-7b-hf --data train --out adapter
  sightline run mmr3:restyling --model hf/llava-hf/llava-1.5-7b-hf --data data/mmr3 \\
      --model-arg adapter=adapter
"""


# -- `sightline adapter train`: train an adapter for a frozen local model on groups of builders

TRAIN_EXAMPLE = """examples:
  sightline build restyle photos --labels labels.csv --out restyled
  sightline adapter train --model hf/llava-hf/llava-1.5-7b-hf --data restyled --loss ce+consistency \\
      --test data/mmr3/restyling --without style=candy --out adapter

The model is frozen; only the adapter learns, by cross-entropy on the tokens of each group's first reference.
bilstm is the adapter of the paper: a Bi-LSTM reads the prompt and makes three vectors that precede it. prefix
learns three free vectors in this position. lora changes the linear layers of the language model. The default
rate of bilstm is the paper's, for 30,000 examples and models of 7 billion parameters. After an interruption,
run the same command to continue; the weights will be the same.
"""

RATES = {"bilstm": 1e-5, "prefix": 1e-3, "lora": 1e-4}
STEPS, BATCH, EVERY, MAX_ANSWER_TOKENS, CACHE_GB = 1000, 2, 100, 64, 2.0


def register_train(parser: argparse.ArgumentParser) -> None:
    parser.epilog = TRAIN_EXAMPLE
    _add_data(parser.add_argument_group("model and data"))
    add_kind(parser.add_argument_group("the adapter"))
    _add_training(parser.add_argument_group("training"))
    parser.set_defaults(execute=execute_train)


def _add_data(group: ArgumentGroup) -> None:
    add = group.add_argument
    several: dict[str, Any] = {"action": "append", "default": []}
    add("--model", required=True, metavar="SPEC", help="hf/ORG/NAME, hf/FOLDER or mini")
    add(
        "--model-arg",
        metavar="KEY=VALUE",
        help="argument of the model's back end: dtype, device, ...; may repeat",
        **several,
    )
    groups = "folder of a builder, or a groups file; may repeat"
    add("--data", required=True, metavar="DIR|FILE", help=groups, action="append")
    add("--out", required=True, metavar="DIR", help="folder of the adapter")
    apart = "test groups: error if they share an image with --data; may repeat"
    add("--test", metavar="DIR|FILE", help=apart, **several)
    without = "leave out lines with this label; may repeat"
    add("--without", metavar="LABEL=VALUE", help=without, **several)


def add_kind(group: ArgumentGroup) -> None:
    add = group.add_argument
    add("--kind", choices=tuple(RATES), default="bilstm", help="kind of the adapter (default: bilstm)")
    sizes = "size: prefix, hidden, layers (bilstm); prefix (prefix); rank, alpha (lora); may repeat"
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=sizes)


def _add_training(group: ArgumentGroup) -> None:
    add = group.add_argument
    loss = "ce+consistency also penalizes different token distributions within a group (default: ce)"
    add("--loss", choices=("ce", "ce+consistency"), default="ce", help=loss)
    add("--consistency", type=float, metavar="X", help="weight of the consistency loss (default: 1)")
    add("--steps", type=int, default=STEPS, metavar="N", help=f"optimizer steps (default: {STEPS:,})")
    batch = f"groups per step, with all their variants (default: {BATCH})"
    add("--batch", type=int, default=BATCH, metavar="N", help=batch)
    parts = "split the groups of a step into N passes, to save memory (default: 1)"
    add("--accumulate", type=int, default=1, metavar="N", help=parts)
    rates = ", ".join(f"{kind} {rate:g}" for kind, rate in RATES.items())
    rate = f"learning rate, which decreases linearly to zero (default: {rates})"
    add("--rate", type=float, metavar="X", help=rate)
    seed = "seed of weights, order and validation (default: 0)"
    add("--seed", type=int, default=0, metavar="N", help=seed)
    held = "share of the groups for validation (default: 0.1; 0 for none)"
    add("--held-out", type=float, default=0.1, metavar="X", help=held)
    every = f"steps between checkpoints, each with a validation (default: {EVERY})"
    add("--validate-every", type=int, default=EVERY, metavar="N", help=every)
    add("--embedder", metavar="NAME", help="embedder for con at each validation, as all-MiniLM-L6-v2")
    tokens = f"maximum number of tokens of an answer (default: {MAX_ANSWER_TOKENS})"
    add("--max-answer-tokens", type=int, default=MAX_ANSWER_TOKENS, metavar="N", help=tokens)
    cache = f"memory for encoded examples, in GB (default: {CACHE_GB:g})"
    add("--example-cache", type=float, default=CACHE_GB, metavar="GB", help=cache)
    track = "send loss and validations to an experiment tracker: wandb, or a plugin's (docs/tracking.md)"
    add("--track", metavar="NAME", help=track)
    track_arg = "argument of the tracker, as project=vlm; may repeat"
    add("--track-arg", action="append", default=[], metavar="KEY=VALUE", help=track_arg)
    add_plugins(group)
    add_quiet(group)
    add("--json", action="store_true", help="print the result as JSON")


def execute_train(options: argparse.Namespace) -> int:
    """Train the adapter; print how consistent the model is on held-out groups, before and after."""
    from sightline.adapter.loading import check_installed

    check_installed()
    from sightline.adapter.trainer import Recipe
    from sightline.adapter.training import Training, train_adapter

    recipe = Recipe(
        steps=options.steps,
        batch=options.batch,
        rate=options.rate if options.rate is not None else RATES[options.kind],
        loss=options.loss,
        accumulate=options.accumulate,
        seed=options.seed,
        **({} if options.consistency is None else {"consistency": options.consistency}),
    )
    training = Training(
        model=options.model,
        data=[_groups(word) for word in options.data],
        out=options.out,
        recipe=recipe,
        adapter=adapter_config(options),
        test=[_groups(word) for word in options.test],
        without=_without(options.without),
        held_out=options.held_out,
        every=options.validate_every,
        embedder=options.embedder,
        max_answer_tokens=options.max_answer_tokens,
        cache_bytes=int(options.example_cache * 1024**3),
        model_arg=pairs(options.model_arg, "--model-arg"),
    )
    stop = Event()
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        # The first interruption finishes the current step; a second one stops at once.
        stop.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        with _tracked(options, training) as track:

            def on_step(step: TrainingStep, validation: Validation | None) -> None:
                track(step.number, validation, {"loss": step.loss, "disagreement": step.disagreement})
                if not options.quiet:
                    _print_step(step, validation)

            trained = train_adapter(
                training,
                on_step,
                on_base=lambda validation: track(0, validation, {}),
                stop=stop,
                show_progress=not options.quiet,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_state_of(Path(options.out))) from None
    finally:
        signal.signal(signal.SIGINT, before)
    _print(trained, options.json)
    return 0


@contextmanager
def _tracked(options: argparse.Namespace, training: Training) -> Iterator[TrackStep]:
    """Give what sends a step to the tracker of --track; it does nothing without one."""
    if options.track is None:
        if options.track_arg:
            raise UserError("--track-arg has no effect without --track", expected="--track wandb")
        yield lambda *_: None
        return
    import msgspec

    from sightline.interop.tracking import TrackedRun, tracking

    settings = {"task": "adapter train", **msgspec.to_builtins(training)}
    with tracking(options.track) as tracked:
        tracked.start(TrackedRun(training.out, "training", settings, pairs(options.track_arg, "--track-arg")))

        def track(step: int, validation: Validation | None, values: Mapping[str, float]) -> None:
            named = {f"training/{name}": value for name, value in values.items()}
            if validation is not None:
                named |= {f"held_out/{name}": 100 * share for name, share in _shares(validation).items()}
                named["held_out/loss"] = validation.loss
            tracked.log(named, step)

        yield track


def _state_of(folder: Path) -> str:
    """Describe what remains of an interrupted training."""
    from sightline.adapter.saved_adapter import STATE

    if (folder / STATE).exists():
        return f"the last checkpoint is in {folder}, run the same command to continue from there"
    return "no checkpoint was written yet; run the same command to start again"


def _groups(word: str) -> str:
    """The groups file of a word: a file, or the folder that holds it."""
    path = Path(word)
    return str(path / "groups.jsonl") if path.is_dir() else word


def adapter_config(options: argparse.Namespace) -> AdapterConfig:
    import msgspec

    from sightline.adapter.architectures import AdapterConfig

    sizes = pairs(options.set, "--set")
    try:
        config: AdapterConfig = msgspec.convert({"kind": options.kind, **sizes}, AdapterConfig)
    except msgspec.ValidationError as error:
        raise UserError(f"--set: {error}", expected=f"a size of {options.kind}, see --help") from None
    return config


def _without(words: list[str]) -> dict[str, list[str]]:
    """The values of each label whose lines are left out."""
    found: dict[str, list[str]] = {}
    for word in words:
        label, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"--without {word}: '=' is missing", expected="LABEL=VALUE")
        found.setdefault(label, []).append(value)
    return found


def _print_step(step: TrainingStep, validation: Validation | None) -> None:
    if validation is not None:
        print_note(f"step {step.number:,}: loss {step.loss:.4f}; {_describe(validation)}")


def _shares(validation: Validation) -> dict[str, float]:
    shares = {"con": validation.con, "agree": validation.agree, "acc": validation.acc}
    return {name: share for name, share in shares.items() if share is not None}


def _describe(validation: Validation) -> str:
    values = ", ".join(f"{name} {100 * share:.1f}" for name, share in _shares(validation).items())
    return f"held out: {values}, loss {validation.loss:.4f}"


def _print(trained: TrainedAdapter, as_json: bool) -> None:
    if as_json:
        print_json(trained)
        return
    print_line(f"{trained.folder}: {trained.parameters:,} parameters, trained on {trained.groups:,} groups")
    if trained.validations:
        print_line(f"before: {_describe(trained.validations[0])}")
        print_line(f"after:  {_describe(trained.validations[-1])}")
    for note in trained.notes:
        print_line(f"note: {note}")


# -- `sightline adapter show`: describe an adapter, or compute the size of one for a model

SHOW_EXAMPLE = """examples:
  sightline adapter show adapter
  sightline adapter show --kind bilstm --model hf/llava-hf/llava-1.5-7b-hf
"""


def register_show(parser: argparse.ArgumentParser) -> None:
    parser.epilog = SHOW_EXAMPLE
    add = parser.add_argument
    add("folder", nargs="?", metavar="DIR", help="output of `sightline adapter train`")
    add("--model", metavar="SPEC", help="hf/ORG/NAME, hf/FOLDER or mini; only its configuration is read")
    add_kind(parser)
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(execute=execute_show)


def execute_show(options: argparse.Namespace) -> int:
    from sightline.adapter.loading import check_installed

    check_installed()
    if (options.folder is None) == (options.model is None):
        raise UserError("needs either DIR or --model", expected="one of them")
    described = _saved(Path(options.folder)) if options.folder is not None else _planned(options)
    if options.json:
        print_json(described)
        return 0
    for name, value in described.items():
        print_line(f"{name}: {f'{value:,}' if isinstance(value, int) else value}")
    return 0


def _saved(folder: Path) -> dict[str, Any]:
    import msgspec

    from sightline.adapter.saved_adapter import SavedAdapter

    saved = SavedAdapter(folder)
    metadata = saved.metadata
    return {
        "adapter": msgspec.to_builtins(metadata.adapter),
        "parameters": saved.parameters,
        "base": metadata.base,
        "training": dict(metadata.training),
        "images": len(metadata.images),
    }


def _planned(options: argparse.Namespace) -> dict[str, Any]:
    import msgspec

    from sightline.adapter.attach import adapter_size
    from sightline.models.registry import model_folder

    return msgspec.structs.asdict(adapter_size(model_folder(options.model), adapter_config(options)))


# -- `sightline adapter report`: the effect of an adapter on the tasks that it ran on, and its cost

REPORT_EXAMPLE = """examples:
  sightline run mmr3:restyling --model mini --data test/mmr3
  sightline run mmr3:restyling --model mini --data test/mmr3 --model-arg adapter=adapter
  sightline adapter report adapter
  sightline adapter report seed0 seed1 seed2 --by style      three adapters of one kind, pooled
  sightline adapter report adapter --runs 3,7                run 7 with the adapter, run 3 without it

For each task, this compares the newest pair of runs, one with and one without the adapter, that have the same
data, options and judges. Requests that the adapter refused because of a training image are left out on both
sides, and counted. It sends no requests.
"""


def register_report(parser: argparse.ArgumentParser) -> None:
    parser.epilog = REPORT_EXAMPLE
    add = parser.add_argument
    add("folder", nargs="+", metavar="DIR", help="output of `sightline adapter train`; several are pooled")
    add(
        "--runs",
        action="append",
        default=[],
        metavar="WITHOUT,WITH",
        help="compare these two runs (numbers or names); may repeat (default: the newest pair for each task)",
    )
    add(
        "--metric",
        action="append",
        metavar="NAME",
        help="metric to print; may repeat (default: those of Table 6, and agree)",
    )
    add_printing(parser)
    add_store(parser)
    parser.set_defaults(execute=execute_report)


def execute_report(options: argparse.Namespace) -> int:
    from sightline.adapter.loading import check_installed

    check_installed()
    from sightline.adapter.saved_adapter import SavedAdapter
    from sightline.cli.printing import print_tables
    from sightline.evaluation.adapter_report import compare_adapter_runs
    from sightline.reporting.adapter import SHOWN, adapted_table, cost_table, run_notes, voted_tables
    from sightline.reporting.comparison import check_label
    from sightline.store.store import Store

    adapters = [SavedAdapter(Path(folder)) for folder in options.folder]
    store = Store.open(options.store, create=False)
    try:
        found = _runs(store, adapters, options.runs)
        compared = [compare_adapter_runs(store, task) for task in found]
        pairs = [pair for task in found for pair in task.runs]
        costs = [_cost(store, adapter, pairs) for adapter in adapters]
    finally:
        store.close()
    comparisons = [one.comparison for one in compared]
    known = {change.metric for comparison in comparisons for change in comparison.differences}
    for name in options.metric or []:
        if name not in known:
            raise UserError(
                f"--metric {name}: these runs have no such metric", expected=", ".join(sorted(known))
            )
    check_label(options.by, comparisons)
    metrics = options.metric or [name for name in SHOWN if name in known] or sorted(known)
    tables = [
        adapted_table(comparisons, metrics, options.by, run_notes(compared)),
        *voted_tables([one.voted for one in compared], options.by),
        cost_table(costs),
    ]
    print_tables(tables[:1] if options.format == "csv" else tables, options.format)
    return 0


def _runs(store: Store, adapters: Sequence[SavedAdapter], named: Sequence[str]) -> list[AdapterRuns]:
    """The runs to compare: those that the user named, or the newest pairs."""
    from sightline.evaluation.adapter_report import find_adapter_runs, named_adapter_runs
    from sightline.evaluation.runs import find_run

    identities = [adapter.identity for adapter in adapters]
    if not named:
        return find_adapter_runs(store, identities)
    pairs = []
    for text in named:
        without, comma, adapted = text.partition(",")
        if not comma or "," in adapted:
            raise UserError(f"--runs {text}: two runs are needed", expected="WITHOUT,WITH, such as 3,7")
        pairs.append((find_run(store, without), find_run(store, adapted)))
    return named_adapter_runs(store, identities, pairs)


def _cost(store: Store, adapter: SavedAdapter, pairs: Sequence[tuple[int, int]]) -> Cost:
    from sightline.evaluation.adapter_report import adapter_of, mean_latency
    from sightline.reporting.adapter import Cost

    own = [pair for pair in pairs if adapter_of(store, pair[1]) == adapter.identity]
    return Cost(
        folder=str(adapter.folder),
        kind=f"{adapter.metadata.adapter.__struct_config__.tag}, {adapter.metadata.training.get('loss', '')}",
        trained_on=", ".join(name for name, _ in adapter.metadata.training.get("data", ())),
        parameters=adapter.parameters,
        model=adapter.metadata.parameters,
        memory=adapter.memory,
        before=mean_latency(store, [base for base, _ in own]),
        after=mean_latency(store, [other for _, other in own]),
    )


SUBCOMMANDS = {
    "train": (
        register_train,
        "train an adapter for a frozen local model on groups of `sightline build` (MM-R3, section 5)",
    ),
    "report": (
        register_report,
        "compare runs with and without an adapter, as in Table 6 of MM-R3, and show its cost",
    ),
    "show": (register_show, "describe an adapter, or compute the size of one for a model"),
}
