"""Replicas as jobs of Slurm."""
