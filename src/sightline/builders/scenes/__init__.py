"""Drawn scenes: what is in an image as plain data, how it is drawn, and what can be asked about it."""
