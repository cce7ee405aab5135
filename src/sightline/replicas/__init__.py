"""Replicas: copies of one model on several nodes or devices, which share its requests."""
