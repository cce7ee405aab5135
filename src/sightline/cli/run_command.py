"""`sightline run`: ask a model, judge its answers, report."""

from __future__ import annotations

import argparse
from typing import Any

from sightline.cli.options import add_augmenting, add_evaluation, add_model, chosen, pairs, spec_of
from sightline.errors import UserError

EXAMPLE = """examples:
  sightline run codis --model http://localhost:8000/v1#llava --data data/codis --out results/llava
  sightline run iibench:cot --model openai/gpt-4o --data data/iibench --against GPT-4o --limit 50
  sightline run codis --model baseline/chance --data data/codis --dry-run
  sightline run contextual --augment layout --model openai/gpt-4 --data data/contextual
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    parser.epilog = EXAMPLE
    add_evaluation(parser)
    add_model(parser, presets=True)
    parser.add_argument("--temperature", type=float, metavar="T", help="the same as --gen temperature=T")
    parser.add_argument(
        "--adapter", metavar="DIR", help="what `sightline adapter train` made: --model-arg adapter=DIR"
    )
    add_augmenting(parser.add_argument_group("images in words"))
    add_running(parser)
    parser.set_defaults(execute=execute)


def add_running(parser: argparse.ArgumentParser) -> None:
    """What only asking a whole benchmark takes."""
    parser.add_argument(
        "--repeats", type=int, default=1, metavar="N", help="ask everything N times, as draws kept apart"
    )
    parser.add_argument(
        "--fresh", default="", metavar="TAG", help="ask anew under this tag; nothing is deleted"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="estimate what would be asked, and ask nothing"
    )


def execute(options: argparse.Namespace) -> int:
    """Run it; the exit status is that of the evaluation."""
    import asyncio

    adapter = {} if options.adapter is None else {"adapter": options.adapter}
    spec = spec_of(
        options,
        model=options.model,
        set=chosen(options),
        gen=_sampling(options),
        preset=preset(options.gen),
        model_args={**pairs(options.model_arg, "--model-arg"), **adapter},
        model_id=options.model_id,
        repeats=options.repeats,
        fresh=options.fresh,
        augment=options.augment,
        captioner=options.captioner,
        captions=options.captions,
    )
    if options.dry_run:
        from sightline.cli.printing import print_estimate
        from sightline.evaluation.estimate import estimate

        print_estimate(estimate(spec), options.format)
        return 0
    from sightline.cli.printing import print_evaluation
    from sightline.evaluation.run import arun

    evaluation = asyncio.run(arun(spec, show_progress=not options.quiet))
    return print_evaluation(evaluation, options.format, options.by)


def preset(words: list[str]) -> str | None:
    """The one word of --gen that is no pair."""
    named = [word for word in words if "=" not in word]
    if len(named) > 1:
        raise UserError(f"--gen names two presets: {', '.join(named)}", expected="one")
    return named[0] if named else None


def _sampling(options: argparse.Namespace) -> dict[str, Any]:
    """What `--gen` and `--temperature` choose of the sampling options."""
    named = {} if options.temperature is None else {"temperature": options.temperature}
    return {**named, **pairs([word for word in options.gen if "=" in word], "--gen")}
