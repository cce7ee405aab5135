"""The option --peer: other tools, and the environments that have them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

PEERS = ("inspect_ai", "lmms_eval", "vlmeval")


def read_peers(words: Iterable[str], peers: Iterable[str] = PEERS) -> dict[str, str]:
    """Read the values of --peer.

    Args:
        words: The values, each TOOL=PYTHON.
        peers: The tools that have a driver.

    Returns:
        Tool -> its Python.

    Raises:
        SystemExit: A value has another form, a tool has no driver, or there is no such program.
    """
    peers, pythons = tuple(peers), {}
    for word in words:
        tool, equals, python = word.partition("=")
        if not equals or tool not in peers:
            tools = " or ".join(f"{peer}=PYTHON" for peer in peers)
            raise SystemExit(f"--peer {word} is wrong; expected {tools}")
        if shutil.which(python) is None:
            raise SystemExit(f"--peer {word}: there is no program {python}; expected the Python of {tool}")
        pythons[tool] = python
    return pythons
