"""Metrics, one file each: `base` says what a metric is, and each file that defines `METRIC` is one by its name."""
