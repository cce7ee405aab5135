"""Models that answer requests, and other components that are expensive to call: embedders, OCR readers, text
metrics.
"""
