"""`sightline score`: judge and report answers that were collected before, by any tool."""

from __future__ import annotations

import argparse

from sightline.cli.options import add_evaluation, chosen, pairs, spec_of

EXAMPLE = """examples:
  sightline score codis outputs.json --data data/codis --against GPT-4V
  sightline score iibench:none yi-vl-6b-chat_test_none.jsonl.gz --data data/iibench --answers key.json
  sightline score codis results/answers.jsonl --data data/codis --judge openai/gpt-4o
  sightline score contextual master.json --data data/contextual --model gemini-pro-vision --allow-missing
  sightline score mmr3:restyling answers.jsonl

FILE may be our answers.jsonl, the released layouts of CODIS, II-Bench and ConTextual, lmms-eval's sample
logs, VLMEvalKit's tables, or plain JSON lines of {"id", "variant", "response"}; each may be gzipped. For
mmr3 and groups, lines of {"group", "variant", "response", "references": [...], "labels": {...}} need no data
folder.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `score`."""
    parser.epilog = EXAMPLE
    add_evaluation(parser)
    parser.add_argument("file", metavar="FILE", help="the answers")
    parser.add_argument(
        "--answers",
        metavar="FILE",
        help="answer key or references, for a split released without (test of II-Bench and ConTextual)",
    )
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="count missing answers as wrong instead of refusing the file",
    )
    parser.add_argument(
        "--with",
        action="append",
        default=[],
        dest="partners",
        metavar="SETTING=FILE",
        help="answers under another setting, for metrics that need them (no-context=FILE)",
    )
    parser.add_argument(
        "--model",
        default="",
        metavar="NAME",
        help="the model's name in results (default: the file's); of a file of several models, the one scored",
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Score the file; the exit status is that of the evaluation."""
    import asyncio

    from sightline.cli.printing import print_evaluation
    from sightline.evaluation.score import ascore

    choice = chosen(options)
    if options.answers:
        choice["answers"] = options.answers
    spec = spec_of(options, model=options.model, set=choice, allow_missing=options.allow_missing)
    partners = {name: str(file) for name, file in pairs(options.partners, "--with").items()}
    evaluation = asyncio.run(ascore(spec, options.file, partners, show_progress=not options.quiet))
    return print_evaluation(evaluation, options.format, options.by)
