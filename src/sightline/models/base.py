"""The interface between the engine and a model back end; a model knows no benchmark."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from msgspec import Struct

from sightline.formats.prediction import Prediction
from sightline.images import ImageLimits
from sightline.models.image_references import ImageTraffic
from sightline.models.server_report import ServerReport
from sightline.types import Answer, Failure, Origin, Request


class Capabilities(Struct, frozen=True):
    """What a model accepts, checked before the first call.

    Attributes:
        images: Whether it accepts images.
        several_images: Whether a request may have more than one image.
        system_role: Whether it accepts system messages.
        seed: Whether its sampling has a seed.
        likelihood: Whether it can choose the most likely of several answers.
        own_sampling: Whether it has sampling options of its own, which `effective` checks.
        replays: Whether it answers by the name of a probe, whatever the probe shows.
        endpoint: Whether it is known by URL and name only, so that its weights may change under the same
            identity. The engine then checks it before cached answers are used.
        own_process: Whether Sightline runs the model itself, here or on a server that it starts.
        replicas: How many copies of it, each in another process, share the requests; --concurrency counts for
            each. 0 if there are none.
        limits: Limits of the images that it accepts.
        references: Whether its server can do without the bytes of some images; `image_traffic` then says what
            was sent.
        sends_once: Whether its server needs the bytes of an image only until a first request with it has an
            answer. The engine then sends other requests first while that one is in flight.
        gather: Seconds for which an incomplete batch of requests that are sent again waits for more of them.
            Above 0 only where a call takes hours.
    """

    images: bool = True
    several_images: bool = True
    system_role: bool = True
    seed: bool = True
    likelihood: bool = False
    own_sampling: bool = False
    replays: bool = False
    endpoint: bool = False
    own_process: bool = False
    replicas: int = 0
    limits: ImageLimits = ImageLimits()
    references: bool = False
    sends_once: bool = False
    gather: float = 0.0


class Model(Protocol):
    """Something that answers requests.

    Attributes:
        name: The model's name, as the user wrote it.
        identity: Identifies the model in request keys: another identity means other cached answers.
        host: The server or device. Models of one host share concurrency limit, retries and circuit breaker.
        batch_size: Requests in one call of `answer`; 1 for an API.
        parallel: Calls of `answer` at a time; None for any number.
        capabilities: What the model accepts.
    """

    name: str
    identity: str
    host: str
    batch_size: int
    parallel: int | None
    capabilities: Capabilities

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Translate sampling options to those that are sent; they enter the request key.

        Args:
            sampling: The requested options.

        Returns:
            The options that are sent.

        Raises:
            UserError: The model does not have an option, or a value is out of range.
        """
        ...

    async def __aenter__(self) -> Self:
        """Open the model. The engine calls this only if a request must be sent.

        Raises:
            UserError: The model cannot be used at all (no server, no file).
        """
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the model."""
        ...

    def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Answer requests, in any order.

        Args:
            requests: At most `batch_size` requests.

        Yields:
            The index of a request in `requests`, and its answer or failure.
        """
        ...

    async def server_report(self) -> ServerReport | None:
        """Ask the open model's server what it says about the model.

        Returns:
            The report; None, the default, if there is no server or it says nothing.
        """
        return None

    def image_traffic(self) -> ImageTraffic | None:
        """The bytes of images in all requests so far.

        Returns:
            What was sent and what was not; None, the default, for a model to which all bytes are sent.
        """
        return None

    def training_overlap(self, folder: Path) -> str:
        """Check whether the model was trained on the data.

        Args:
            folder: The data folder.

        Returns:
            A warning for the user; '' for none, the default.
        """
        return ""

    def recorded(self, origin: Origin) -> Prediction | None:
        """What a file of answers holds about a probe, for a model that replays one.

        Args:
            origin: The probe.

        Returns:
            The recorded answer; None, the default, if there is none.
        """
        return None
