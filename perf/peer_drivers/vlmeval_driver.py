"""II-Bench with VLMEvalKit, as fast as its options allow; perf/peers.py runs it in VLMEvalKit's environment.

    vlmeval_driver.py RECORDS PORT CONCURRENCY FOLDER LIMIT

It sends the questions of RECORDS (test.json), one user message each, to the server at PORT, and writes its
results to FOLDER. LIMIT 0 asks all. VLMEvalKit encodes each image anew, as JPEG, and sleeps before each call
for up to 0.5 s, on average 0.25 s; no option changes either.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from floor import prompt

LETTER = re.compile(r"\(([A-F])\)")


def main() -> None:
    """Evaluate as its command does: ask, write the table, count."""
    records, port, concurrency, folder, limit = sys.argv[1:]
    images = Path(records).parent
    rows = [
        {
            "index": question["id"],
            "image_path": str(images / record["local_path"]),
            "question": prompt(question["question"], question["options"]),
        }
        for record in json.loads(Path(records).read_text(encoding="utf-8"))
        for question in record["questions"]
    ]
    Path(folder).mkdir(parents=True)
    os.environ["LMUData"] = folder  # noqa: SIM112
    import pandas as pd
    from vlmeval.api import GPT4V
    from vlmeval.dataset.image_base import ImageBaseDataset
    from vlmeval.inference import infer_data_job
    from vlmeval.smp import load

    class IIBench(ImageBaseDataset):  # type: ignore[misc]
        TYPE = "VQA"

        def load_data(self, dataset: str) -> Any:
            return pd.DataFrame(rows[: int(limit) or None])

        def evaluate(self, eval_file: str, **_: Any) -> dict[str, float]:
            """The share of responses with the letter A in parentheses, as in the other drivers."""
            found = [LETTER.search(str(response)) for response in load(eval_file)["prediction"]]
            return {"acc": sum(one is not None and one[1] == "A" for one in found) / len(found)}

    dataset = IIBench("IIBench")
    model = GPT4V(
        model="mock",
        api_base=f"http://127.0.0.1:{port}/v1/chat/completions",
        key="none",
        max_tokens=1000,
        img_size=-1,
        timeout=120,
    )
    infer_data_job(model, folder, "mock", dataset, api_nproc=int(concurrency))
    print(dataset.evaluate(str(Path(folder, "mock_IIBench.xlsx"))))


if __name__ == "__main__":
    main()
