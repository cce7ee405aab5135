"""Sightline: measures what multimodal models understand when one image must be seen in different lights.

import sightline
result = sightline.run("codis", model="http://localhost:8000/v1#llava", data="data/codis")
result.metrics[0].value
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Evaluation", "Sweep", "UserError", "__version__", "arun", "run", "score", "sweep"]

if TYPE_CHECKING:
    from sightline.api import Evaluation, Sweep, UserError, arun, run, score, sweep


def __getattr__(name: str) -> Any:
    """The API, imported when it is first used: `import sightline` itself loads nothing."""
    if name in __all__:
        import sightline.api

        return getattr(sightline.api, name)
    raise AttributeError(f"module 'sightline' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The API's names, though nothing of it is loaded."""
    return sorted({*globals(), *__all__})
