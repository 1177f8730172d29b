"""Plain text: encodings, line ends, and files that cannot be read."""

import pytest

from helpers.passages import shown
from metasearch.errors import DataError


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_lines_are_counted_whatever_ends_them(name, end, tmp_path):
    text = end.join(["First line.", "", "Third line.", "Fourth."])
    assert shown(tmp_path / name, text, limit=12) == [(1, "First line."), (3, "Third line."), (4, "Fourth.")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xef\xbb\xbfab\n\xff", ":2: not UTF-8: byte 0xff"),
        (b"ab\n\xe2\x82", ":2: not UTF-8: byte 0xe2"),
        (b"ab\r\ncd\0", ":2: not UTF-8 text: it has a NUL character"),
    ],
)
def test_a_byte_that_is_no_text_is_named_with_its_place(text, says, tmp_path):
    with pytest.raises(DataError) as caught:
        shown(tmp_path / "a.txt", text)
    assert str(caught.value) == f"{tmp_path}/a.txt{says}"
