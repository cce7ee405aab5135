"""The distinct numbers of an array are those of numpy, which needs another import for them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sightline.metrics.distinct import distinct


@given(st.lists(st.integers(-5, 5) | st.integers(-(2**60), 2**60), max_size=50))
def test_the_distinct_numbers_are_those_of_numpy(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.int64)
    found = distinct(array)
    assert found.dtype == array.dtype
    assert found.tolist() == np.unique(array).tolist()


def test_a_run_that_rules_judge_does_not_import_numpys_masked_arrays(tmp_path: object) -> None:
    code = (
        "import sys, sightline\n"
        "from sightline.formats.groups import GroupLine, write_groups\n"
        "from pathlib import Path\n"
        "lines = [GroupLine(f'g{n}', 'v', prompt=str(n), references=('3',)) for n in range(9)]\n"
        "write_groups(lines, Path('g.jsonl'))\n"
        "sightline.run('groups:g.jsonl', model='baseline/chance', set={'embedder': 'none'}, out='out')\n"
        "print('numpy.ma' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=str(tmp_path), capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "False"
