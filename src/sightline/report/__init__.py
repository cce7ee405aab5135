"""Results as text for a reader: tables, plots, and the published figures of papers next to them."""
