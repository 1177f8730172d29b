"""Encoders that come with metasearch; each is a file here, and its name is the file's."""
