"""`python -m metasearch` is the command `metasearch`; both begin here."""

from metasearch import collector, signals


def main() -> None:
    """Run a command; a signal is heard before anything else is imported."""
    signals.listen()
    collector.run_rarely()
    from metasearch.cli import main as commands

    commands(prog_name="metasearch")


if __name__ == "__main__":
    main()
