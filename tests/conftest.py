"""Fixtures shared by all tests: the folder of real data."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is.
settings.register_profile("sightline", deadline=None)
settings.load_profile("sightline")


def pytest_configure() -> None:
    """A shell starts background jobs deaf to Ctrl-C, and so would be the processes that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def shared_folder() -> Path:
    """The folder of real data: SIGHTLINE_SHARED, else ../shared beside the checkout."""
    named = os.environ.get("SIGHTLINE_SHARED")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data; the test is skipped where it is absent."""
    folder = shared_folder()
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}: set SIGHTLINE_SHARED to the folder that holds data/")
    return folder
