"""Plain text and Markdown: encodings, line ends, front matter."""

import pytest

from helpers.files import write
from helpers.passages import passages_of, shown
from metasearch.data.documents.read import read
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


def test_markdown_stays_as_it_is_written(tmp_path):
    text = "# Head\n\nWords *here*.\n\n- one\n- two\n\n```\ncode = 1\n```\n"
    assert shown(tmp_path / "a.md", text) == [(1, text.rstrip())]
    assert shown(tmp_path / "a.md", text, limit=22) == [
        (1, "# Head\n\nWords *here*."),
        (5, "- one\n- two"),
        (8, "```\ncode = 1\n```"),
    ]


def test_front_matter_tells_language_and_title_and_is_no_text(tmp_path):
    text = "---\ntitle: Keys\nlang: de_at\ntags: [a, b]\n---\n\nEins.\n\nZwei.\n"
    seen = passages_of(tmp_path / "a.md", text, limit=10)
    assert [(p.line, p.text, p.language) for p in seen] == [(7, "Keys\nEins.", "de-AT"), (9, "Keys\nZwei.", "de-AT")]


@pytest.mark.parametrize("text", ["---\nA rule.\n---\nMore.", "---\nlang: de\nNo end.", "Text.\n---\nlang: de\n---\n"])
def test_lines_of_dashes_that_hold_no_keys_are_text(text, tmp_path):
    (passage,) = passages_of(tmp_path / "a.md", text)
    assert (passage.line, passage.text, passage.language) == (1, text.rstrip(), "und")


@pytest.mark.parametrize(
    ("matter", "title", "language", "says"),
    [
        (
            "title: x\nlang: german\n",
            "x",
            "und",
            "language ignored: {}:3: lang: 'german' is not a language tag such as de",
        ),
        ("lang: [de, en]\n", "", "und", "language ignored: {}:2: lang: \"['de', 'en']\" is not a language tag"),
        ("title: [a]\nlang: de\n", "", "de", "title ignored: {}:2: title: expected a text, got ['a']"),
        ("lang: de\nlang: en\n", "", "en", "title and language read literally: {}:3: lang: duplicate key"),
        ("a: 1: 2\nlanguage: 'de'\n", "", "de", "title and language read literally: {}:2: not YAML: mapping values"),
        ("title: Task 1: Keys\nlang: de\n", "Task 1: Keys", "de", "title and language read literally: {}:2: not YAML"),
        ("title: x\nlang: [de\n", "x", "und", "title and language read literally: {}:4: not YAML"),
    ],
)
def test_front_matter_that_is_wrong_is_named_with_its_line_and_the_text_is_read(
    matter, title, language, says, tmp_path, caplog
):
    says = says.replace("\"['de', 'en']\"", "'['de', 'en']'").format(tmp_path / "a.md")
    (passage,) = passages_of(tmp_path / "a.md", f"---\n{matter}---\nText.")
    assert (passage.text, passage.language) == (f"{title}\nText." if title else "Text.", language)
    assert passage.line == 3 + matter.count("\n")
    assert caplog.messages[0].startswith(says)


def test_of_a_folder_what_can_be_read_is_read_and_the_rest_is_named(tmp_path, caplog):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in {
        "a.txt": b"One.",
        "b.txt": b"caf\xe9",
        "c.csv": b"name\nRex\n",
        "d.jsonl": b'{"text": "Two."}',
    }.items():
        write(folder / name, text)
    assert [passage.text for passage in read([folder])] == ["One.", "Two."]
    assert [message.split(folder.as_posix())[1] for message in caplog.messages] == [
        "/b.txt:1: not UTF-8: byte 0xe9, perhaps CP1252; convert the file: iconv -f CP1252 -t UTF-8",
        "/c.csv:1: no column 'text'. Known: name.",
    ]
    for name in ("b.txt", "c.csv"):
        with pytest.raises(DataError, match=rf"docs/{name}:1: "):
            list(read([folder, folder / name]))
