"""Search: documents become an index, which is searched, served and tuned.

Nothing outside this package imports it, except the table of commands, by name.
"""
