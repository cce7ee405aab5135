"""Batches of OpenAI-compatible providers: requests in files, answered within a day at a lower price."""
