"""A comparison of the kinds of adapter on the embedded model."""
