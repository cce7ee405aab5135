#!/usr/bin/env bash
# Guess: with `fail_on_error=False`, a question on which the model fails (an image that the server refuses, a context
# that is too long) counts as not correct, or the result says that the accuracy covers fewer questions.
# What happens: such a sample gets no score, and `accuracy` is the mean over the others. Here the model fails on four
# of six questions and answers two rightly: the status is "success", the accuracy 1.0, and `unscored_samples` 0.
# What it changes: a model that fails on hard questions gets a higher accuracy than one that answers them wrongly,
# and two models are compared on different questions. Compare `scored_samples` with the number of samples first.
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
from inspect_ai.scorer import match
from inspect_ai.solver import generate

print("inspect-ai", version("inspect-ai"))


def reply(messages, tools, tool_choice, config):
    if "large" in messages[-1].text:
        raise RuntimeError("HTTP 400: the image is too large")
    output = ModelOutput.from_content("mockllm/model", "a kite")
    output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
    return output


samples = [
    Sample(f"What does the child hold in the {size} image {number}?", target="a kite", id=f"{size} {number}")
    for number, size in enumerate(["small"] * 2 + ["large"] * 4)
]
task = Task(MemoryDataset(samples), solver=generate(), scorer=match(), fail_on_error=False)
model = get_model("mockllm/model", custom_outputs=reply)
[log] = evaluate(task, model=model, log_dir="logs", display="none", max_samples=1)
[score] = log.results.scores
accuracy = score.metrics["accuracy"].value
failed = sum(sample.error is not None for sample in log.samples)
print(log.status, "accuracy", accuracy, "of", len(log.samples), "samples,", failed, "failed")
print("scored_samples", score.scored_samples, "unscored_samples", score.unscored_samples)
assert (log.status, accuracy, failed) == ("success", 1.0, 4), "the behaviour has changed"
assert (score.scored_samples, score.unscored_samples) == (2, 0), "the behaviour has changed"
PYTHON
