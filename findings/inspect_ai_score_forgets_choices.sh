#!/usr/bin/env bash
# Guess: `inspect score` with the choice scorer, on the log of a multiple-choice evaluation that used this scorer,
# gives the accuracy of the evaluation again.
# What happens: it gives 0. The solver `multiple_choice` reads the response and marks the option that it chooses;
# the scorer looks at the marks only, and the log does not keep them. Every sample becomes incorrect, with the
# reason "invalid_response_format", although its response is "ANSWER: B". There is no warning, and the status is 0.
# What it changes: a log that is scored again loses all points; `--action overwrite --overwrite` replaces the right
# scores in the file. A scorer that reads the response itself has to be given instead.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet inspect-ai==0.3.285
cat >"$folder/evaluate.py" <<'PYTHON'
import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice


def output() -> ModelOutput:
    found = ModelOutput.from_content("mockllm", "ANSWER: B")
    found.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it downloads a tokenizer
    return found


question = "What does the child hold?"
samples = [
    Sample(id=number, input=question, choices=["a kite", "a drum", "a boat"], target="B") for number in range(4)
]
inspect_ai.eval(
    inspect_ai.Task(dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice()),
    get_model("mockllm/model", custom_outputs=[output() for _ in samples]),
    log_dir="logs",
    display="none",
)
PYTHON
cd "$folder"
env/bin/python evaluate.py
env/bin/inspect score logs/*.eval --scorer choice --action append --output-file again.eval >/dev/null
env/bin/python - <<'PYTHON'
from importlib.metadata import version

from inspect_ai.log import read_eval_log

print("inspect-ai", version("inspect-ai"))
log = read_eval_log("again.eval")
found = {one.name: one.metrics["accuracy"].value for one in log.results.scores}
again = log.samples[0].scores["choice1"]
print("accuracy of the evaluation and of `inspect score`:", found)
print(repr(log.samples[0].output.completion), "->", again.value, again.reason)
assert found == {"choice": 1.0, "choice1": 0.0}, "the behaviour has changed"
assert again.reason == "invalid_response_format", "the behaviour has changed"
PYTHON
