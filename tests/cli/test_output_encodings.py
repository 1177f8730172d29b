"""Every command prints every character, whatever the encoding of its output streams."""

import io
import sys

import pytest

from metasearch.cli import main

ENCODINGS = ["ascii", "latin-1", "cp932", "utf-8"]


class Stream(io.TextIOWrapper):
    """A stream that keeps its bytes."""

    def __init__(self, encoding, terminal):
        super().__init__(io.BytesIO(), encoding=encoding, errors="strict")
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    def text(self, encoding):
        self.flush()
        return self.buffer.getvalue().decode(encoding)


@pytest.fixture(params=ENCODINGS)
def encoding(request):
    return request.param


def run(words, encoding, monkeypatch, terminal):
    """Return the exit code of a command, and what it wrote to both streams."""
    out, err = Stream(encoding, terminal), Stream(encoding, terminal)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as ended:
        main.main(words, prog_name="metasearch")
    return ended.value.code, out, err


def test_files_and_pipes_get_utf_8(encoding, monkeypatch):
    code, out, _ = run(["show", "demo", "--mode", "mono-bi"], encoding, monkeypatch, terminal=False)
    text = out.text("utf-8")
    assert code == 0
    assert any("\u0600" <= character <= "\u06ff" for character in text)  # the demo has Arabic


def test_a_terminal_gets_escapes_for_what_it_lacks(encoding, monkeypatch):
    code, out, _ = run(["show", "demo", "--mode", "mono-bi"], encoding, monkeypatch, terminal=True)
    # Click writes UTF-8 to a terminal that says ASCII, since its locale is then not set up.
    text = out.text("utf-8" if encoding == "ascii" else encoding)
    assert code == 0
    assert ("\\u0627" in text) == (encoding in ("latin-1", "cp932"))


@pytest.mark.parametrize("terminal", [False, True])
def test_an_error_may_quote_any_text(encoding, terminal, monkeypatch):
    name = "Ελληνικά-😀-\udcff"  # the last stands for a byte of a name that is no UTF-8
    code, _, err = run(["show", name], encoding, monkeypatch, terminal)
    assert code == 2
    assert "a bug in metasearch" not in err.text("utf-8" if encoding == "ascii" or not terminal else encoding)
