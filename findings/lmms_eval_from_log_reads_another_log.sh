#!/usr/bin/env bash
# Guess: lmms-eval's model `from_log` scores the log that `--log_samples` of the same version wrote.
# What happens: it looks for *.json files with the fields `args`, `logs` and `model_configs`, which this version
# does not write: its samples are in *_samples_TASK.jsonl, with the responses in `filtered_resps`. Each file that
# does not fit is skipped without a word, and the run ends with "KeyError: 'colours'", the name of the task.
# What it changes: collected responses cannot be scored again without their model, as with a mended reader; a log
# has to be rewritten in the older form first.
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
printf '{"prompt": "Which letter is it?", "answer": "A"}\n{"prompt": "And this?", "answer": "B"}\n' >questions.jsonl
export HF_HOME=$folder/hf HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 LMMS_EVAL_HOME=$folder/lmms_eval
words=(--tasks colours --include_path task --batch_size 1 --log_samples)
env/bin/python -m lmms_eval --model dummy "${words[@]}" --output_path written >first.txt 2>&1
echo "lmms-eval $(env/bin/python -c 'from importlib.metadata import version; print(version("lmms-eval"))')"
find written -type f | sed 's/.*results\.json/..._results.json/; s/.*_samples/..._samples/' | sort
grep '|colours' first.txt
env/bin/python -m lmms_eval --model from_log --model_args logs=written "${words[@]}" --output_path again >second.txt 2>&1 || true
grep -o "KeyError: .*" second.txt || { echo "the behaviour has changed" >&2; exit 1; }
