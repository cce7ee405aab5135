"""The functions of the task: what is sent, and how a response is scored."""

from __future__ import annotations

import re
from typing import Any

from PIL import Image

LETTER = re.compile(r"\(([A-F])\)")


def messages(doc: dict[str, Any]) -> list[dict[str, Any]]:
    """The chat of a question: the path of its image, and its prompt."""
    content = [{"type": "image", "url": doc["image"]}, {"type": "text", "text": doc["prompt"]}]
    return [{"role": "user", "content": content}]


def images(doc: dict[str, Any]) -> list[Image.Image]:
    """The image of a question."""
    return [Image.open(doc["image"])]


def outcome(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Whether the response has the letter A in parentheses, as in the driver of inspect_ai."""
    found = LETTER.search(results[0])
    return {"acc": float(found is not None and found[1] == "A")}


def no_images(_: dict[str, Any]) -> list[Image.Image]:
    """The questions of perf/scoring.py have no image."""
    return []


def chosen(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Whether lmms-eval's reader of options finds the right letter."""
    from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer

    letters = list("ABCDEF"[: len(doc["options"])])
    return {"acc": float(extract_mcq_answer(results[0], letters) == doc["letter"])}
