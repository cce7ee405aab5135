"""ConBench."""
