"""MMVP."""
