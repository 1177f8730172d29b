"""The contract of all formats of documents, of those that ship, of those that packages offer, and of CONTRIBUTING's."""

import gzip
import importlib.util
import json
import re
import sys
from typing import get_args

import pytest

from benchmarks.common.documents import read as read_passages
from helpers.documents import DOCUMENTS
from helpers.packages import install
from metasearch.config import registry
from metasearch.data.formats import documents
from metasearch.data.formats.documents import Holds, formats, is_path
from metasearch.errors import ConfigError, DataError
from metasearch.search.documents import read
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Notes
from search.documents.test_office_documents import pdf

(EXAMPLE,) = re.findall(
    r"^`metasearch/search/documents/readers/subtitles.py`:\n\n```python\n(.*?)^```$",
    DOCUMENTS["CONTRIBUTING.md"],
    re.S | re.M,
)
FIRST, SECOND = "Where is the key?", "Under the mat."
SAMPLES = {
    "text": f"{FIRST}\n\n{SECOND}\n".encode(),
    "markdown": f"# Help\n\n{FIRST}\n\n{SECOND}\n".encode(),
    "html": f"<title>Help</title><p>{FIRST}</p>\n<p>{SECOND}</p>".encode(),
    "rows": b"".join(json.dumps({"text": each}).encode() + b"\n" for each in (FIRST, SECOND)),
    "office": pdf([FIRST, SECOND]),
    "subtitles": f"1\n00:00:01,000 --> 00:00:03,500\n{FIRST}\n\n2\n00:00:04,000 --> 00:00:06,000\n{SECOND}\n".encode(),
}
"""Format → a file of its first suffix with both texts."""


@pytest.fixture(params=[*registry.names("documents"), "subtitles"])
def module(request, tmp_path):
    """The module of a format; a new one needs a sample."""
    if request.param != "subtitles":
        return request.param, registry.load("documents", request.param)
    (tmp_path / "subtitles.py").write_text(EXAMPLE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("subtitles", tmp_path / "subtitles.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return request.param, found


def sections(module, path, content):
    path.write_bytes(content)
    notes = Notes()
    return list(module.sections(path, Settings(), notes)), notes


def test_it_declares_suffixes_of_its_own_and_what_a_file_holds(module):
    _, found = module
    held = found.HOLDS if isinstance(found.HOLDS, dict) else dict.fromkeys(found.SUFFIXES, found.HOLDS)
    assert held.keys() == {*found.SUFFIXES}
    assert {*held.values()} <= {*get_args(Holds)}
    assert found.SUFFIXES
    assert all(re.fullmatch(r"\.[a-z0-9]+", suffix) for suffix in found.SUFFIXES)
    assert all(formats().get(suffix, (module[0], held[suffix])) == (module[0], held[suffix]) for suffix in held)


@pytest.mark.parametrize("packed", [False, True])
def test_it_yields_the_text_with_lines_of_the_file_in_order(module, packed, tmp_path):
    name, found = module
    content = SAMPLES[name]
    path = tmp_path / f"a{found.SUFFIXES[0]}{'.gz' * packed}"
    read, notes = sections(found, path, gzip.compress(content) if packed else content)
    text = "\n".join(each.text for each in read)
    assert text.index(FIRST) < text.index(SECOND)
    assert not notes.problems
    lines = [line for each in read for line in map(each.line_at, range(len(each.text)))]
    assert lines == sorted(lines)
    assert 1 <= lines[0] < lines[-1] <= 1 + content.count(b"\n")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"\x1f\x8b damaged", b"[" * 99, b"<" * 99, b"\n\n"])
def test_what_is_damaged_is_refused_with_the_name_of_the_file_or_read(module, content, tmp_path):
    _, found = module
    path = tmp_path / f"a{found.SUFFIXES[0]}"
    try:
        sections(found, path, content)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - others are read


def test_a_package_offers_a_format_and_two_formats_of_one_suffix_are_refused(tmp_path, monkeypatch):
    site = install(tmp_path, "films", {"subtitles": EXAMPLE}, {"metasearch.documents": {"srt": "films.subtitles"}})
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    cleared = (registry._offered, formats, read._page_suffixes)
    for each in cleared:
        each.cache_clear()
    assert is_path("film.srt")
    assert formats()[".srt"] == ("srt", "page")
    (tmp_path / "film.en.srt").write_bytes(SAMPLES["subtitles"])
    assert [each.text for each in read_passages([tmp_path / "film.en.srt"])] == [f"{FIRST}\n{SECOND}"]
    monkeypatch.setattr(documents.registry, "constants", lambda _, name: {"srt": (".txt",), "text": (".txt",)})
    formats.cache_clear()
    with pytest.raises(ConfigError, match=r"formats 'srt' and 'text' both read \.txt; uninstall one"):
        formats()
    monkeypatch.undo()
    for each in cleared:
        each.cache_clear()
