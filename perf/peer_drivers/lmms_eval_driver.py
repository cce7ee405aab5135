"""II-Bench with lmms-eval, as fast as its options allow; perf/peers.py runs it in lmms-eval's environment.

    lmms_eval_driver.py RECORDS PORT CONCURRENCY FOLDER LIMIT

It sends the questions of RECORDS (test.json), one user message each, to the server at PORT, and writes its
results to FOLDER. LIMIT 0 asks all. Images are sent as JPEG: lmms-eval encodes each image anew, by default
as PNG, which takes longer.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from floor import prompt

TASK = Path(__file__).resolve().parent / "lmms_eval_task"


def main() -> None:
    """Write the questions where the task reads them, and evaluate."""
    records, port, concurrency, folder, limit = sys.argv[1:]
    images = Path(records).parent
    questions = [
        {
            "prompt": prompt(question["question"], question["options"]),
            "image": str(images / record["local_path"]),
        }
        for record in json.loads(Path(records).read_text(encoding="utf-8"))
        for question in record["questions"]
    ]
    Path(folder).mkdir(parents=True)
    os.chdir(folder)
    Path("questions.jsonl").write_text("".join(json.dumps(question) + "\n" for question in questions))
    os.environ |= {
        "HF_HOME": str(Path("hf").resolve()),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "LMMS_IMAGE_ENCODE_FORMAT": "JPEG",
        "LMMS_EVAL_HOME": str(Path("lmms_eval").resolve()),
    }
    model = {
        "model_version": "mock",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "api_key": "none",
        "num_concurrent": concurrency,
        "adaptive_concurrency": False,
        "prefix_aware_queue": False,
        "timeout": 120,
    }
    words = [
        "--model",
        "openai",
        "--model_args",
        ",".join(f"{name}={value}" for name, value in model.items()),
    ]
    words += ["--tasks", "iibench_test_server", "--include_path", str(TASK), "--batch_size", "1"]
    words += ["--output_path", "results", "--log_samples", *(["--limit", limit] if limit != "0" else [])]
    sys.argv = ["lmms_eval", *words]
    from lmms_eval.__main__ import cli_evaluate

    cli_evaluate()


if __name__ == "__main__":
    main()
