"""`python -m metasearch` is the command `metasearch`."""

from metasearch.cli import main

if __name__ == "__main__":
    main(prog_name="metasearch")
