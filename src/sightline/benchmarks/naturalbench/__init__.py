"""NaturalBench."""
