"""Lines, rows and values of text files, for every package that reads some; errors name file and line."""
