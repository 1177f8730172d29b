"""Teach multilingual sentence encoders to search across languages from a handful of labels."""

__version__ = "0.1.0"
