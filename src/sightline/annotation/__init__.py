"""Annotation: tasks that humans do, projects, assignment, links, and what the judgements become."""
