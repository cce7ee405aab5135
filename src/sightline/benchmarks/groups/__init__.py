"""Any groups file: related probes of one thing, from the user's own data."""
