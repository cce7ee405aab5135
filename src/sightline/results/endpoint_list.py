"""The list of the checks of endpoints in a store: `sightline report --endpoints`."""

from __future__ import annotations

from msgspec import Struct

from sightline.engine.endpoint_log import CheckResult
from sightline.engine.store import Store
from sightline.local_time import local_time


class EndpointLine(Struct, frozen=True, kw_only=True):
    """A check of an endpoint in the list.

    Attributes:
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
