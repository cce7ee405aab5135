"""Makers of items: one module for each kind of source."""
