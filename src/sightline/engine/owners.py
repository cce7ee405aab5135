"""Owners of claims: the name of a process, from which others on its machine see whether it has ended."""

from __future__ import annotations

import os
import struct
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

OwnerState = Literal["ended", "working", "unknown"]

_PROC = Path("/proc")
_LAYOUT = struct.Struct(">6sII6s4s")
"""The fields of `_Owner`: 24 bytes, so that a name has 32 characters."""


class _Owner(NamedTuple):
    """The fields of a name."""

    boot: bytes
    namespace: int
    process: int
    start: bytes
    part: bytes


def new_owner() -> str:
    """Name an owner in this process."""
    process = os.getpid()
    boot, namespace = _machine(process)
    start = _read_status(process)[1] if any(boot) else bytes(6)
    owner = _Owner(boot, namespace, process, start, os.urandom(4))
    return urlsafe_b64encode(_LAYOUT.pack(*owner)).decode()


def state_of_owner(owner: str, *, one_machine: bool) -> OwnerState:
    """Find out what the process of an owner does."""
    boot, namespace = _machine(os.getpid())
    try:
        found = _Owner(*_LAYOUT.unpack(urlsafe_b64decode(owner)))
    except (ValueError, struct.error):
        return "unknown"
    if not any(boot):
        return "unknown"
    if found.boot != boot:
        return "ended" if one_machine else "unknown"
    return _state(found) if found.namespace == namespace else "unknown"


def seconds_since_boot() -> float:
    """Read a clock that nobody sets, and that goes on while a process is stopped or the machine sleeps.

    Returns:
        Seconds since the machine started; the same in all its processes.
    """
    # Only Linux has it. Elsewhere the clock may stand still while the machine sleeps, with all its processes.
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@cache
def _machine(process: int) -> tuple[bytes, int]:
    """The boot and the PID namespace of this process; zeros where /proc does not show them."""
    try:
        # /proc may be that of another namespace.
        if os.readlink(_PROC / "self") == str(process):
            boot_id = (_PROC / "sys/kernel/random/boot_id").read_bytes()
            return sha256(boot_id).digest()[:6], os.stat(_PROC / "self/ns/pid").st_ino & 0xFFFFFFFF
    except OSError:
        pass
    return bytes(6), 0


def _state(owner: _Owner) -> OwnerState:
    """The state of an owner in this namespace."""
    try:
        os.kill(owner.process, 0)
    except ProcessLookupError:
        return "ended"
    except PermissionError:  # a process of another user
        pass
    try:
        letter, start = _read_status(owner.process)
    except OSError:
        return "unknown"
    if start != owner.start or letter in "ZX":  # Z: it waits for its parent
        return "ended"
    return "unknown" if letter in "Tt" else "working"


def _read_status(process: int) -> tuple[str, bytes]:
    """Read the letter of a process's state, and when it started."""
    line = (_PROC / str(process) / "stat").read_text(errors="replace")
    letter, *fields = line.rpartition(")")[2].split()
    return letter, int(fields[18]).to_bytes(6, "big")
