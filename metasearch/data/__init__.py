"""What is searched and what is known about it: files become records and folds. Never imports torch."""
