"""Scores a log with lmms-eval's `--model from_log`; perf/scoring.py runs it in lmms-eval's environment.

    lmms_eval_scoring.py write|score|accuracy ANSWERS FOLDER

`write` makes the questions of the task and the log from ANSWERS (JSON lines), `score` runs the command,
`accuracy` prints what it counted. The log has the form that `from_log` reads: version 0.7.3 writes another
one, which it does not read.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parent / "lmms_eval_task"


def write(answers: Path, folder: Path) -> None:
    lines = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    with (folder / "answered.jsonl").open("w", encoding="utf-8") as file:
        for line in lines:
            letter = "ABCDEF"[line["options"].index(line["references"][0])]
            question = {"prompt": line["prompt"], "options": line["options"], "letter": letter}
            file.write(json.dumps(question) + "\n")
    log = {
        "args": {"model": "mock", "model_args": "", "limit": None},
        "model_configs": {"task": "collected_answers"},
        "logs": [{"doc_id": number, "resps": [[line["response"]]]} for number, line in enumerate(lines)],
    }
    (folder / "logs").mkdir()
    (folder / "logs/log.json").write_text(json.dumps(log), encoding="utf-8")


def main() -> None:
    """Do one of the three steps."""
    step, answers, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if step == "write":
        write(answers, folder)
    elif step == "score":
        os.chdir(folder)
        os.environ |= {
            "HF_HOME": str(folder / "hf"),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "LMMS_EVAL_HOME": str(folder / "lmms_eval"),
        }
        words = (
            "--model from_log --model_args logs=logs --tasks collected_answers --batch_size 1 --log_samples"
        )
        sys.argv = ["lmms_eval", *words.split(), "--include_path", str(TASK), "--output_path", "results"]
        from lmms_eval.__main__ import cli_evaluate

        cli_evaluate()
    else:
        (written,) = (folder / "results").rglob("*_results.json")
        print(json.loads(written.read_bytes())["results"]["collected_answers"]["acc,none"])


if __name__ == "__main__":
    main()
