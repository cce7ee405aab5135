"""Sightline benchmarks inside other evaluation frameworks."""
