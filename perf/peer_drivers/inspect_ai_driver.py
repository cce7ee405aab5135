"""II-Bench with inspect_ai, as fast as its options allow; perf/peers.py runs it in inspect_ai's environment.

    inspect_ai_driver.py RECORDS PORT CONCURRENCY LOGS LIMIT

It sends the questions of RECORDS (test.json), one user message each, to the server at PORT, and writes logs
without images to the folder LOGS. LIMIT 0 asks all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, get_model
from inspect_ai.scorer import pattern
from inspect_ai.solver import generate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from floor import prompt


def main() -> None:
    """Ask every question, and stop with an error unless the log says success."""
    records, port, concurrency, logs, limit = sys.argv[1:]
    folder = Path(records).parent
    samples = [
        Sample(
            id=question["id"],
            input=[
                ChatMessageUser(
                    content=[
                        ContentImage(image=str(folder / record["local_path"])),
                        ContentText(text=prompt(question["question"], question["options"])),
                    ]
                )
            ],
            target="A",
        )
        for record in json.loads(Path(records).read_text(encoding="utf-8"))
        for question in record["questions"]
    ]
    model = get_model(
        "openai/mock", base_url=f"http://127.0.0.1:{port}/v1", api_key="none", responses_api=False
    )
    task = inspect_ai.Task(
        dataset=MemoryDataset(samples[: int(limit) or None]),
        solver=generate(),
        scorer=pattern(r"\(([A-F])\)"),
    )
    (log,) = inspect_ai.eval(
        task,
        model,
        max_connections=int(concurrency),
        max_samples=2 * int(concurrency),
        max_tokens=1000,
        temperature=0,
        log_dir=logs,
        log_images=False,
        log_realtime=False,
        log_level="error",
        display="none",
    )
    if log.status != "success":
        raise SystemExit(f"inspect_ai: {log.status}: {log.error}")


if __name__ == "__main__":
    main()
