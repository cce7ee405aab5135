#!/usr/bin/env bash
# Guess: every_eval_ever converts an inspect_ai log of 2 epochs into a line per answer with that answer's score:
# two answers right, two wrong.
# What happens: each line gets the score of its sample reduced over the epochs, here 0.5, and `is_correct` is
# "above 0": all four answers are correct, and the wrong ones too. The validator passes the files.
# What it changes: with epochs, the share of correct lines is that of samples with any right answer (pass@k), not
# accuracy: 100 % here, where the aggregate file next to it says 0.5. Take `is_correct` from logs of one epoch only.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.12 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet 'every-eval-ever[inspect]==0.3.0' inspect-ai==0.3.285
cd "$folder"
env/bin/python - <<'PYTHON'
from importlib.metadata import version

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match

print("every-eval-ever", version("every-eval-ever"), "inspect-ai", version("inspect-ai"))
outputs = []
for response in ("red", "blue", "blue", "red"):
    output = ModelOutput.from_content("mockllm", response)
    # Without usage, mockllm counts tokens with a tokenizer from the network.
    output.usage = ModelUsage(input_tokens=9, output_tokens=1, total_tokens=10)
    outputs.append(output)
samples = MemoryDataset([Sample(id=name, input="Which colour?", target="red") for name in "ab"])
model = get_model("mockllm/model", custom_outputs=outputs)
(log,) = eval(Task(dataset=samples, scorer=match(), epochs=2), model=model, log_dir="made", display="none")
log.eval.model = "openai/gpt-4o"  # the converter refuses a model whose developer it does not know
write_eval_log(log, "logs/log.eval")
PYTHON
env/bin/every_eval_ever convert inspect --log_path logs --output_dir data --source_organization_name me \
  --evaluator_relationship other
env/bin/every_eval_ever validate data/*/*/*/*.json data/*/*/*/*.jsonl
env/bin/python - <<'PYTHON'
import json
from pathlib import Path

(lines,), (log,) = Path("data").rglob("*_samples.jsonl"), Path("data").rglob("*.json")
found = []
for line in map(json.loads, lines.read_text().splitlines()):
    found.append((line["output"]["raw"][0], line["evaluation"]["score"], line["evaluation"]["is_correct"]))
    print(line["sample_id"], "epoch", line["metadata"]["epoch"], *found[-1])
score = json.loads(log.read_text())["evaluation_results"][0]["score_details"]["score"]
print("aggregate score:", score)
assert sorted(found) == [("blue", 0.5, True)] * 2 + [("red", 0.5, True)] * 2, "the behaviour has changed"
assert score == 0.5
PYTHON
