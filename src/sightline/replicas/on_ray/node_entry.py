"""What a node of Ray runs first. It is sent by value and needs only Python, to report what the node lacks."""

from __future__ import annotations

from typing import Any


def call(payload: bytes, content: bytes | None = None) -> tuple[str, str, Any]:
    """Do a piece of work on this node.

    Args:
        payload: The pickled `node_work.Work`.
        content: The bytes of the image, None if the node may share the file.

    Returns:
        As `node_work.carry_out`.
    """
    node = _node()
    try:
        from sightline.replicas.on_ray.node_work import carry_out
    except ImportError as error:
        return "wrong", node, f"Sightline cannot be used there ({error})"
    return carry_out(payload, content, node)


def _node() -> str:
    """The name of this machine in messages: its IP address in the cluster."""
    from importlib import import_module

    name: str = import_module("ray.util").get_node_ip_address()
    return name
