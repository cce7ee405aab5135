#!/usr/bin/env bash
# Guess: a reply that the provider's content filter stopped, or that ran into a token limit, is not scored as an
# ordinary answer by inspect_ai: it is an error, or at least left out of the accuracy.
# What happens: every reply with text is scored alike, whatever its stop reason. The log's status is "success", no
# sample has an error, and the accuracy counts all four replies.
# What it changes: partial text beside "content_filter" and replies that were cut at "max_tokens" or "model_length"
# raise or lower the accuracy unseen. Count `output.stop_reason` over the samples of a log before you compare it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet inspect-ai==0.3.285
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

print("inspect-ai", version("inspect-ai"))
REASONS = ["stop", "content_filter", "max_tokens", "model_length"]


def reply(reason: str) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", "ANSWER: B", stop_reason=reason)
    output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
    return output


samples = [Sample("What does the child hold?", choices=["a kite", "a drum"], target="B", id=name) for name in REASONS]
task = Task(MemoryDataset(samples), solver=multiple_choice(), scorer=choice())
model = get_model("mockllm/model", custom_outputs=[reply(reason) for reason in REASONS])
[log] = evaluate(task, model=model, log_dir="logs", display="none", max_samples=1)
accuracy = log.results.scores[0].metrics["accuracy"].value
logged = sorted(log.samples, key=lambda sample: REASONS.index(sample.id))
found = [(sample.output.stop_reason, sample.scores["choice"].value, sample.error) for sample in logged]
print(log.status, accuracy)
for line in found:
    print(*line)
assert log.status == "success" and accuracy == 1.0, "the behaviour has changed"
assert found == [(reason, "C", None) for reason in REASONS], "the behaviour has changed"
PYTHON
