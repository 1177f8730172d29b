"""Metrics, one per file: `base` has the interface, and each other file defines one `METRIC`."""
