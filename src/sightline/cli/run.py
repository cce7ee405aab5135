"""`sightline run`: send the requests of benchmarks to models, judge the answers, compute the metrics."""

from __future__ import annotations

import argparse

from sightline.cli.options import Parser, add_dry_run, add_evaluation, options_of
from sightline.evaluation.spec import RunOptions, spec_of

EXAMPLE = """examples:
  sightline run codis --model http://localhost:8000/v1#llava --data data/codis --out results/llava
  sightline run codis iibench:cot --model openai/gpt-4o --model openai/gpt-4o-mini --data data
  sightline run iibench:cot --model openai/gpt-4o --data data/iibench --split dev --limit 50
  sightline run codis --model baseline/chance --data data/codis --dry-run
  sightline run contextual --augment layout --model openai/gpt-4 --data data/contextual
  sightline run iibench --model openai/gpt-4o --data data/iibench --batch
  sightline run codis --model vllm/llava-hf/llava-1.5-7b-hf --data data/codis --on slurm:gpu --dry-run
"""


def register(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    groups = add_evaluation(parser, RunOptions, several=True)
    add_dry_run(groups["requests"])
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    import asyncio

    given = options_of(options, RunOptions, omitted=["model"])
    specs = [spec_of(task, {**given, "model": options.model[0]}, RunOptions) for task in options.task]
    if len(specs) > 1 or len(options.model) > 1:
        from sightline.cli.sweep import run_points
        from sightline.evaluation.sweep import plan_sweep

        return run_points(plan_sweep(specs, options.model, {}, {}), options)
    (spec,) = specs
    if options.dry_run:
        from sightline.cli.printing import print_estimate
        from sightline.evaluation.estimate import estimate_run

        print_estimate(estimate_run(spec), options.format)
        return 0
    from sightline.cli.printing import print_evaluation
    from sightline.interop.tracking import run_tracked

    try:
        evaluation = asyncio.run(run_tracked(spec, show_progress=not options.quiet))
    except KeyboardInterrupt as interruption:
        # The event loop cancels the evaluation, which says what it keeps.
        raise KeyboardInterrupt(str(interruption.__context__ or "")) from None
    return print_evaluation(evaluation, options.format, options.by, spec.name, whole=options.all)
