"""What a node of Ray runs first. It is sent by value and needs only Python, to report what the node lacks."""

from __future__ import annotations

from typing import Any


def call(payload: bytes, content: bytes | None = None) -> tuple[str, str, Any]:
    """Do a piece of work on this node.

    Args:
        content: The bytes of the image, None if the node may share the file.
    """
    node = _node()
    try:
        from sightline.replicas.ray_node import carry_out
    except ImportError as error:
        return "wrong", node, f"Sightline cannot be used there ({error})"
    return carry_out(payload, content, node)


class Actor:
    """A replica of a model on this node."""

    async def start(self, payload: bytes) -> tuple[str, str, Any]:
        """Open the model."""
        node = _node()
        try:
            from sightline.replicas.ray_node import open_model
        except ImportError as error:
            return "wrong", node, f"Sightline cannot be used there ({error})"
        kind, value = await open_model(payload)
        if kind == "done":
            self._hosted = value
            return kind, node, ""
        return kind, node, value

    async def answer(self, request: Any, contents: dict[str, bytes]) -> Any:
        """Answer a request.

        Args:
            contents: Path of an image -> its bytes, for images whose file the node does not share.
        """
        return await self._hosted.answer(request, contents)

    async def until_lost(self) -> None:
        """Wait for ever: the call fails when this process ends."""
        import asyncio

        await asyncio.Event().wait()


def _node() -> str:
    """The name of this machine in messages: its IP address in the cluster."""
    from importlib import import_module

    name: str = import_module("ray.util").get_node_ip_address()
    return name
