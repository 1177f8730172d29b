"""Front matter tells title and language in any of its formats, and is no text; text between rules is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.passages import passages_of
from metasearch.config import yaml
from metasearch.search.documents.passage import Notes
from metasearch.search.documents.readers.markdown import FrontMatter, read_front_matter

MATTERS = [
    "---\ntitle: Keys\nlang: de_at\ntags: [a, b]\n---\n",
    '---\n"title": "Keys"\n\'lang\': "de-AT"\n"tags": ["a"]\n---\n',
    "---\n# by a program\n\nRead by: all\nअनुवाद: 1\nnested: {title: No}\ntitle: Keys\nlanguage: de-AT\n...\n",
    "--- \n{title: Keys, lang: de-AT}\n---\t\n",
    '+++\ntitle = "Keys"\nlanguage = "de-AT"\ndate = 2026-01-01T10:00:00Z\n[menu]\ntitle = "No"\n+++\n',
    '{"title": "Keys", "lang": "de-AT"}\n',
    '{\n  "title": "Keys",\n  "menu": {"title": "No"},\n  "language": "de-AT"\n}\n',
    '---json\n{"title": "Keys", "lang": "de-AT"}\n---\n',
    "---toml\ntitle = 'Keys'\nlang = 'de-AT'\n---\n",
]


@pytest.mark.parametrize("matter", MATTERS)
@pytest.mark.parametrize(("mark", "end"), [(b"", "\n"), (b"\xef\xbb\xbf", "\r\n")], ids=["LF", "BOM and CR LF"])
def test_front_matter_tells_language_and_title_and_is_no_text(matter, mark, end, tmp_path, caplog):
    content = mark + f"{matter}\nEins.\n\nZwei.\n".replace("\n", end).encode()
    seen = passages_of(tmp_path / "a.md", content, limit=10)
    line = matter.count("\n") + 2
    assert [(p.line, p.text, p.language) for p in seen] == [
        (line, "Keys\nEins.", "de-AT"),
        (line + 2, "Keys\nZwei.", "de-AT"),
    ]
    assert caplog.messages == []


@pytest.mark.parametrize(
    "text",
    [
        "---\nA rule.\n---\nMore.", "---\nlang: de\nNo end.", "Text.\n---\nlang: de\n---\n", "---\n# Head\n---\nMore.",
        "---\n\nIn the house: rooms.\n\n---\nMore.", "---\n- one\n- two\n---\n", "---\nhttps://example.org\n---\n",
        "+++\nA rule.\n+++\n", "+++ title = 1\n+++\n", "{% include head.html %}\nMore.", "{title} of the page\n",
        '{"lang": "de"} is an object.', "{{< note >}}\nlang: de\n{{< /note >}}\n", '{\n  "lang": "de",\nNo end.',
    ],
)  # fmt: skip
def test_text_that_only_looks_like_front_matter_is_text(text, tmp_path, caplog):
    (passage,) = passages_of(tmp_path / "a.md", text)
    assert (passage.line, passage.text, passage.language) == (1, text.rstrip(), "und")
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("matter", "title", "language", "says"),
    [
        ("---\ntitle: x\nlang: german\n---\n", "x", "und", "language ignored: {}:3: lang: 'german' is not"),
        ("---\nlang: [de, en]\n---\n", "", "und", "language ignored: {}:2: lang: \"['de', 'en']\" is not"),
        ("+++\nlang = 'german'\n+++\n", "", "und", "language ignored: {}:2: lang: 'german' is not"),
        ('{\n"title": "x",\n"lang": "german"\n}\n', "x", "und", "language ignored: {}:3: lang: 'german' is not"),
        ("---\ntitle: [a]\nlang: de\n---\n", "", "de", "title ignored: {}:2: title: expected a text, got ['a']"),
        ("---\nlang: de\nlang: en\n---\n", "", "en", "{}:3: lang: duplicate key"),
        ("---\na: 1: 2\nlanguage: 'de'\n---\n", "", "de", "{}:2: not YAML: mapping values"),
        ("---\ntitle: Task 1: Keys\nlang: de\n---\n", "Task 1: Keys", "de", "{}:2: not YAML"),
        ("---\ntitle: x\nlang: [de\n---\n", "x", "und", "{}:4: not YAML"),
        ('---\n"title": "x\nlang: de\n---\n', "x", "de", "{}:4: not YAML"),
        ("+++\ntitle = x\nlang = 'de'\n+++\n", "x", "de", "{}:2: not TOML: Invalid value; it is front matter"),
        ("+++\nlang = 'de'\nlang = 'en'\n+++\n", "", "en", "{}:3: not TOML: Cannot overwrite a value"),
        ('{\n  "title": "x",,\n  "lang": "de"\n}\n', "x", "de", "{}:2: not JSON: "),
        ('{"title": "x",\n"title": "y"}\n', "y", "und", "{}:1: not JSON: the key 'title' is duplicated"),
    ],
)  # fmt: skip
def test_front_matter_that_is_wrong_is_named_with_its_line_and_the_text_is_read(
    matter, title, language, says, tmp_path, caplog
):
    path = tmp_path / "a.md"
    seen = passages_of(path, f"{matter}Text.")
    text = f"{title}\nText." if title else "Text."
    assert [(p.text, p.language, p.line) for p in seen] == [(text, language, 1 + matter.count("\n"))]
    expected = says if "ignored" in says else f"title and language read literally: {says}"
    expected = expected.replace("\"['de', 'en']\"", "'['de', 'en']'").format(path)
    assert caplog.messages[0].startswith(expected)


KEYS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
VALUES = st.one_of(
    KEYS, st.integers(), st.booleans(), st.lists(KEYS, max_size=3), st.dictionaries(KEYS, KEYS, max_size=2)
)


@given(st.dictionaries(KEYS, VALUES, min_size=1), st.sampled_from(["yaml", "json", "fenced json"]))
def test_any_keys_are_front_matter(tree, kind):
    tree = {key: value for key, value in tree.items() if key not in ("title", "lang", "language")} | {"lang": "de"}
    content = yaml.dump(tree) if kind == "yaml" else json.dumps(tree, ensure_ascii=False) + "\n"
    matter = {"yaml": "---\n{}---\n", "json": "{}", "fenced json": "---json\n{}---\n"}[kind].replace("{}", content)
    notes = Notes()
    found = read_front_matter(f"{matter}Text.", None, notes)
    assert (found, notes.problems) == (FrontMatter(len(matter), "de", ""), [])


@given(st.text(alphabet="-+{}[]\"':=#,. \nab1", max_size=60), st.sampled_from(["---\n", "+++\n", "{", "---json\n", ""]))
def test_any_beginning_is_read(text, start):
    found = read_front_matter(start + text, None, Notes())
    assert found.length == 0 or (start + text)[: found.length].rstrip(" \t\n")[-1] in "-+.}"
