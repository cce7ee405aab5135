"""Making data."""
