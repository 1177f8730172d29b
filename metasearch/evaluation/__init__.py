"""Evaluation: from encoder and data to scores and per-query results."""
