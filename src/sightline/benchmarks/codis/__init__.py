"""CODIS: one image and question, two contexts, two answers (Luo et al. 2024)."""
