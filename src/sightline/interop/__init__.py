"""Benchmarks under the roof of another framework: what it needs of them, in its own words."""
