#!/usr/bin/env bash
# Guess: inspect_ai's choice scorer, made for multiple choice, reads a response that is only the letter "B".
# What happens: it reads only what follows the English word "ANSWER" and an ASCII colon. "B", "B) a drum" and
# "The answer is B." count as incorrect, not as no answer. "**Answer: B**" is read and "**Answer:** B" is not;
# a full-width colon and a label in another language are not read. (The solver's prompt asks for "ANSWER: B".)
# What it changes: the score measures whether a model keeps to the format. Models that answer by the bare
# letter, or in the language of the question, get 0; look at `reason` in the log before you compare scores.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet inspect-ai==0.3.285
"$folder/env/bin/python" - <<'PYTHON'
import asyncio
from importlib.metadata import version

from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Target, choice
from inspect_ai.solver import TaskState, multiple_choice

print("inspect-ai", version("inspect-ai"))


async def score(response: str) -> tuple[object, str | None]:
    question = "What does the child hold?"
    state = TaskState(
        model=ModelName("mockllm/model"),
        sample_id=1,
        epoch=1,
        input=question,
        messages=[ChatMessageUser(content=question)],
        choices=["a kite", "a drum", "a boat"],
    )

    async def generate(state, **_):
        state.output = ModelOutput.from_content("mockllm", response)
        state.messages.append(state.output.message)
        return state

    scored = await choice()(await multiple_choice()(state, generate), Target("B"))
    return scored.value, scored.reason


right, wrong = ("C", None), ("I", "invalid_response_format")  # "C" is correct, "I" is incorrect
expected = {
    "ANSWER: B": right,
    "**Answer: B**": right,
    "**Answer:** B": wrong,
    "B": wrong,
    "B) a drum": wrong,
    "The answer is B.": wrong,
    "ANSWER: a drum": wrong,
    "ANSWER：B": wrong,
    "答案：B": wrong,
}
found = {response: asyncio.run(score(response)) for response in expected}
for response, result in found.items():
    print(f"{response!r} -> {result}")
assert found == expected, "the behaviour has changed"
PYTHON
