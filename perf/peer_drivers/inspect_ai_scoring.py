"""Scores a log with `inspect score`; perf/scoring.py runs it in inspect_ai's environment.

    inspect_ai_scoring.py write|score|accuracy ANSWERS FOLDER

`write` makes a log of ANSWERS (JSON lines) with inspect_ai's writer, `score` runs the command, `accuracy`
prints what it counted. The choice scorer alone reads nothing in a log: the solver `multiple_choice` reads the
response and marks the option, and marks are not kept in the log. So the scorer here reads and marks first,
with the same function.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from inspect_ai.scorer import Score, Scorer, Target, accuracy, choice, scorer, stderr
from inspect_ai.solver import TaskState


@scorer(metrics=[accuracy(), stderr()])
def choice_of_log() -> Scorer:
    from inspect_ai.solver._multiple_choice import parse_answers

    inner = choice()

    async def score(state: TaskState, target: Target) -> Score | None:
        read = parse_answers(state, multiple_correct=False)
        for position in range(len(state.choices)):
            state.choices.mark_choice(position, "ABCDEF"[position] in read)
        return await inner(state, target)

    return score


def write(answers: Path, log: Path) -> None:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageUser, ModelOutput

    samples = []
    for number, line in enumerate(map(json.loads, answers.read_text(encoding="utf-8").splitlines())):
        output = ModelOutput.from_content("mockllm/model", line["response"])
        samples.append(
            EvalSample(
                id=number,
                epoch=1,
                input=line["prompt"],
                choices=line["options"],
                target="ABCDEF"[line["options"].index(line["references"][0])],
                messages=[ChatMessageUser(content=line["prompt"]), output.message],
                output=output,
            )
        )
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="collected",
        dataset=EvalDataset(samples=len(samples)),
        model="mockllm/model",
        config=EvalConfig(),
    )
    write_eval_log(EvalLog(eval=spec, status="success", samples=samples), str(log))


def main() -> None:
    """Do one of the three steps."""
    step, answers, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    log, scored = folder / "log.eval", folder / "scored.eval"
    if step == "write":
        write(answers, log)
    elif step == "score":
        from inspect_ai._cli.main import main as inspect

        words = ["score", str(log), "--scorer", f"{__file__}@choice_of_log", "--action", "overwrite"]
        sys.argv = ["inspect", *words, "--output-file", str(scored)]
        inspect()
    else:
        from inspect_ai.log import read_eval_log

        results = read_eval_log(str(scored), header_only=True).results
        assert results is not None
        print(results.scores[0].metrics["accuracy"].value)


if __name__ == "__main__":
    main()
