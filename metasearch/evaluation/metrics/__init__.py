"""Metrics: pure functions from a ranking, or from scores, to one value a query."""
