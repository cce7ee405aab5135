"""Maintenance of stores: their content and size, checks, merging, cleaning, export."""
