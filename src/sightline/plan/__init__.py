"""What is asked: the options of an evaluation, its probes and their requests."""
