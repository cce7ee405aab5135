"""The store: answers, verdicts and runs in SQLite or PostgreSQL."""
