"""Models that run in this process, by transformers: whatever turns images and text into text."""
