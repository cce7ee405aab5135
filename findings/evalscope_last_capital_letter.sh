#!/usr/bin/env bash
# Guess: where a response to a multiple-choice question has no "ANSWER: X", evalscope counts no answer, as the
# docstring of its reader says ("we'll ultimately just mark it as incorrect").
# What happens: the last capital letter of the response is the answer if it names an option, in any word. "I cannot
# see the image. A clearer photo would help." chooses A, "Neither A nor B." chooses B, and "The answer is B, because
# the Dog is black." chooses D.
# What it changes: refusals and rejected options score as often as guesses, and by their capital letters. Models are
# compared by their style, and one without images gets a number above 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --no-deps evalscope==1.14.1
"$folder/env/bin/python" - <<'PYTHON'
import runpy
import sys
from importlib.metadata import distribution
from types import ModuleType, SimpleNamespace

package = distribution("evalscope")
print("evalscope", package.version)
# The module needs these names for its type hints only; the packages that hold them import all that a run needs.
for name in ("evalscope", "evalscope.api", "evalscope.api.evaluator"):
    sys.modules[name] = ModuleType(name)
vars(sys.modules["evalscope.api.evaluator"]).update(Choices=object, Target=object, TaskState=object)
module = runpy.run_path(str(package.locate_file("evalscope/utils/multi_choices.py")))


def read(response: str) -> str:
    state = SimpleNamespace(output=SimpleNamespace(completion=response), choices=["a bus", "a car", "a cat", "a dog"])
    return "".join(module["parse_answers"](state))


expected = {
    "ANSWER: B": "B",
    "I cannot see the image.": "",
    "I cannot see the image. A clearer photo would help.": "A",
    "Neither A nor B.": "B",
    "It is not C.": "C",
    "The answer is B, because the Dog is black.": "D",
}
found = {response: read(response) for response in expected}
for response, letter in found.items():
    print(f"{response!r} -> {letter!r}")
assert found == expected, "the behaviour has changed"
PYTHON
