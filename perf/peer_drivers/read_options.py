"""The options that another tool reads in responses; perf/readers.py runs it in that tool's environment.

    read_options.py TOOL

It reads lines with `question`, `options`, `response` and `language` from standard input. It writes one JSON
object: the version, and for each reader of the tool the positions that it reads, null for none.
"""

from __future__ import annotations

import importlib.util
import json
import random
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distribution, version
from typing import Any

LETTERS = string.ascii_uppercase

Line = Mapping[str, Any]
Reader = Callable[[Line], "str | None"]
"""From a line to a letter."""


def inspect_ai_readers() -> dict[str, Reader]:
    from inspect_ai.model import ModelName, ModelOutput
    from inspect_ai.model._reasoning import parse_content_with_reasoning
    from inspect_ai.solver import TaskState
    from inspect_ai.solver._multiple_choice import parse_answers

    def choice(line: Line) -> str | None:
        state = TaskState(
            model=ModelName("mockllm/model"),
            sample_id=0,
            epoch=0,
            input=line["question"],
            messages=[],
            choices=list(line["options"]),
            output=ModelOutput.from_content("mockllm", parse_content_with_reasoning(line["response"])[0]),
        )
        return next(iter(parse_answers(state, multiple_correct=False)), None)

    return {"multiple_choice, choice": choice}


def lmms_eval_readers() -> dict[str, Reader]:
    """The modules are loaded alone: the packages around them import all that a model needs."""
    extract = _module_of_lmms_eval("mcq_extract").extract_mcq_answer
    mmmu = _module_of_lmms_eval("mmmu_mcq_utils")
    random.seed(0)  # the reader of MMMU guesses

    def parse_mmmu(line: Line) -> str:
        texts, letters = mmmu.get_multi_choice_info(line["options"])
        return str(mmmu.parse_mmmu_multi_choice_response(line["response"], letters, texts))

    return {
        "extract_mcq_answer": lambda line: extract(line["response"], list(LETTERS[: len(line["options"])])),
        "MMMU's reader": parse_mmmu,
    }


def _module_of_lmms_eval(name: str) -> Any:
    path = distribution("lmms-eval").locate_file(f"lmms_eval/tasks/_task_utils/{name}.py")
    spec = importlib.util.spec_from_file_location(name, str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lighteval_readers() -> dict[str, Reader]:
    """Korean is read as English: lighteval has no Korean word for 'answer', and fails without it."""
    from lighteval.metrics.utils import extractive_match_utils as match
    from lighteval.tasks.requests import Doc
    from lighteval.utils.language import Language

    languages = {
        "en": Language.ENGLISH,
        "de": Language.GERMAN,
        "fr": Language.FRENCH,
        "es": Language.SPANISH,
        "ru": Language.RUSSIAN,
        "zh": Language.CHINESE,
        "ja": Language.JAPANESE,
        "ko": Language.ENGLISH,
        "ar": Language.ARABIC,
        "pt": Language.PORTUGUESE,
        "eu": Language.BASQUE,
    }

    def reader(*, anywhere: bool) -> Reader:
        config = match.IndicesExtractionConfig(
            prefix_for_extraction="Letters", try_extract_without_anchor=anywhere
        )

        def read(line: Line) -> str | None:
            doc = Doc(query=line["question"], choices=list(line["options"]), gold_index=0)
            forms = match.get_extraction_regexes(doc, [config], languages[line["language"]])
            found = match.extract_target_from_pred(line["response"], forms, "first_match", "any_match")
            return str(found[0]) if found else None

        return read

    return {"letters with an anchor": reader(anywhere=False), "letters anywhere": reader(anywhere=True)}


TOOLS: Mapping[str, Callable[[], dict[str, Reader]]] = {
    "inspect_ai": inspect_ai_readers,
    "lmms_eval": lmms_eval_readers,
    "lighteval": lighteval_readers,
}


def main() -> None:
    """Read all lines with all readers of the tool."""
    tool = sys.argv[1]
    lines = [json.loads(line) for line in sys.stdin]
    readings = {
        name: [_position(read(line), line["options"]) for line in lines]
        for name, read in TOOLS[tool]().items()
    }
    json.dump({"version": version(tool.replace("_", "-")), "readings": readings}, sys.stdout)


def _position(letter: str | None, options: Sequence[str]) -> int | None:
    place = LETTERS.find(letter) if letter else -1
    return place if 0 <= place < len(options) else None


if __name__ == "__main__":
    main()
