"""Reading one response, or comparing two: pure functions without model calls."""
