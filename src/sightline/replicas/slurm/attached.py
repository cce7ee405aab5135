"""A connection to the server of one job."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing

from sightline.errors import UserError
from sightline.models.http.interface import CallError, Timeouts
from sightline.models.http.opening import open_client
from sightline.models.served import Served
from sightline.models.server_report import ServerReport, read_server_report
from sightline.replicas.base import Target
from sightline.replicas.remote import HEALTH_SECONDS, RemoteReplica, is_healthy
from sightline.replicas.slurm.run_folder import Announcement
from sightline.replicas.worker.client import WorkerClient
from sightline.types import Answer, Failure, Request


class Attached:
    """A server that is ready, and its replica."""

    def __init__(
        self, announcement: Announcement, replica: RemoteReplica, address: str, opened: AsyncExitStack
    ) -> None:
        self.announcement = announcement
        self.replica = replica
        self._address = address
        self._opened = opened

    async def is_healthy(self) -> bool:
        """Whether the server says that it is ready."""
        return await is_healthy(self._address)

    async def close(self) -> None:
        """Close the connections."""
        await self._opened.aclose()


async def attach(target: Target, task: str, announced: Announcement, key: str) -> Attached | None:
    """Connect to the server of a job.

    Returns:
        The connection; None while the server is not ready.
    """
    host = f"[{announced.host}]" if ":" in announced.host else announced.host
    address = f"http://{host}:{announced.port}"
    model = target.model
    served = model.command.served_name if isinstance(model, Served) else model.name
    report = await _report(address, served, key) if await is_healthy(address) else None
    if report is None or report.id is None:
        return None
    name = f"job {task} on {announced.node}"
    if not isinstance(model, Served) and report.root != target.weights:
        raise UserError(
            f"{model.name} on {name} is not the model of this machine",
            found=report.root,
            expected=f"{target.weights}: the same files and the same version of Sightline on all nodes",
        )
    async with AsyncExitStack() as stack:
        if isinstance(model, Served):
            endpoint = await stack.enter_async_context(model.connect(f"{address}/v1", key))

            async def send(request: Request) -> Answer | Failure:
                async for _, result in endpoint.answer([request]):
                    return result
                return Failure("transient", f"{name} gave no answer to this request")
        else:
            send = (await stack.enter_async_context(WorkerClient(address, served, key))).send
        return Attached(announced, RemoteReplica(name, address, send), address, stack.pop_all())


async def _report(address: str, model: str, key: str) -> ServerReport | None:
    """What a server says about our model; None if it does not know our key: another one may have the port."""
    try:
        async with aclosing(open_client(address, key, Timeouts(HEALTH_SECONDS, HEALTH_SECONDS))) as client:
            reply = await client.call("/v1/models")
    except CallError:
        return None
    return read_server_report(reply.body, address, model) if reply.status == 200 and reply.is_whole else None
