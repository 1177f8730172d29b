"""Runs recipes of several stages: roles, data and dev scores of each stage, on the one engine."""
