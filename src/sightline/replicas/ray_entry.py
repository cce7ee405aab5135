"""What a node of Ray runs first. It is sent by value and needs only Python, to report what the node lacks."""

from __future__ import annotations

from typing import Any


def call(payload: bytes, content: bytes | None = None) -> tuple[str, str, Any]:
    """Do a piece of work on this node; `content` is None if the node may share the image's file."""
    node = _node()
    try:
        from sightline.replicas.ray_node import carry_out
    except ImportError as error:
        return "wrong", node, f"Sightline cannot be used there ({error})"
    return carry_out(payload, content, node)


class Actor:
    """A replica of a model on this node."""

    async def start(self, payload: bytes) -> tuple[str, str, Any]:
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
        """`contents` maps the path of an image that the node does not share to its bytes."""
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
