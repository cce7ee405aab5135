"""Synthetic scenes: the content of an image as plain data, its rendering, and questions about it."""
