#!/usr/bin/env bash
# Guess: a tool that takes <think> out of a response leaves only the answer for the scorer.
# What happens: inspect_ai's parse_content_with_reasoning takes out the first closed block. A second block stays
# in the answer. So does all reasoning without an opening tag, as servers return it where the chat template
# writes <think> into the prompt, and reasoning that was cut off before its end.
# What it changes: scorers that search the answer, such as includes(), find options and names that the model
# only considered. A response that rejects the target in its reasoning counts as correct.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet inspect-ai==0.3.285
"$folder/env/bin/python" - <<'PYTHON'
import asyncio
from importlib.metadata import version

from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.model._reasoning import parse_content_with_reasoning
from inspect_ai.scorer import Target, includes
from inspect_ai.solver import TaskState

print("inspect-ai", version("inspect-ai"))


def score(response: str) -> object:
    answer, _ = parse_content_with_reasoning(response)
    state = TaskState(
        model=ModelName("mockllm/model"),
        sample_id=1,
        epoch=1,
        input="Which city is shown?",
        messages=[ChatMessageUser(content="Which city is shown?")],
        output=ModelOutput.from_content("mockllm", answer),
    )
    return asyncio.run(includes()(state, Target("Paris"))).value


expected = {
    "<think>Paris? No, the river is the Saône.</think>\nLyon": "I",
    "<think>A river.</think>\n<think>Paris? No, it is the Saône.</think>\nLyon": "C",
    "Paris? No, the river is the Saône.\n</think>\nLyon": "C",
    "<think>Paris? No, the river is": "C",
}
found = {response: score(response) for response in expected}
for response, value in found.items():
    print(f"{response!r} -> {'correct' if value == 'C' else 'incorrect'}")
assert found == expected, "the behaviour has changed"
PYTHON
