#!/usr/bin/env bash
# Guess: a multiple-choice response that a reader cannot read counts as no answer, or as wrong.
# What happens: the reader that lmms-eval uses for MMMU chooses an option at random then, without a word in the
# results. This is so for an empty response, and also for "**B**", "B) a drum" and the text of an option.
# What it changes: an empty response is right in one of four cases, such scores have a floor of 25 %, and a
# bold or bracketed letter loses three of four points. The same responses get another score with another seed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --no-deps lmms-eval==0.7.3 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
import random
import runpy
from collections import Counter
from importlib.metadata import distribution

package = distribution("lmms-eval")
print("lmms-eval", package.version)
module = runpy.run_path(str(package.locate_file("lmms_eval/tasks/_task_utils/mmmu_mcq_utils.py")))
texts, letters = module["get_multi_choice_info"](["a kite", "a drum", "a boat", "a house"])
random.seed(0)
for response in ("B", "", "I cannot see the image.", "**B**", "B) a drum", "a drum"):
    read = Counter(module["parse_mmmu_multi_choice_response"](response, letters, texts) for _ in range(400))
    print(f"{response!r}, read 400 times -> {dict(sorted(read.items()))}")
    assert len(read) == (1 if response == "B" else 4), "the behaviour has changed"
PYTHON
