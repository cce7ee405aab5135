"""Synthetic scenes: small data sets in the formats of the four papers."""
