"""The command that starts a worker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def worker_words(spec: str, args: Mapping[str, Any]) -> list[str]:
    """The words after `python`, without host, port and key."""
    words = ["-m", "sightline", "worker", "--model", spec, "--log-requests"]
    for name, value in sorted(args.items()):
        words += ["--model-arg", f"{name}={json.dumps(value)}"]
    return words
