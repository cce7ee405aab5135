"""Reports of results: tables and plots, for terminals, Markdown, CSV, LaTeX and HTML.

A package is an attribute of its parent, so `sightline.report` is this package and also the function of the
Python API: calling the package calls `sightline.api.report`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import sightline


class _CallablePackage(ModuleType):
    """The package, which is also the function `report` of the Python API."""

    def __call__(self, *runs: Any, **options: Any) -> Any:
        """Make the tables of runs; see `sightline.api.report`."""
        return sightline.__getattr__("report")(*runs, **options)


sys.modules[__name__].__class__ = _CallablePackage
