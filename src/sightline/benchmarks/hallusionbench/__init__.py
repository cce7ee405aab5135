"""HallusionBench."""
