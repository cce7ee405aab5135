"""The interface between the engine and a model back end; a model knows no benchmark."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec
from msgspec import Struct

from sightline.formats.prediction import Prediction
from sightline.images import ImageLimits
from sightline.types import Answer, Failure, ImageFile, Origin, Request


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


# -- What a server says about the models that it serves: its reply to GET /v1/models


class ServerReport(Struct, frozen=True, omit_defaults=True):
    """What a server says about one model. The time of `created` is left out: it changes with each restart.

    Attributes:
        root: Where the server has the weights from (vLLM, SGLang).
        max_model_len: The maximum number of tokens of prompt and response.
    """

    address: str
    id: str | None = None
    root: str | None = None
    max_model_len: int | None = None


class _ListedModel(Struct):
    id: str
    root: str | None = None
    max_model_len: int | None = None


class _ModelList(Struct):
    data: list[_ListedModel]


def read_server_report(raw: bytes, address: str, model: str) -> ServerReport | None:
    """Read what a server says about a model.

    Returns:
        The report, without `id` if the server does not list the model; None if the body is not a list of
        models.
    """
    try:
        listed = msgspec.json.decode(raw, type=_ModelList).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for one in listed:
        if one.id == model:
            return ServerReport(address, one.id, one.root, one.max_model_len)
    return ServerReport(address)


# -- References to images in place of their bytes: what a server reads or has cached is not sent


class ImageTraffic(Struct, frozen=True):
    """The bytes of images in the bodies of requests to a server that accepts references.

    Attributes:
        sent: Bytes of the data URLs that were sent.
        not_sent: Bytes of the data URLs that were replaced by a reference.
        resent: Requests that were sent again with all bytes, because the server refused a reference.
    """

    sent: int = 0
    not_sent: int = 0
    resent: int = 0

    def plus(self, later: ImageTraffic) -> ImageTraffic:
        return ImageTraffic(
            self.sent + later.sent, self.not_sent + later.not_sent, self.resent + later.resent
        )

    def since(self, earlier: ImageTraffic) -> ImageTraffic:
        """Subtract what an earlier look showed."""
        return ImageTraffic(
            self.sent - earlier.sent, self.not_sent - earlier.not_sent, self.resent - earlier.resent
        )


class Exchange(Protocol):
    """How the images of one request are sent."""

    def reference(self, file: ImageFile) -> dict[str, Any] | None:
        """Refer to an image.

        Returns:
            The part of the message; None if the bytes must be sent.
        """
        ...

    def sends(self, file: ImageFile, url: bytes) -> dict[str, Any]:
        """Record that the bytes of an image are sent."""
        ...

    def is_refused(self, failure: Failure) -> bool:
        """Find out whether the server cannot use a reference. Afterwards `reference` returns None.

        Returns:
            Whether to send the request again, with all bytes.
        """
        ...

    def accepted(self) -> None:
        """Record that the server has answered."""
        ...


class ImageReferences(Protocol):
    """What is known of the images that one server can do without. Belongs to one event loop.

    Attributes:
        sends_once: Whether the bytes of an image are needed until a first request with it has an answer.
    """

    traffic: ImageTraffic
    sends_once: bool

    def probe(self, model: str) -> dict[str, Any] | None:
        """A request that a server answers only if it ignores references.

        Returns:
            The body; None if such a server refuses the first reference in any case.
        """
        ...

    def exchange(self, request: Request) -> Exchange:
        """Begin to send a request."""
        ...
