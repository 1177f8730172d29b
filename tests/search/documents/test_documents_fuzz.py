"""Whatever a document holds, its reader returns passages or raises an error that a user can act on, never another."""

import contextlib
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.passages import passages_of
from metasearch.errors import DataError

MARKS = [
    ",", "\t", '"', "\n", "\r\n", ": ", "---\n", "# ", "```\n", "- ", "[", "{", "\u200b", "\u2028", "\x00", "\ufeff",
]  # fmt: skip
TAGS = [
    "<p>", "<html lang=", "<table>", "</td>", "<!--", "-->", "<script>", "&#0;", "&#xd800;", "]]>", "<svg>", "\f \t",
]  # fmt: skip
WORDS = ["text", "title", "language", "id", "lang", "de", "one two.", "ไทย", "👩‍👧", "\U0010ffff"]
PARTS = st.sampled_from([*MARKS, *TAGS, *WORDS])
ROWS = st.dictionaries(PARTS, st.none() | st.integers() | PARTS | st.text(max_size=4), max_size=4)
CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(PARTS, max_size=12).map("".join).map(str.encode),
    st.lists(ROWS.map(json.dumps), max_size=4).map("\n".join).map(str.encode),
)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".txt", ".md", ".html", ".jsonl", ".csv", ".tsv", ".txt.gz"])
@given(content=CONTENTS)
def test_any_document_is_read_or_refused_with_an_error_of_our_own(suffix, content, tmp_path, caplog):
    """And is text of a line of the file, where it is read."""
    caplog.set_level(logging.CRITICAL)
    with contextlib.suppress(DataError):
        for passage in passages_of(tmp_path / f"a{suffix}", content, limit=12, titles=False):
            assert passage.text.encode()
            assert len(passage.text) <= 12
            assert 1 <= passage.line <= 1 + content.count(b"\n") + content.count(b"\r")
