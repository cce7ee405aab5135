"""Reading SQLite files page by page, without SQLite, which refuses damaged ones."""
