"""`sightline adapter train`: an adapter for a frozen local model, from builders' groups."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from sightline.cli.options import pairs
from sightline.cli.printing import print_json
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.adapter.kinds import AdapterKind
    from sightline.adapter.trainer import TrainingStep
    from sightline.adapter.training import TrainedAdapter
    from sightline.adapter.validate import Validation

SUMMARY = "train an adapter for a frozen local model on what `sightline build` made (MM-R3, section 5)"

EXAMPLE = """examples:
  sightline build scenes --benchmark mmr3 --for-training --count 400 --seed 7 --out train
  sightline adapter train --model mini --data train/mmr3/restyling --data train/mmr3/context \\
      --rate 1e-3 --steps 200 --batch 8 --out adapter
  sightline run mmr3:restyling --model mini --adapter adapter --data quickstart/mmr3

  sightline adapter train --model hf/llava-hf/llava-1.5-7b-hf --data restyled --loss ce+consistency \\
      --test data/mmr3/restyling --without style=candy --out adapter

The model is frozen: only the adapter learns, by cross-entropy on the tokens of the groups' first references.
bilstm is the paper's (a Bi-LSTM over the prompt that makes three vectors to put before it), prefix puts three
free vectors there, lora changes the language model's linear layers. The default rate of bilstm is that of the
paper: for 30,000 examples and models of 7 billion parameters. The same command goes on where it was stopped,
to the same weights.
"""

RATES = {"bilstm": 1e-5, "prefix": 1e-3, "lora": 1e-4}
STEPS, BATCH, EVERY, LONGEST, ROOM = 1000, 2, 100, 64, 2.0


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `adapter train`."""
    parser.epilog = EXAMPLE
    _add_what(parser.add_argument_group("what is trained on what"))
    add_kind(parser.add_argument_group("the adapter"))
    _add_how(parser.add_argument_group("training"))
    parser.set_defaults(execute=execute)


def _add_what(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    several: dict[str, Any] = {"action": "append", "default": []}
    add("--model", required=True, metavar="SPEC", help="hf/ORG/NAME, hf/FOLDER or mini")
    add("--model-arg", metavar="KEY=VALUE", help="dtype, device, ... of the model", **several)
    groups = "a builder's folder, or a groups file; may repeat"
    add("--data", required=True, metavar="DIR|FILE", help=groups, action="append")
    add("--out", required=True, metavar="DIR", help="the adapter's folder")
    apart = "groups that must not show an image of --data; may repeat"
    add("--test", metavar="DIR|FILE", help=apart, **several)
    without = "leave out the lines with that label; may repeat"
    add("--without", metavar="LABEL=VALUE", help=without, **several)


def add_kind(group: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Which adapter, and of what size."""
    add = group.add_argument
    add("--kind", choices=tuple(RATES), default="bilstm", help="bilstm (default), prefix or lora")
    sizes = "prefix, hidden, layers of bilstm; prefix of prefix; rank, alpha of lora"
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=sizes)


def _add_how(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    loss = "also pull the distributions of a group's variants together (default ce)"
    add("--loss", choices=("ce", "ce+consistency"), default="ce", help=loss)
    add("--consistency", type=float, metavar="X", help="how much that weighs (default 1)")
    add("--steps", type=int, default=STEPS, metavar="N", help=f"optimizer steps (default {STEPS:,})")
    batch = f"groups a step, all variants of each (default {BATCH})"
    add("--batch", type=int, default=BATCH, metavar="N", help=batch)
    parts = "split a step's groups into N passes, for less memory"
    add("--accumulate", type=int, default=1, metavar="N", help=parts)
    rates = ", ".join(f"{kind} {rate:g}" for kind, rate in RATES.items())
    rate = f"learning rate, falling linearly to zero (default: {rates})"
    add("--rate", type=float, metavar="X", help=rate)
    seed = "seed of weights, order and validation (default 0)"
    add("--seed", type=int, default=0, metavar="N", help=seed)
    held = "share of the groups for validation (default 0.1; 0 for none)"
    add("--held-out", type=float, default=0.1, metavar="X", help=held)
    every = f"steps between checkpoints, each with a validation (default {EVERY})"
    add("--every", type=int, default=EVERY, metavar="N", help=every)
    add("--embedder", metavar="NAME", help="also tell con there, by that embedder: all-MiniLM-L6-v2")
    longest = f"tokens that an answer may have (default {LONGEST})"
    add("--max-target", type=int, default=LONGEST, metavar="N", help=longest)
    room = f"memory for prepared examples (default {ROOM:g})"
    add("--remember", type=float, default=ROOM, metavar="GB", help=room)
    add("--quiet", action="store_true", help="no progress on standard error")
    add("--json", action="store_true", help="print the result as JSON")


def execute(options: argparse.Namespace) -> int:
    """Train it, and print how consistent the model was and is on what was held out."""
    from sightline.adapter.requirements import check_installed

    check_installed()
    from sightline.adapter.settings import Training
    from sightline.adapter.trainer import Recipe
    from sightline.adapter.training import train_adapter

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
        adapter=kind_of(options),
        test=[_groups(word) for word in options.test],
        without=_without(options.without),
        held_out=options.held_out,
        every=options.every,
        embedder=options.embedder,
        max_answer_tokens=options.max_target,
        cache_bytes=int(options.remember * 1024**3),
        model_arg=pairs(options.model_arg, "--model-arg"),
    )
    stop = Event()
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        # The step under way is finished; who cannot wait for that says it again.
        stop.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        more: dict[str, Any] = {} if options.quiet else {"on_step": _tell, "show_progress": True}
        trained = train_adapter(training, stop=stop, **more)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_kept(Path(options.out))) from None
    finally:
        signal.signal(signal.SIGINT, before)
    _print(trained, options.json)
    return 0


def _kept(folder: Path) -> str:
    """What is left of a training that was stopped."""
    from sightline.adapter.training_checkpoint import STATE

    if (folder / STATE).exists():
        return f"the last checkpoint is kept in {folder}, the same command goes on from there"
    return "no checkpoint was written yet, the same command begins anew"


def _groups(word: str) -> str:
    """The groups file that a word names, itself or by its folder."""
    path = Path(word)
    return str(path / "groups.jsonl") if path.is_dir() else word


def kind_of(options: argparse.Namespace) -> AdapterKind:
    """The adapter of that kind with the sizes that `--set` names."""
    import msgspec

    from sightline.adapter.kinds import AdapterKind

    sizes = pairs(options.set, "--set")
    try:
        kind: AdapterKind = msgspec.convert({"kind": options.kind, **sizes}, AdapterKind)
    except msgspec.ValidationError as error:
        raise UserError(f"--set: {error}", expected=f"a size of {options.kind}, as --help says") from None
    return kind


def _without(words: list[str]) -> dict[str, list[str]]:
    """Labels with the values that are left out."""
    found: dict[str, list[str]] = {}
    for word in words:
        label, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"--without {word}", expected="LABEL=VALUE")
        found.setdefault(label, []).append(value)
    return found


def _tell(step: TrainingStep, validation: Validation | None) -> None:
    if validation is not None:
        print(f"step {step.number:,}: loss {step.loss:.4f}; {_said(validation)}", file=sys.stderr)


def _said(validation: Validation) -> str:
    shares = {"con": validation.con, "agree": validation.agree, "acc": validation.acc}
    told = ", ".join(f"{name} {100 * share:.1f}" for name, share in shares.items() if share is not None)
    return f"held out: {told}, loss {validation.loss:.4f}"


def _print(trained: TrainedAdapter, as_json: bool) -> None:
    if as_json:
        print_json(trained)
        return
    print(f"{trained.folder}: {trained.parameters:,} parameters, trained on {trained.groups:,} groups")
    if trained.validations:
        print(f"before: {_said(trained.validations[0])}")
        print(f"after:  {_said(trained.validations[-1])}")
    for note in trained.notes:
        print(f"note: {note}")
