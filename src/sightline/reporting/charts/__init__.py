"""Charts of results for papers: one chart for each kind of table, drawn by matplotlib (extra `plot`)."""
