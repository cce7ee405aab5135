"""From judged groups to results: aggregation, the results folder, comparison of runs, --fail-if."""
