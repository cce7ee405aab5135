"""Maintenance of stores: their content and size, checks, repair, merging, cleaning, export."""
