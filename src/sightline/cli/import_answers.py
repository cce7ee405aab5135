"""`sightline import`: convert predictions of other tools to answers.jsonl."""

from __future__ import annotations

import argparse
from pathlib import Path

from sightline.cli.options import add_options, add_plugins, columns, pairs
from sightline.evaluation.spec import ScoreOptions
from sightline.text import counted, print_line, print_note

EXAMPLE = """examples:
  sightline import model_samples_ii_bench.jsonl --task iibench:none --data data/iibench --out answers.jsonl
  sightline import outputs.json --task codis --data data/codis --out answers.jsonl
  sightline import master.json --task contextual --judgements gpt4_judgments.json --allow-missing \\
      --data data/contextual --out answers.jsonl --verdicts verdicts.jsonl

FILE is a file in the released format of CODIS, ConTextual or II-Bench, sample logs of lm-eval or lmms-eval,
a log of inspect_ai, a table of VLMEvalKit, reviews of evalscope, or JSON lines of {"id", "variant",
"response"}; it may be gzipped. `import` does not judge; `sightline score` does. --verdicts receives the
verdicts that FILE contains, for `--judge human:FILE`. If FILE has answers of several models, the field
`version` names the model: `score --model NAME` reads those of one model, `judge-report --task` reads all.
"""


def register(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("file", metavar="FILE", help="the predictions")
    parser.add_argument(
        "--task", required=True, metavar="TASK", help="task of the answers: codis, or iibench:SETTING"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the answers.jsonl to write")
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="data folder in the released format (default: SIGHTLINE_DATA), to check ids and to add "
        "questions, labels and references; without it, only the content of FILE is used",
    )
    parser.add_argument("--split", metavar="S", help="split of the data")
    parser.add_argument(
        "--allow-missing", action="store_true", help="leave missing answers out instead of refusing FILE"
    )
    parser.add_argument("--model", default="", metavar="NAME", help="only this model's answers of FILE")
    parser.add_argument(
        "--verdicts", metavar="FILE", help="verdicts.jsonl to write, with the verdicts that FILE contains"
    )
    parser.add_argument(
        "--judgements", metavar="FILE", help="ConTextual's gpt4_judgments.json for these answers"
    )
    add_options(parser, ["reasoning_tags", "repeated", "columns"], options=ScoreOptions)
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    add_plugins(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    from sightline.benchmarks.registry import benchmark as find_benchmark
    from sightline.errors import UserError
    from sightline.evaluation.options import reasoning_names, setting_of, variant_of
    from sightline.evaluation.score import import_answers, read_answers
    from sightline.evaluation.spec import Spec
    from sightline.evaluation.summary import ReasoningCounts, doubts
    from sightline.formats.files import refuse_overwriting
    from sightline.formats.jsonl import contradictions, write_answers, write_verdicts
    from sightline.formats.other_tools import only_of_model
    from sightline.scoring.reasoning import check_names, tag_notes

    out, file = Path(options.out), Path(options.file)
    for path in (out, *map(Path, filter(None, [options.verdicts]))):
        refuse_overwriting(path, options.force, read=[file])
    spec = Spec(
        task=options.task,
        data=options.data,
        split=options.split,
        allow_missing=options.allow_missing,
        reasoning_tags=options.reasoning_tags,
        repeated=options.repeated,
        columns=pairs(columns(options.columns), "--columns"),
    )
    check_names(reasoning_names(spec))
    benchmark = find_benchmark(spec.task.partition(":")[0])
    variant = variant_of(benchmark, setting_of(benchmark, spec.task))
    read = read_answers(spec, benchmark, variant, file)
    if options.judgements:
        read = benchmark.add_judgements(read, Path(options.judgements))
    chosen = only_of_model(read, options.model, file) if options.model else read
    found = import_answers(spec, chosen, file)
    verdicts = [verdict for one in found for verdict in one.verdicts]
    if options.verdicts and not verdicts:
        raise UserError("contains no verdicts", file=file, expected="no --verdicts")
    write_answers([one.outcome for one in found], out)
    print_line(f"written: {out} ({counted(len(found), 'answer')}, not judged)")
    if found and all(one.outcome.response in one.outcome.references for one in found):
        print_note("each answer equals its reference: FILE may be the data set itself")
    counts = ReasoningCounts()
    for one in found:
        counts.add(one.outcome)
    texts = [text for one in chosen for text in (one.response, one.reasoning)]
    unseen = tag_notes(reasoning_names(spec), texts)
    for note in (*counts.notes(), *unseen, *doubts(chosen, options.repeated)):
        print_note(note)
    if options.verdicts:
        write_verdicts(verdicts, Path(options.verdicts))
        print_line(f"written: {options.verdicts} ({counted(len(verdicts), 'verdict')})")
        for line in contradictions(verdicts):
            print_note(f"contradicted: {line}")
    return 0
