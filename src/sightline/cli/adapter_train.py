"""`sightline adapter train`: an adapter for a frozen local model, from builders' groups."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from sightline.cli.options import pairs
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.adapter.kinds import Kind
    from sightline.adapter.run import Trained
    from sightline.adapter.train import Step
    from sightline.adapter.validate import Validation

SUMMARY = "train an adapter for a frozen local model on what `sightline build` made (MM-R3, section 5)"

EXAMPLE = """examples:
  sightline build scenes --benchmark mmr3 --count 400 --seed 7 --out train
  sightline adapter train --model mini --data train/mmr3/restyling --data train/mmr3/context \\
      --steps 400 --rate 1e-3 --out adapter
  sightline run mmr3:restyling --model mini --adapter adapter --data quickstart/mmr3

  sightline adapter train --model hf/llava-hf/llava-1.5-7b-hf --data restyled --loss ce+consistency \\
      --test data/mmr3/restyling --without style=candy --out adapter

The model is frozen: only the adapter learns, by cross-entropy on the tokens of the groups' first references.
bilstm is the paper's (a Bi-LSTM over the prompt that makes three vectors to put before it), prefix puts three
free vectors there, lora changes the language model's linear layers. The default rate is the paper's for bilstm,
which has 30,000 examples and models of 7 billion parameters in mind. The same command goes on where it was
stopped, to the same weights.
"""

RATES = {"bilstm": 1e-5, "prefix": 1e-3, "lora": 1e-4}
STEPS, BATCH, EVERY, LONGEST, ROOM = 1000, 2, 100, 64, 2.0


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `adapter train`."""
    parser.epilog = EXAMPLE
    what = parser.add_argument_group("what is trained on what").add_argument
    what("--model", required=True, metavar="SPEC", help="hf/ORG/NAME, hf/FOLDER or mini")
    what(
        "--model-arg",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="dtype, device, ... of the model",
    )
    what(
        "--data",
        action="append",
        required=True,
        metavar="DIR|FILE",
        help="a builder's folder, or a groups file; may repeat",
    )
    what("--out", required=True, metavar="DIR", help="the adapter's folder")
    what(
        "--test",
        action="append",
        default=[],
        metavar="DIR|FILE",
        help="groups that must not show a picture of --data; may repeat",
    )
    what(
        "--without",
        action="append",
        default=[],
        metavar="LABEL=VALUE",
        help="leave out lines with that label; may repeat",
    )
    kind = parser.add_argument_group("the adapter").add_argument
    kind("--kind", choices=tuple(RATES), default="bilstm", help="bilstm (default), prefix or lora")
    kind(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="sizes: prefix, hidden, layers of bilstm; prefix; rank, alpha of lora",
    )
    how = parser.add_argument_group("training").add_argument
    how(
        "--loss",
        choices=("ce", "ce+consistency"),
        default="ce",
        help="also pull the distributions of a group's variants together",
    )
    how("--consistency", type=float, metavar="X", help="how much that weighs (default 1)")
    how("--steps", type=int, default=STEPS, metavar="N", help=f"optimizer steps (default {STEPS:,})")
    how(
        "--batch",
        type=int,
        default=BATCH,
        metavar="N",
        help=f"groups a step, all variants of each (default {BATCH})",
    )
    how(
        "--accumulate",
        type=int,
        default=1,
        metavar="N",
        help="split a step's groups into N passes, which takes less memory",
    )
    how(
        "--rate",
        type=float,
        metavar="X",
        help="learning rate at first, falling linearly to zero (default by kind: "
        + ", ".join(f"{name} {rate:g}" for name, rate in RATES.items())
        + ")",
    )
    how("--seed", type=int, default=0, metavar="N", help="seed of weights, order and validation (default 0)")
    how(
        "--held-out",
        type=float,
        default=0.1,
        metavar="X",
        help="share of groups for validation (default 0.1; 0 for none)",
    )
    how(
        "--every",
        type=int,
        default=EVERY,
        metavar="N",
        help=f"steps between checkpoints, each with a validation (default {EVERY})",
    )
    how(
        "--embedder",
        default=None,
        metavar="NAME",
        help="also tell con in validation, by that embedder (all-MiniLM-L6-v2)",
    )
    how(
        "--max-target",
        type=int,
        default=LONGEST,
        metavar="N",
        help=f"tokens of an answer (default {LONGEST})",
    )
    how(
        "--remember",
        type=float,
        default=ROOM,
        metavar="GB",
        help=f"memory for prepared examples (default {ROOM:g})",
    )
    how("--quiet", action="store_true", help="no progress on standard error")
    how("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Train it, and print how consistent the model was and is on what was held out."""
    from sightline.adapter.run import Training, train_adapter
    from sightline.adapter.train import Recipe
    from sightline.progress import progress

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
        longest=options.max_target,
        room=int(options.remember * 1024**3),
        model_args=pairs(options.model_arg, "--model-arg"),
    )
    stop = Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        with progress("training", options.steps, "steps", shown=not options.quiet) as advance:
            done = 0

            def tell(step: Step, validation: Validation | None) -> None:
                nonlocal done
                advance(step.number - done)
                done = step.number
                if validation is not None and not options.quiet:
                    print(f"step {step.number:,}: loss {step.loss:.4f}; {_said(validation)}", file=sys.stderr)

            trained = train_adapter(training, tell, stop=stop, shown=not options.quiet)
    finally:
        signal.signal(signal.SIGINT, before)
    _print(trained, options.json)
    return 0


def _groups(word: str) -> str:
    """The groups file that a word names, itself or by its folder."""
    path = Path(word)
    return str(path / "groups.jsonl") if path.is_dir() else word


def kind_of(options: argparse.Namespace) -> Kind:
    """The adapter of that kind with the sizes that `--set` names."""
    import msgspec

    from sightline.adapter.kinds import Kind

    sizes = pairs(options.set, "--set")
    try:
        return msgspec.convert({"kind": options.kind, **sizes}, Kind)
    except msgspec.ValidationError as error:
        raise UserError(f"--set: {error}", expected=f"a size of {options.kind}, as --help says") from None


def _without(words: list[str]) -> dict[str, list[str]]:
    """Labels with the values that are left out."""
    found: dict[str, list[str]] = {}
    for word in words:
        label, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"--without {word}", expected="LABEL=VALUE")
        found.setdefault(label, []).append(value)
    return found


def _said(validation: Validation) -> str:
    con = "" if validation.con is None else f"con {100 * validation.con:.1f}, "
    return f"held out: {con}agree {100 * validation.agree:.1f}, acc {100 * validation.acc:.1f}, loss {validation.loss:.4f}"


def _print(trained: Trained, as_json: bool) -> None:
    if as_json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(trained)))
        return
    print(f"{trained.folder}: {trained.parameters:,} parameters, trained on {trained.groups:,} groups")
    if trained.validations:
        print(f"before: {_said(trained.validations[0])}")
        print(f"after:  {_said(trained.validations[-1])}")
