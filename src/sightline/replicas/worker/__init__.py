"""The worker: a server that answers for a local model by the chat completions protocol."""
