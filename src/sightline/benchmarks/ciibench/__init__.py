"""CII-Bench."""
