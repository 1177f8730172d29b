"""Lines, rows and values in text files, for all packages; errors name file and line."""
