"""An address means the page at its path below the base: in any spelling, the same page or none."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.errors import ConfigError
from metasearch.search.documents.joining import describe, join
from metasearch.search.documents.passage import Passage

NAMES = st.sampled_from(["printing", "scanning", "über uns", "v1.2", "a+b", "50%", "ναί", "Copy", "index2"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
FILES = st.sampled_from([".md", ".html", "/index.md", "/README.md", "/_index.md", "/index.html"])
PREFIX = st.sampled_from(["", "/help", "/docs/latest"])
SPELLINGS = (
    st.sampled_from(["http:", "https:", "HTTPS:", ""]),
    st.sampled_from(["example.org", "www.example.org", "EXAMPLE.org", "example.org:443"]),
    st.sampled_from(["", "/", ".html", ".htm", ".md", "/index.html", "/index.php", "//"]),
    st.sampled_from(["", "?utm_source=mail", "?gclid=1&ref=menu", "?nothing=1"]),
    st.sampled_from(["", "#top", "#:~:text=a"]),
)


def site(*files, **languages):
    return [Passage(f"Text of {file}.", f"site/{file}", 1, languages.get(file, "en")) for file in files]


def found(named, passages, *bases):
    """Return what each name means: a file below the folder, or nothing."""
    joined = join([(f"row {i}", each) for i, each in enumerate(named, 1)], passages, ["site"], bases)
    return ["".join(each.files).removeprefix("site/") for each in joined]


def reasons(named, passages, *bases):
    return [each.reason for each in join([("row 1", each) for each in named], passages, ["site"], bases)]


@given(
    st.lists(PATHS, min_size=2, max_size=6, unique=True), FILES, PREFIX, st.tuples(*SPELLINGS), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_any_spelling_of_an_address_means_its_page(paths, end, prefix, spelling, encoded, mirrored):
    """Addresses of pages that are not there, and on other hosts, mean no page; a mirror has encoded names."""
    scheme, host, suffix, query, fragment = spelling
    files = [f"{quote(path) if mirrored else path}{end}" for path in paths]
    written = [quote(path) if encoded else path.replace("%", "%25").replace(" ", "%20") for path in paths]
    named = [f"{scheme}//{host}{prefix}/{path}{suffix}{query}{fragment}" for path in written]
    gone = [f"https://example.org{prefix}/2019/{path}" for path in written[:1]]
    other = [f"https://other.example{prefix}/{path}" for path in written[:1]]
    assert found([*named, *gone, *other], site(*files)) == [*files, "", ""]
    rooted = [f"{prefix}/{path}{suffix}{query}{fragment}" for path in written]
    assert found(rooted, site(*files)) == files


PAGES = site("index.html", "a.md", "b.md", "c.md", "sub/a.md", "a.de.md", "b.de.md", "manual.pdf")


@pytest.mark.parametrize(
    ("named", "files"),
    [
        (["https://e.org/a", "https://e.org/de/a", "https://e.org/b"], ["a.md", "a.de.md", "b.md"]),
        (["https://e.org/a", "https://de.e.org/a", "https://e.org/b"], ["a.md", "a.de.md", "b.md"]),
        (["https://e.org/a?lang=de", "https://e.org/b?hl=de"], ["a.de.md", "b.de.md"]),
        (["https://e.org/de/a", "https://e.org/de/c"], ["a.de.md", ""]),  # c has no translation
        (["https://e.org/#/a", "https://e.org/#!/b?id=top"], ["a.md", "b.md"]),
        (["https://e.org/x/#/a", "https://e.org/x/#/gone", "https://e.org/x/#/b"], ["a.md", "", "b.md"]),
        (["https://e.org/?page=a", "https://e.org/index.php?page=sub/a"], ["a.md", "sub/a.md"]),
        (["https://e.org/a?page=2", "https://e.org/b?page=3"], ["a.md", "b.md"]),  # no value is a page
        (["https://e.org/a", "https://e.org/b", "https://e.org/"], ["a.md", "b.md", "index.html"]),
        (["https://e.org/a", "https://e.org/b", "https://e.org/old/index.html"], ["a.md", "b.md", ""]),
        (["https://e.org/manual.pdf", "https://e.org/a.pdf", "https://e.org/b"], ["manual.pdf", "", "b.md"]),
        (["/x/a?ref=menu", "/x/b", "/y/c"], ["a.md", "b.md", ""]),
    ],
)
def test_an_address_means_the_page_below_the_base_in_its_language(named, files):
    assert found(named, PAGES) == files


@pytest.mark.parametrize("first", ["index.md", "_index.md"])
def test_the_page_of_a_folder_is_its_first_index(first):
    assert found(["https://e.org/a/", "https://e.org/b"], site(f"a/{first}", "a/README.md", "b.md")) == [
        f"a/{first}", "b.md",
    ]  # fmt: skip
    assert found(["https://e.org/a/", "https://e.org/b"], site("a/README.md", "b.md")) == ["a/README.md", "b.md"]
    both = site("a.html", "a/index.html", "b.html")
    named = ["https://e.org/a.html", "https://e.org/a/", "https://e.org/a", "https://e.org/b"]
    assert found(named, both) == ["a.html", "a/index.html", "", "b.html"]
    assert reasons(named, both)[2] == "several pages: site/a.html, site/a/index.html"


def test_the_default_language_may_be_a_folder_that_addresses_do_not_name():
    pages = site(*(f"{tag}/{name}.md" for tag in ("de", "en") for name in "abc"))
    assert found(["https://e.org/a", "https://e.org/b", "https://e.org/de/a"], pages) == [
        "en/a.md",
        "en/b.md",
        "de/a.md",
    ]
    alone = ["https://e.org/a", "https://e.org/b"]
    assert found(alone, pages) == ["", ""]
    assert reasons(alone, pages)[0] == "several pages: site/de/a.md, site/en/a.md"
    assert found(alone, pages, "https://e.org/=en") == found(alone, pages, "e.org=site/en/") == ["en/a.md", "en/b.md"]


def test_the_user_sets_bases_and_other_addresses_are_not_joined():
    named = ["https://e.org/x/a", "https://f.org/a", "https://g.org/a"]
    assert found(named, PAGES, "https://e.org/x/", "http://www.f.org=sub") == ["a.md", "sub/a.md", ""]
    assert reasons(named, PAGES, "https://e.org/x/")[1] == "outside https://e.org/x/"
    with pytest.raises(ConfigError, match=r"^--base e.org=gone: no document is below 'gone'"):
        found(named, PAGES, "e.org=gone")


def test_a_line_has_the_base_the_reason_and_the_nearest_page():
    named = ["https://e.org/a", "https://e.org/b", "https://e.org/d.md", "https://f.org/a"]
    assert describe(join([(f"row {i}", each) for i, each in enumerate(named, 1)], PAGES, ["site"])) == (
        "joined to pages: 2 of 4 labels (address 2); https://e.org/ is site/; not joined: 2: row 3 "
        "'https://e.org/d.md' (no such page; nearest: c.md), row 4 'https://f.org/a' (outside https://e.org/)"
    )


@pytest.mark.parametrize(
    ("files", "count"), [(("a.csv", "b.csv"), 0), (("a.csv", "a.csv"), 2), (("a.de.csv", "a.en.csv"), 2)]
)
def test_an_id_in_two_tables_means_no_row(files, count):
    rows = [Passage(f"Row {i}", f"site/{file}", 2 + i, "en", {"id": 7}) for i, file in enumerate(files)]
    (one,) = join([("row 1", "7")], rows, ["site"])
    assert len(one.passages) == count
    assert one.reason == ("" if count else "several pages: site/a.csv:2, site/b.csv:3")
