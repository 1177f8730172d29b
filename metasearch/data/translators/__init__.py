"""What translates texts, one translator a file, called by its file's name with dashes.

A translator defines `TRANSLATOR`, a class as `metasearch.data.translators.base.Translator` says.
"""
