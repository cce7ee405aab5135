"""ConTextual: instructions about text-rich images (Wadhawan et al. 2024)."""
