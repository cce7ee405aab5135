"""The list of the checks of endpoints in a store: `sightline report --endpoints`."""

from __future__ import annotations

from msgspec import Struct

from sightline.engine.endpoint_log import CheckResult
from sightline.engine.store import Store
from sightline.local_time import local_time


class EndpointLine(Struct, frozen=True, kw_only=True):
    """A check of an endpoint in the list.

    Attributes:
        time: The local time, as `2026-01-31 12:00:00`.
        host: The host of the endpoint.
        identity: The identity of its model.
        result: What the check found; `first contact` is a record without a check.
        asked: Requests that it sent.
        detail: The evidence, or why there was no check.
        root: Where the server says it has the weights from; None if it does not say.
        max_model_len: The maximum number of tokens that it states.
    """

    time: str
    host: str
    identity: str
    result: CheckResult
    asked: int
    detail: str
    root: str | None = None
    max_model_len: int | None = None


def list_endpoints(store: Store) -> list[EndpointLine]:
    """List the checks of a store.

    Args:
        store: The store.

    Returns:
        The checks in the order in which they took place.
    """
    return [
        EndpointLine(
            time=local_time(created),
            host=record.host,
            identity=record.identity,
            result=record.result,
            asked=record.asked,
            detail=record.detail,
            root=record.report.root if record.report else None,
            max_model_len=record.report.max_model_len if record.report else None,
        )
        for created, record in store.endpoints.records()
    ]
