"""Malformed input of every kind, as tables: what is given, the command line, the exit code and the message."""
