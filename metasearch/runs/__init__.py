"""The files of a run: every file's writer and its reader together. Never imports torch."""
