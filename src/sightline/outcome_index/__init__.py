"""The index of outcomes: what the viewer and the report look up of a judged run."""
