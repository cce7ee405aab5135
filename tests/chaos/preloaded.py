"""What the processes of a trial import before they are forked; their clock can be wrong.

Modules keep the clock that they find when they are imported, such as in default values.
"""

from __future__ import annotations

import time
from importlib import import_module

_right_time = time.time
_error = 0.0


def set_clock_error(seconds: float) -> None:
    """Make the clock of this process wrong."""
    global _error
    _error = seconds


time.time = lambda: _right_time() + _error

for _name in ("cli.main", "cli.run", "cli.score", "cli.sweep", "cli.store"):
    import_module(f"sightline.{_name}")
for _name in ("evaluation.run", "evaluation.score", "models.openai", "benchmarks.groups.benchmark", "api"):
    import_module(f"sightline.{_name}")
