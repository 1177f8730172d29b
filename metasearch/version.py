"""The version of metasearch."""

__version__ = "0.2.0"
