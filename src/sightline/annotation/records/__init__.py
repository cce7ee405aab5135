"""What projects that produce records write: one module for each kind, with a function `write`."""
