"""The interfaces between a pool of replicas and what starts them (Slurm, Ray)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from sightline.models.base import Model
from sightline.types import Answer, Failure, Request


class Target(Struct, frozen=True, kw_only=True):
    """The model that replicas are copies of.

    Attributes:
        model: The model as this process would run it; it is never opened here.
        spec: Its name as for --model; a name of sightline.toml is replaced by what it stands for.
        args: `--model-arg`, with the arguments of sightline.toml.
        weights: The identity of its files and options, whatever --model-id is: that of every copy.
    """

    model: Model
    spec: str
    args: Mapping[str, Any]
    weights: str


class ReplicaLostError(Exception):
    """A replica ended, or cannot be reached, while it answered a request; the message says why.

    Attributes:
        received: Whether its model may have received the request, which may then be the reason.
    """

    def __init__(self, message: str, *, received: bool = True) -> None:
        """Record the loss.

        Args:
            message: Why the replica ended.
            received: As the attribute.
        """
        super().__init__(message)
        self.received = received


class Replica(Protocol):
    """One running copy of a model.

    Attributes:
        name: Where it runs, for messages; no two replicas of a launcher share a name.
    """

    name: str

    async def answer(self, request: Request) -> Answer | Failure:
        """Answer one request; many calls run at the same time.

        Args:
            request: The request.

        Returns:
            The answer, or why there is none.

        Raises:
            ReplicaLostError: The replica cannot answer any more; another one must be asked.
        """
        ...


class Joined(Protocol):
    """What a launcher calls with each replica that is ready for requests."""

    def __call__(self, replica: Replica) -> None:
        """Send requests to the replica from now on."""
        ...


class Left(Protocol):
    """What a launcher calls with each replica that has ended, also if a request has reported the loss."""

    def __call__(self, name: str, reason: str, *, is_explained: bool = False) -> None:
        """Send nothing more to a replica.

        Args:
            name: Its name.
            reason: Why it ended, for messages.
            is_explained: Whether no request can be the reason: the replica was cancelled, preempted or
                requeued, or its node is gone. One that was only out of reach joins again instead.
        """
        ...


class Launcher(Protocol):
    """Starts replicas of one model, and ends them.

    Attributes:
        place: Where they run, for messages: `Slurm, profile gpu`.
        replicas: How many may run at the same time.
    """

    place: str
    replicas: int

    async def run(self, joined: Joined, left: Left) -> None:
        """Start the replicas and replace those that end, until cancelled; then end those that are left.

        Args:
            joined: Called with each replica that is ready.
            left: Called with each replica that has ended.

        Raises:
            UserError: No replica can ever start.
            EnvironmentFailedError: All replicas have ended, and none can be started any more.
        """
        ...
