#!/usr/bin/env bash
# Guess: the messages and the output in a log of inspect_ai are those of the conversation with the model, also where
# multiple_choice(shuffle=True) shuffles the options.
# What happens: prompt and reply are rewritten to the order of the data after the call: the messages show options that
# the model did not see in this order, and a letter that it did not write. Only the model event keeps the real call.
# What it changes: a bias towards a position ("always A") cannot be seen in messages, outputs or scores, and the
# responses of a log are not what a rerun of its prompts gives. Read `sample.events` to check what was sent.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet inspect-ai==0.3.285
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import re
from importlib.metadata import version
from random import Random

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import resolve_sample_attachments
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

print("inspect-ai", version("inspect-ai"))
OPTIONS = ["a kite", "a drum", "a boat", "a hat"]


def always_a() -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", "ANSWER: A")
    output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
    return output


samples = [Sample("What does the child hold?", choices=OPTIONS, target="B", id=number) for number in range(1, 7)]
task = Task(MemoryDataset(samples), solver=multiple_choice(shuffle=Random(0)), scorer=choice())
model = get_model("mockllm/model", custom_outputs=[always_a() for _ in samples])
[log] = evaluate(task, model=model, log_dir="logs", display="none", max_samples=1)
rewritten = 0
for sample in (resolve_sample_attachments(sample) for sample in log.samples):
    [call] = [event for event in sample.events if event.event == "model"]
    sent, logged = (re.findall(r"[A-D]\) (.*)", text) for text in (call.input[-1].text, sample.messages[0].text))
    print(f"sent {sent}, reply {call.output.completion!r}; log: {logged}, {sample.output.completion!r}")
    assert call.output.completion == "ANSWER: A" and logged == OPTIONS, "the behaviour has changed"
    letter = "ABCD"[OPTIONS.index(sent[0])]
    assert sample.output.completion == sample.messages[-1].text == f"ANSWER: {letter}", "the behaviour has changed"
    rewritten += sent != logged
assert rewritten, "the behaviour has changed"
PYTHON
