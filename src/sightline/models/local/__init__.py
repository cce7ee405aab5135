"""Local models: checkpoints that transformers runs in this process."""
