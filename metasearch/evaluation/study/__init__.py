"""Runs read back, compared and summed up. Never imports torch."""
