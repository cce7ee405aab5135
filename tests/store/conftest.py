"""Tests of the store use the fixtures of the engine's tests: a store, requests, a scripted model."""

from __future__ import annotations

from tests.engine.conftest import _ask, _runner_of, asking, in_no_time, scripted, store

__all__ = ["_ask", "_runner_of", "asking", "in_no_time", "scripted", "store"]
