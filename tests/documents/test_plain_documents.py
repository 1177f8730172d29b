"""Plain text and Markdown: encodings, line ends, front matter."""

import gzip
import re

import pytest

from helpers.passages import passages_of, shown
from metasearch.documents import content
from metasearch.documents.read import read
from metasearch.errors import DataError


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_lines_are_counted_whatever_ends_them(name, end, tmp_path):
    text = end.join(["First line.", "", "Third line.", "Fourth."])
    assert shown(tmp_path / name, text, limit=12) == [(1, "First line."), (3, "Third line."), (4, "Fourth.")]


def test_a_line_end_that_two_reads_share_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "_SIZE", 3)
    assert shown(tmp_path / "a.txt", "ab\r\nü\r\nc", limit=2) == [(1, "ab"), (2, "ü"), (3, "c")]


def test_a_byte_order_mark_is_no_text(tmp_path):
    assert shown(tmp_path / "a.txt", b"\xef\xbb\xbfHello.") == [(1, "Hello.")]


@pytest.mark.parametrize("size", [1, 2, 3, 2**18])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"ab\nc\xfe", ":2: not UTF-8: byte 4 is 0xfe"),
        (b"\xef\xbb\xbfab\n\xff", ":2: not UTF-8: byte 6 is 0xff"),
        (b"ab\n\xc3\n", ":2: not UTF-8: byte 3 is 0xc3"),
        (b"ab\n\xe2\x82", ":2: not UTF-8: byte 3 is 0xe2"),
        (b"ab\r\ncd\0", ":2: byte 6 is NUL: the file is no text in UTF-8"),
    ],
)
def test_a_byte_that_is_no_text_is_named_with_its_place(size, text, says, tmp_path, monkeypatch):
    monkeypatch.setattr(content, "_SIZE", max(size, 3) if text.startswith(b"\xef") else size)
    with pytest.raises(DataError) as caught:
        shown(tmp_path / "a.txt", text)
    assert str(caught.value) == f"{tmp_path}/a.txt{says}"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.jsonl", "a.csv", "a.tsv"])
@pytest.mark.parametrize("form", ["UTF-16-LE", "UTF-16-BE", "UTF-32-LE", "UTF-32-BE"])
def test_another_encoding_is_named(form, name, tmp_path):
    with pytest.raises(DataError, match=rf"a\.\w+:1: not UTF-8 but {form[:6]}: byte 0 is 0x.*; save the file as UTF-8"):
        shown(tmp_path / name, "\ufeffHello.".encode(form))


def test_a_packed_file_is_read(tmp_path):
    (passage,) = passages_of(tmp_path / "faq.de.txt.gz", "Hallo.")
    assert (passage.text, passage.language, passage.file) == ("Hallo.", "de", f"{tmp_path}/faq.de.txt.gz")


def test_a_damaged_packed_file_is_named(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"text " * 99)[:-9])
    with pytest.raises(DataError, match=r"a\.txt\.gz: damaged gzip file after 0 bytes: "):
        list(read([path]))


def test_a_document_that_shows_nothing_is_named(tmp_path, caplog):
    assert shown(tmp_path / "a.txt", " \n\u200b\n") == []
    assert caplog.messages == [f"{tmp_path}/a.txt: documents without text: 1"]


def test_markdown_stays_as_it_is_written(tmp_path):
    text = "# Head\n\nWords *here*.\n\n- one\n- two\n\n```\ncode = 1\n```\n"
    assert shown(tmp_path / "a.md", text) == [(1, text.rstrip())]
    assert shown(tmp_path / "a.md", text, limit=22) == [
        (1, "# Head\n\nWords *here*."),
        (5, "- one\n- two"),
        (8, "```\ncode = 1\n```"),
    ]


def test_a_fence_alone_is_no_passage(tmp_path):
    assert shown(tmp_path / "a.md", "```\none two three\nfour five six\n```\n\n---\n", limit=14) == [
        (2, "one two three"),
        (3, "four five six"),
    ]


def test_front_matter_tells_language_and_title_and_is_no_text(tmp_path):
    text = "---\ntitle: Keys\nlang: de_at\ntags: [a, b]\n---\n\nEins.\n\nZwei.\n"
    seen = passages_of(tmp_path / "a.md", text, limit=10)
    assert [(p.line, p.text, p.language) for p in seen] == [(7, "Keys\nEins.", "de-AT"), (9, "Keys\nZwei.", "de-AT")]


@pytest.mark.parametrize("key", ["lang", "language"])
def test_front_matter_names_the_language_by_either_key(key, tmp_path):
    (passage,) = passages_of(tmp_path / "a.tr.md", f"---\n{key}: no\n---\nHei.")
    assert passage.language == "no"


@pytest.mark.parametrize("text", ["---\nA rule.\n---\nMore.", "---\nlang: de\nNo end.", "Text.\n---\nlang: de\n---\n"])
def test_lines_of_dashes_that_hold_no_keys_are_text(text, tmp_path):
    (passage,) = passages_of(tmp_path / "a.md", text)
    assert (passage.line, passage.text, passage.language) == (1, text.rstrip(), "und")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("---\ntitle: x\nlang: german\n---\n", ":3: lang: 'german' is not a language tag such as de, fil or zh-CN"),
        ("---\nlang: [de, en]\n---\n", ":2: lang: \"['de', 'en']\" is not a language tag"),
        ("---\nlang: de\nlang: en\n---\n", ":3: lang: the key stands twice; it stands between lines of dashes"),
        ("---\nlang: [de\n---\n", ":3: not YAML: "),
    ],
)
def test_front_matter_that_is_wrong_is_named_with_its_line(text, says, tmp_path):
    says = says.replace("\"['de', 'en']\"", "'['de', 'en']'")
    with pytest.raises(DataError, match=re.escape(f"{tmp_path}/a.md{says}")):
        shown(tmp_path / "a.md", f"{text}Text.")
