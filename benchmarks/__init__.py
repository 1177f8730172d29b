"""Benchmarks of metasearch, run from the repository's root as `python -m benchmarks.FOLDER.SCRIPT`; see README.md."""
