"""Calls of HTTP servers: straight to the server by our own client, or through a proxy by aiohttp."""
