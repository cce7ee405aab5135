"""A process of a trial: a command with another lease of claims and a wrong clock."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def work(words: Sequence[str], folder: Path, sender: str, lease: float, skew: float) -> None:
    """Run a command in a folder; its key, which the server logs, is the name of the sender.

    What it prints goes to `<sender>.log`. The process ends with the exit status of the command.
    """
    os.chdir(folder)
    os.environ["CHAOS_SENDER"] = sender
    log = os.open(f"{sender}.log", os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Imported here: they must not change the process that starts this one.
    from tests.chaos import preloaded

    from sightline.cli.main import main
    from sightline.store import claims

    preloaded.set_clock_error(skew)
    scale = lease / claims.LEASE_SECONDS
    claims.LEASE_SECONDS *= scale
    claims.HEARTBEAT_SECONDS *= scale
    claims.GRACE_SECONDS *= scale
    sys.exit(main(words))
