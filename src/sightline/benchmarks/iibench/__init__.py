"""II-Bench: the implied meaning of an image (Liu et al. 2024)."""
