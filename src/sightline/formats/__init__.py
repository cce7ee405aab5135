"""Reads answers that any tool collected, and writes results in the layouts that other tools read."""
