"""Addresses of hits: from the site of an index, from canonical addresses of pages, and of translations."""

import json

import pytest

from helpers.commands import metasearch
from helpers.files import write_all
from helpers.serving import running
from metasearch.errors import ConfigError
from metasearch.search.documents.passage import Passage
from metasearch.search.index.local import LocalStore
from metasearch.search.indexes import change_index, index_documents, open_searcher
from metasearch.search.query.searcher import passage_url
from metasearch.search.settings import parse_site

SITE = "https://help.example.org/"
ALTERNATES = "".join(
    f'<link rel="alternate" hreflang="{tag}" href="{SITE}{number}">' for number, tag in enumerate(("de", "en"))
)
PAGES = {
    "de/über uns.html": '<html lang="de"><h1 id="a b">Schlüssel</h1><p>Der Schlüssel liegt unter der Matte.',
    "en/über uns.html": '<html lang="en"><link rel="canonical" href="https://a.example/keys"><h1 id="b">Keys</h1>',
    "bees.txt": "Bees dance in the dark hive.",
}


def index(folder, **how):
    index_documents([folder / "docs"], folder / "index", "tiny", {"titles": False}, device="cpu", **how)
    return folder / "index"


@pytest.fixture
def pages(tmp_path):
    write_all(tmp_path / "docs", PAGES)
    return tmp_path


def urls(searcher, **how):
    (hits,) = searcher.search(["key"], **how)
    return {hit.passage.file: hit.url for hit in hits}


ADDRESSES = {
    "de/über uns.html": f"{SITE}de/%C3%BCber%20uns.html#a%20b",
    "en/über uns.html": "https://a.example/keys#b",
    "bees.txt": f"{SITE}bees.txt",
}


@pytest.mark.parametrize(
    ("file", "anchor", "site", "canonical", "expected"),
    [
        ("a.html", "", SITE, "", f"{SITE}a.html"),
        ("a b/100%?#ü.html", "ü 1:2", SITE, "", f"{SITE}a%20b/100%25%3F%23%C3%BC.html#%C3%BC%201:2"),
        ("index.html", "", SITE, "", f"{SITE}index.html"),
        ("a.html", "x", SITE, "https://a.example/1", "https://a.example/1#x"),
        ("a.html", "x", "", "https://a.example/1", "https://a.example/1#x"),
        ("a.html", "x", "", "", ""),
    ],
)
def test_an_address_is_the_site_the_path_and_the_anchor(file, anchor, site, canonical, expected):
    assert passage_url(Passage("text", file, 1, anchor=anchor), site, canonical) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (SITE, SITE),
        (" https://help.example.org ", SITE),
        ("HTTP://localhost:8000/a b/ü%20c", "http://localhost:8000/a%20b/%C3%BC%20c/"),
        ("https://[::1]:80//", "https://[::1]:80/"),
        ("https://münchen.example/de/", "https://münchen.example/de/"),
        ("none", ""),
        ("", ""),
    ],
)
def test_a_site_ends_in_a_slash(written, expected):
    assert parse_site(written) == expected


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("help.example.org/de", f"{SITE}de/"),
        ("//help.example.org", SITE),
        ("ftp://help.example.org/", SITE),
        (f"{SITE}?q=1", SITE),
        (f"{SITE}de#top", f"{SITE}de/"),
        ("http://ada:secret@localhost:8000/", "http://localhost:8000/"),
        ("the site", SITE),
        ("https://", SITE),
    ],
)
def test_another_address_is_an_error_with_the_nearest_right_one(pages, written, nearest):
    says = (
        f"expected an address such as {SITE}, without query and fragment. Did you mean '{nearest}'? (got '{written}')"
    )
    for call in (lambda: index(pages, site=written), lambda: open_searcher(pages / "index", site=written)):
        with pytest.raises(ConfigError) as error:
            call()
        assert str(error.value) == f"--site: {says}"
    assert not (pages / "index").exists()
    said = metasearch("serve", pages / "index", "--site", written, code=2).stderr
    assert said.count("\n") == 1
    assert says in said


def test_hits_and_translations_have_addresses(pages):
    searcher = open_searcher(index(pages, site=SITE), "cpu")
    assert urls(searcher, by="page") == ADDRESSES
    for tag, other in (("de", "en"), ("en", "de")):
        hit = next(hit for hit in searcher.search(["key"], prefer=[tag])[0] if hit.translations)
        (version,) = hit.translations
        assert (hit.passage.file, version.passage.file) == (f"{tag}/über uns.html", f"{other}/über uns.html")
        assert (hit.url, version.url) == (ADDRESSES[hit.passage.file], ADDRESSES[version.passage.file])


def test_a_site_is_kept_changed_and_removed_without_documents(pages):
    folder = index(pages)
    assert urls(open_searcher(folder, "cpu"), by="page") == {
        **dict.fromkeys(PAGES, ""), "en/über uns.html": "https://a.example/keys#b",
    }  # fmt: skip
    assert change_index(folder, site="https://other.example")["site"] == "https://other.example/"
    (pages / "docs" / "bees.txt").write_text("Bees sleep in the dark hive.", encoding="utf-8")
    index(pages)
    assert urls(open_searcher(folder, "cpu"), by="page")["bees.txt"] == "https://other.example/bees.txt"
    assert urls(open_searcher(folder, "cpu", site=SITE), by="page") == ADDRESSES
    said = metasearch("index", "-o", folder, "--site", "none").stdout.splitlines()
    assert said == ["search: as by default", f"root: {pages / 'docs'}", "site: none"]
    assert LocalStore.open(folder).site == ""


def test_serve_answers_with_addresses_in_the_preferred_language(pages):
    searcher = open_searcher(index(pages), "cpu", site=SITE)
    with running(searcher) as server:
        _, answer = server.post("/search", {"query": "key", "prefer": ["de"], "by": "group", "top_k": 2})
        hit = next(hit for hit in answer["results"][0]["hits"] if hit["translations"])
        assert hit["url"] == ADDRESSES["de/über uns.html"]
        assert hit["translations"] == [
            {
                "language": "en", "file": "en/über uns.html", "url": ADDRESSES["en/über uns.html"], "heading": "Keys",
                "anchor": "b",
            }
        ]  # fmt: skip
        change_index(pages / "index", {"hybrid": False})
        assert server.service.searcher.reopen().site == SITE


def test_search_prints_addresses(pages, monkeypatch):
    monkeypatch.chdir(pages)
    index(pages, site=SITE)
    said = metasearch("search", "index", "key", "--by", "page").stdout.splitlines()
    assert {line.split()[-1] for line in said if line[:2].strip().isdigit()} == {*ADDRESSES.values()}
    found = json.loads(metasearch("search", "index", "key", "--json", "--prefer", "de").stdout)["hits"]
    (hit,) = [hit for hit in found if hit["translations"]]
    assert hit["url"] == ADDRESSES["de/über uns.html"]
    file = "en/über uns.html"
    path = (pages / "docs" / file).as_posix()
    assert hit["translations"] == [{"language": "en", "file": file, "path": path, "url": ADDRESSES[file]}]


def test_a_copy_in_a_database_has_the_site(pages, postgres):
    address = postgres.address("help")
    index(pages, to=address)
    copy = open_searcher(address, "cpu")
    assert {*urls(copy, by="page").values()} == {""}
    index(pages, site=SITE, to=address)
    found = urls(copy.reopen(), by="page")
    assert found["bees.txt"] == ADDRESSES["bees.txt"]
    assert found["en/über uns.html"] == f"{SITE}en/%C3%BCber%20uns.html#b"  # copies have no canonical addresses


class TestGroups:
    def test_pages_with_other_paths_are_translations_by_the_addresses_in_their_heads(self, tmp_path):
        head = {"ueber.html": "de", "about.html": "en"}
        write_all(tmp_path / "docs", {name: f'<html lang="{tag}">{ALTERNATES}<p>Key.' for name, tag in head.items()})
        (hits,) = open_searcher(index(tmp_path), "cpu").search(["key"])
        assert [len(hit.translations) for hit in hits] == [1]
        assert set(hits[0].languages) == {"de", "en"}

    def test_the_group_of_a_path_changes_with_the_root(self, pages):
        folder = index(pages)
        write_all(pages / "news", {"a.txt": "It rains."})
        index_documents([pages / "docs", pages / "news"], folder, device="cpu")
        groups = {path: file.group for path, file in LocalStore.open(folder).files.items()}
        assert groups["docs/de/über uns.html"] == groups["docs/en/über uns.html"] == "docs/*/über uns.html"
