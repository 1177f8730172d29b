"""What is searched and what is known about it: tasks, arrangements, records, folds and readers. Never imports torch."""
