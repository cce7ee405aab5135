#!/usr/bin/env bash
# Guess: a `.eval_results/*.yaml` that follows the Hub's page (docs/hub/eval-results.md of huggingface/hub-docs at
# 064c7548) comes back unchanged from huggingface_hub's parse_eval_result_entries and eval_result_entries_to_yaml,
# and a value that is no number, or a date that is none, is refused.
# What happens: `evaluation_framework`, with which a result shows up as verified, is gone. Any value and date are
# written, and nothing says whether 41.2 and 0.412 are the same result: the page's own examples are 20.90 and 0.412.
# What it changes: a script that adds a result to a model's file takes the framework from the results that were
# there. Check value, scale and date yourself, and edit such files as YAML.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet huggingface_hub==2.4.0 pyyaml
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries

print("huggingface_hub", version("huggingface_hub"))
released = yaml.safe_load("""
- dataset:
    id: cais/hle
    task_id: default
  value: 20.90
  date: "2025-01-15"
  evaluation_framework: hle
  notes: "no-tools"
""")
again = eval_result_entries_to_yaml(parse_eval_result_entries(released))
lost = released[0].keys() - again[0].keys()
print("lost:", sorted(lost))
assert lost == {"evaluation_framework"}, "the behaviour has changed"
for value, date in ((41.2, "2025-01-15"), (0.412, "2025-01-15"), ("best", "some day")):
    entry = EvalResultEntry(dataset_id="Idavidrein/gpqa", task_id="gpqa_diamond", value=value, date=date)
    (written,) = eval_result_entries_to_yaml([entry])
    print("written:", written)
    assert (written["value"], written["date"]) == (value, date), "the behaviour has changed"
PYTHON
