"""The bare client with Sightline's prompts, so that a seeded server treats both clients alike.

The server derives latencies and failures from the texts and images of each request: only with equal
prompts do both clients meet the same ones, and can their times be compared.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

INSTRUCTION = (
    "Instruction: Please try to answer the single-answer multiple choice question below based on the "
    "picture provided."
)


def prompt(question: str, options: list[str]) -> str:
    """Build II-Bench's prompt of the setting `none`.

    Args:
        question: The question.
        options: The texts of the options.

    Returns:
        The prompt.
    """
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
