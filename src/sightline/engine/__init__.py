"""The engine: sends requests to models, limits and retries calls, and caches every answer in the store."""
