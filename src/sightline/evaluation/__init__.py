"""Running, scoring, sweeping and recomputing evaluations: prepare, plan, ask, judge, aggregate, write."""
