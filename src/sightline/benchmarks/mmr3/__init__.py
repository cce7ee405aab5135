"""MM-R3: consistency under rephrasing, restyling and masking (Chou et al. 2024)."""
