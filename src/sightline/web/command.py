"""The command that repeats a run and asks its model again."""

from __future__ import annotations

import shlex

from sightline.reporting.option_texts import option_text
from sightline.results.run_list import RunLine
from sightline.results.stored_run import StoredRun

OF_CODE = ("synthetic", "other_data", "data", "model_identity")
"""Listed options that no user sets."""


def ask_again_command(run: StoredRun, line: RunLine) -> str:
    """Write the command of a run with a new tag, so that cached answers are not used.

    Args:
        run: The run.
        line: The run in the list, with the options that differ from the defaults.

    Returns:
        The command line. DIR stands for the data folder, which the store does not keep.
    """
    words = ["sightline", "run", run.task, "--model", line.model, "--data", "DIR"]
    for judge in line.judges:
        words += ["--judge", judge] if judge != "rules" else []
    if line.limit is not None:
        words += ["--limit", str(line.limit)]
    sampling = run.description.options.get("sampling") or {}
    for name, value in line.options.items():
        if name in run.description.benchmark_options:
            words += ["--set", f"{name}={option_text(value)}"]
        elif name in sampling:
            words += ["--gen", f"{name}={option_text(value)}"]
        elif name not in OF_CODE:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [option_text(value)])]
    return shlex.join([*words, "--fresh", "again"])
