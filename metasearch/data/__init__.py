"""Data to search and its labels: files become records and folds. Never imports torch."""
