"""Runs commands in this process, as a user types them."""

from click.testing import CliRunner, Result

from metasearch.cli import main


def metasearch(*args, code=0, **keys) -> Result:
    """Run a command; check its exit code and that no traceback is shown.

    Args:
        *args: words of the command line.
        code: the exit code that is expected.
        **keys: of `CliRunner.invoke`, such as `input`.
    """
    result = CliRunner().invoke(main, [str(arg) for arg in args], **keys)
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    return result
