#!/usr/bin/env bash
# Guess: `doc_hash` in a sample log of lmms-eval is a digest of the document, and `task_hashes` in the results is
# one of all documents, so that equal hashes say that two runs were asked the same questions.
# What happens: requests no longer hold their document when they are logged. Each doc_hash is the SHA-256 of
# "null", and the task_hashes of two different data sets of the same length are equal.
# What it changes: a comparison that relies on these hashes takes runs on other questions, or on another revision
# of the data, for runs on the same items.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet lmms-eval==0.7.3 filelock==3.20.0
"$folder/env/bin/pip" uninstall --quiet --yes torchvision  # it may not fit torch, and is not needed here
cd "$folder"
mkdir task
cat >task/colours.yaml <<'YAML'
task: colours
dataset_path: json
dataset_kwargs:
  data_files:
    test: questions.jsonl
test_split: test
output_type: generate_until
doc_to_visual: !function functions.images
doc_to_text: "{{prompt}}"
doc_to_target: "{{answer}}"
process_results: !function functions.outcome
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
YAML
cat >task/functions.py <<'PYTHON'
def images(doc):
    return []


def outcome(doc, results):
    return {"acc": float(results[0] == doc["answer"])}
PYTHON
export HF_HOME=$folder/hf HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 LMMS_EVAL_HOME=$folder/lmms_eval
evaluate() {
    printf '%s\n' "$2" "$3" >questions.jsonl
    env/bin/python -m lmms_eval --model dummy --tasks colours --include_path task --batch_size 1 --log_samples \
        --output_path "$1" >"$1.txt" 2>&1
}
evaluate first '{"prompt": "Which colour is the bus?", "answer": "red"}' '{"prompt": "And the car?", "answer": "blue"}'
evaluate second '{"prompt": "How many dogs?", "answer": "2"}' '{"prompt": "How many cats?", "answer": "3"}'
env/bin/python - <<'PYTHON'
import hashlib
import json
from importlib.metadata import version
from pathlib import Path

print("lmms-eval", version("lmms-eval"))
hashes = []
for run in ("first", "second"):
    (samples,) = Path(run).rglob("*_samples_colours.jsonl")
    (results,) = Path(run).rglob("*_results.json")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    hashes.append([[line["doc_hash"] for line in lines], json.loads(results.read_text())["task_hashes"]["colours"]])
    for line in lines:
        print(run, repr(line["input"]), line["doc_hash"][:16])
    print(run, "task_hashes", hashes[-1][1][:16])
of_null = hashlib.sha256(b"null").hexdigest()
print("SHA-256 of null", of_null[:16])
assert hashes[0] == hashes[1], "the behaviour has changed"
assert set(hashes[0][0]) == {of_null}, "the behaviour has changed"
PYTHON
