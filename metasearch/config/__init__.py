"""Declarations: tasks, modes, recipes, and configurations for runs and studies. Never imports torch."""
