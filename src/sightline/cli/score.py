"""`sightline score`: judge answers that any tool collected, and compute the metrics."""

from __future__ import annotations

import argparse
import json

from sightline.cli.options import Parser, add_evaluation, columns, options_of, pairs
from sightline.evaluation.spec import ScoreOptions, spec_of

EXAMPLE = """examples:
  sightline score codis outputs.json --data data/codis --against GPT-4V
  sightline score iibench:none yi-vl-6b-chat_test_none.jsonl.gz --data data/iibench --answers key.json
  sightline score codis results/answers.jsonl --data data/codis --judge openai/gpt-4o
  sightline score contextual master.json --data data/contextual --model gemini-pro-vision --allow-missing
  sightline score mmr3:restyling answers.jsonl
  sightline score groups:mine.jsonl --explain            which rule read each response, and which words
  sightline score groups:mine.jsonl                      the lines of mine.jsonl have a field `response`
  sightline score groups:mine.jsonl table.xlsx --columns id=question_id,response=answer
  sightline score groups samples_pope.jsonl --judge lmms-eval    a task of another tool, with its scores
  sightline score groups samples_mme.jsonl --judge lmms-eval --columns group=input_media

FILE is an answers.jsonl, a file in the released format of CODIS, II-Bench or ConTextual, sample logs of
lm-eval or lmms-eval, a log of inspect_ai, a table of VLMEvalKit, reviews of evalscope, or JSON lines of
{"id", "variant", "response"}; it may be gzipped. For mmr3 and groups, lines of {"group", "variant",
"response", "references": [...], "labels": {...}} need no data folder.
"""


def register(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    groups = add_evaluation(parser, ScoreOptions)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="the answers; default for groups:FILE: the field `response` of its own lines",
    )
    add = groups["data"].add_argument
    add(
        "--answers",
        action="append",
        dest="set",
        type=lambda file: f"answers={json.dumps(file)}",
        metavar="FILE",
        help="answer key or references, for a split that is released without (test of II-Bench and"
        " ConTextual); the same as --set answers=FILE",
    )
    add(
        "--with",
        action="append",
        default=[],
        dest="partners",
        metavar="SETTING=FILE",
        help="answers under another setting, for metrics that need them, as no-context=FILE; may repeat",
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    import asyncio

    from sightline.cli.printing import print_evaluation
    from sightline.evaluation.score import score_file

    options.columns = columns(options.columns)
    spec = spec_of(options.task, options_of(options, ScoreOptions), ScoreOptions)
    partners = {name: str(file) for name, file in pairs(options.partners, "--with").items()}
    evaluation = asyncio.run(score_file(spec, options.file, partners, show_progress=not options.quiet))
    return print_evaluation(evaluation, options.format, options.by, whole=options.all)
