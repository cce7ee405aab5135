"""What an evaluation sends: its options, and the probes and requests that follow from them."""
