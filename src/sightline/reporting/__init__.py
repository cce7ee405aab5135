"""Reports of results: tables and plots, for terminals, Markdown, CSV, LaTeX and HTML."""
