"""What the kinds of adapter buy on the embedded model."""
