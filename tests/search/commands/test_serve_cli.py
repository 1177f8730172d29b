"""`metasearch serve`: what is wrong is said before anything is loaded."""

import signal
import socket

import pytest
from click.testing import CliRunner

from metasearch.cli import main
from metasearch.search.server.server import Server, bind, format_address
from metasearch.search.server.settings import Limits


def failing(*args):
    result = CliRunner().invoke(main, ["serve", "no.index", *map(str, args)])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = failing("--port", port)
    assert f"--host 127.0.0.1 --port {port}: Address already in use; --port 0 takes a free one" in error


def test_a_token_that_can_be_guessed_is_refused(tmp_path):
    (tmp_path / "token").write_text("secret")
    assert "expected one line of 16 or more ASCII characters" in failing("--token-file", tmp_path / "token")


def test_a_signal_that_is_ignored_as_in_a_background_job_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server = Server(None, Limits())
        with server.capture_signals():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert not server.should_exit


@pytest.mark.parametrize(("host", "begins"), [("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")])
def test_the_address_is_one_for_a_browser(host, begins):
    try:
        bound = bind(host, 0)
    except Exception as error:
        if host == "::1":
            pytest.skip(f"this machine has no IPv6: {error}")
        raise
    with bound:
        assert format_address(bound).startswith(begins)
        assert format_address(bound).endswith("/")
