"""HTML of runs, groups and comparisons: what the pages of `serve` and the report share."""
