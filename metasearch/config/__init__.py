"""What is asked for: tasks, modes, recipes and the configurations of runs and studies. Never imports torch."""
