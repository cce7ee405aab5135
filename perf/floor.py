"""The bare client with Sightline's own prompts, so that a seeded server treats both alike.

The server's latencies and failures are seeded by each request's texts and images: only with the same
prompts do the two clients meet the same ones, and their times can be compared run by run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

INSTRUCTION = (
    "Instruction: Please try to answer the single-answer multiple choice question below based on the "
    "image provided."
)


def prompt(question: str, options: list[str]) -> str:
    """II-Bench's prompt of setting none."""
    listed = "".join(f"({letter}) {option}\n" for letter, option in zip("ABCDEF", options, strict=False))
    return f"{INSTRUCTION}\nQuestion: {question}\n{listed}Answer:\n"


def main() -> None:
    """Run the client: floor.py TOOLS_FOLDER PORT CONCURRENCY."""
    tools, port, concurrency = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    spec = importlib.util.spec_from_file_location("bare_client", tools / "bare_client.py")
    assert spec is not None
    assert spec.loader is not None
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    client.__dict__["prompt"] = prompt

    class Words:
        lib = "aiohttp"
        preload = False
        limit = 0
        repeat = 1
        out = "/dev/null"

    words = Words()
    words.__dict__.update(port=int(port), concurrency=int(concurrency))
    asyncio.run(client.main(words))


if __name__ == "__main__":
    main()
