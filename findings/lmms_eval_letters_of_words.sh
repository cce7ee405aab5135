#!/usr/bin/env bash
# Guess: a reader of "The answer is B, because the Dog is black." takes the letter that follows "the answer is".
# What happens: lmms-eval's extract_mcq_answer takes any A, B, C or D behind such a phrase, at any distance and
# within words, and prefers the last one. Here it reads D, of "Dog". A response that begins with the word "A"
# chooses A. Lower-case letters are not read.
# What it changes: whether an answer counts depends on capital letters in its explanation. Responses with
# reasons or names get other options than short ones, so models are compared by their style.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --no-deps lmms-eval==0.7.3
"$folder/env/bin/python" - <<'PYTHON'
import runpy
from importlib.metadata import distribution

package = distribution("lmms-eval")
print("lmms-eval", package.version)
# The module imports nothing but typing; the package around it would import torch.
module = runpy.run_path(str(package.locate_file("lmms_eval/tasks/_task_utils/mcq_extract.py")))
read = module["extract_mcq_answer"]
expected = {
    "The answer is B.": "B",
    "The answer is B, because the Dog is black.": "D",
    "The answer is B. Cats are smaller.": "C",
    "The correct answer is A: the sign says CLOSED.": "D",
    "A dog sits next to a cat.": "A",
    "b": "",
}
found = {response: read(response, ["A", "B", "C", "D"]) for response in expected}
for response, letter in found.items():
    print(f"{response!r} -> {letter!r}")
assert found == expected, "the behaviour has changed"
PYTHON
