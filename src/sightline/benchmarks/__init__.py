"""Benchmarks: a folder for each paper and for groups files, what they share, and their registry."""
