"""Sightline evaluates multimodal models on groups of related questions.

import sightline
result = sightline.run("codis", model="http://localhost:8000/v1#llava", data="data/codis")
result.metrics[0].value
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Evaluation",
    "Sweep",
    "Tables",
    "UserError",
    "__version__",
    "arun",
    "compare",
    "export",
    "judge_report",
    "report",
    "run",
    "score",
    "sweep",
]

if TYPE_CHECKING:
    from sightline.api import (
        Evaluation,
        Sweep,
        Tables,
        UserError,
        arun,
        compare,
        export,
        judge_report,
        report,
        run,
        score,
        sweep,
    )


def __getattr__(name: str) -> Any:
    """Import the API at its first use, so that `import sightline` stays fast."""
    if name in __all__:
        import sightline.api

        return getattr(sightline.api, name)
    raise AttributeError(f"module 'sightline' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
