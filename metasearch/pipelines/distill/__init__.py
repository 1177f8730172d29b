"""Runs recipes of several stages: roles, data and dev scores of each stage, in the one training loop."""
