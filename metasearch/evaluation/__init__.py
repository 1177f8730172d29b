"""Measures an encoder on a task's data, and writes tables of it."""
