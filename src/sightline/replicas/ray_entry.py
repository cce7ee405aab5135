"""What a node of Ray runs first. It is sent by value and needs only Python, to report what the node lacks."""

from __future__ import annotations


class Actor:
    """A replica of a model on this node."""

    async def start(self, payload: bytes) -> tuple[str, str, str]:
        """Open and serve the model: the address of its server, or why there is none."""
        node = _node()
        try:
            from sightline.replicas.ray_node import serve_model
        except ImportError as error:
            return "wrong", node, f"Sightline cannot be used there ({error})"
        kind, value = await serve_model(payload, node)
        if kind == "done":
            self._served = value
            return kind, node, value.address
        return kind, node, value

    async def until_lost(self) -> tuple[str, str]:
        """Wait until the model can answer no request; the call fails when this process ends."""
        failed: tuple[str, str] = await self._served.until_failed()
        return failed


def _node() -> str:
    """The name of this machine in messages: its IP address in the cluster."""
    from importlib import import_module

    name: str = import_module("ray.util").get_node_ip_address()
    return name
