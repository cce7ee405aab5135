"""Packages import each other one way: where two did both, neither could be read or changed alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import sightline

BOTH_WAYS = {("adapter", "models")}
"""A model is loaded with its adapter, and an adapter is trained on a model."""


def test_no_two_packages_import_each_other() -> None:
    root = Path(sightline.__file__).parent
    arrows: dict[str, set[str]] = defaultdict(set)
    for file in root.glob("*/**/*.py"):
        own = file.relative_to(root).parts[0]
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sightline."):
                other = (node.module or "").split(".")[1]
                if other != own and (root / other).is_dir():
                    arrows[own].add(other)
    assert arrows["cli"] >= {"evaluation", "report"}
    pairs = {(one, other) for one, others in arrows.items() for other in others}
    both = {(one, other) for one, other in pairs if one < other and (other, one) in pairs}
    assert both == BOTH_WAYS
