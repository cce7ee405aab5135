"""Models that run in this process, by transformers: whatever turns pictures and text into text."""
