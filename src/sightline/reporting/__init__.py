"""What a result looks like: tables, notes, charts, Markdown."""
