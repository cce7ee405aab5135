"""Retries: which failures are sent again, after which delay."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sightline.engine.call_queue import Call
from sightline.engine.limiter import PATIENCE, Limiter
from sightline.types import Answer, Failure

MAX_FAILURES = 8
"""Failures of one call after which it is not retried."""
MAX_REFUSALS = 30
"""Refusals (429) of one call after which it is not retried."""
BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 30.0


def is_capacity_refusal(failure: Failure) -> bool:
    """Decide whether a host refused a call for lack of capacity; the call itself is not to blame."""
    return failure.status == 429 or (failure.status in (503, 529) and failure.retry_after is not None)


def report_to(limiter: Limiter, results: Sequence[Answer | Failure]) -> None:
    """Tell the limiter what the results of a batch show about the host."""
    failures = [result for result in results if isinstance(result, Failure)]
    refusals = [failure.retry_after or 0.0 for failure in failures if is_capacity_refusal(failure)]
    if refusals:
        limiter.record_refusal(max(refusals) or None)
    elif len(failures) < len(results) or any(failure.kind != "transient" for failure in failures):
        limiter.record_success()
    else:
        limiter.record_failure()


def retry_delay(call: Call, failure: Failure, jitter: random.Random) -> float | None:
    """Compute when a failed call is sent again: exponential backoff with jitter.

    Returns:
        Seconds until the next attempt, never before the host's Retry-After; None where the call is not sent
        again in this run.
    """
    too_often = call.refusals > MAX_REFUSALS or call.attempts - call.refusals >= MAX_FAILURES
    backoff = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** min(call.attempts - 1, 16))
    delay = max(backoff * jitter.uniform(0.5, 1.0), failure.retry_after or 0.0)
    return None if failure.kind != "transient" or too_often or delay > PATIENCE else delay
