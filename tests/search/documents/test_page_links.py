"""The group and the canonical address of a page, from the head of its HTML or from its path."""

import gzip
import itertools

import pytest

from metasearch.errors import DataError
from metasearch.search.documents.page_links import read_page_links

DE, EN = "https://a.example/de/1", "https://a.example/en/1"


def alternate(language, address):
    return f'<link rel="alternate" hreflang="{language}" href="{address}">'


def links(tmp_path, content, file="help/de/1.html"):
    path = tmp_path / file.rpartition("/")[2]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_page_links(path, file)


def test_pages_that_name_the_same_addresses_are_one_group_in_any_order(tmp_path):
    named = [alternate("de", DE), alternate("en", f"{EN}#top"), alternate("x-default", "https://a.example/")]
    groups = {links(tmp_path, "".join(each), f"{i}.html").group for i, each in enumerate(itertools.permutations(named))}
    assert len(groups) == 1
    assert groups != {links(tmp_path, alternate("de", DE) + alternate("en", f"{EN}2")).group}


@pytest.mark.parametrize("languages", ["de en", "de en fr ko"])
@pytest.mark.parametrize("itself", ["alternate", "canonical"])
def test_a_page_names_its_own_address_as_one_of_the_translations_or_as_canonical(languages, itself, tmp_path):
    addresses = {tag: f"https://a.example/{tag}/1" for tag in languages.split()}
    groups = set()
    for own in addresses:
        named = [alternate(tag, each) for tag, each in addresses.items() if tag != own or itself == "alternate"]
        canonical = f'<link rel="canonical" href="{addresses[own]}{"/" if itself == "alternate" else ""}">'
        groups.add(links(tmp_path, canonical + "".join(named)).group)
    assert len(groups) == 1


@pytest.mark.parametrize(
    "head",
    [
        "",
        alternate("de", DE),
        alternate("de", DE) + alternate("DE", EN),
        alternate("de", DE) + alternate("x-default", EN),
        alternate("de", DE) + alternate("en", "/en/1"),
        alternate("de", DE) + alternate("en", "ftp://a.example/en/1"),
        alternate("de", DE) + alternate("en", "https://[x"),
        alternate("de", DE) + f"<template>{alternate('en', EN)}</template>",
        f"<!--{alternate('de', DE)}-->{alternate('en', EN)}",
        f"{alternate('de', DE)}<!--{alternate('en', EN)}",
        f"{alternate('de', DE)}</head>{alternate('en', EN)}",
        f"{alternate('de', DE)}<p>{alternate('en', EN)}",
        f"{alternate('de', DE)}<script>'{alternate('en', EN)}'</script>",
        f"{alternate('de', DE)}<style>{'x' * 2**16}</style>{alternate('en', EN)}",
    ],
)
def test_without_addresses_of_two_languages_in_the_head_the_path_is_the_group(tmp_path, head):
    assert links(tmp_path, head) == ("help/*/1.html", "")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('<link rel="canonical" href="https://a.example/1?x=1&amp;y=2#top">', "https://a.example/1?x=1&y=2"),
        ("<html><head><title>A<b></title><LINK REL='Canonical' HREF=' HTTP://a.example '>", "HTTP://a.example"),
        ("\ufeff<meta charset=utf-8><link rel='nofollow canonical' href=https://ä.example>", "https://ä.example"),
        ('<![x[><link rel="canonical" href="https://a.example/1">', "https://a.example/1"),
        ('<link rel="canonical" href="/1"><link rel="canonical" href="https://a.example/1">', "https://a.example/1"),
        ('<link rel="canonical" href="javascript:alert(1)">', ""),
        ('<link rel="canonical" href="https:///1">', ""),
        ('<link rel="canonical" href="https://a.example/a b">', ""),
        ('<link rel="canonical"><link href="https://a.example"><link rel="canonical" href>', ""),
        ('<link rel="canonical" href="https://a.example/1', ""),
        ('<body><link rel="canonical" href="https://a.example/1">', ""),
    ],
)
def test_the_canonical_address_is_an_absolute_one_of_the_head(tmp_path, written, expected):
    assert links(tmp_path, written).url == expected


def test_packed_pages_utf_16_and_damaged_bytes_are_read(tmp_path):
    head = f'<link rel="canonical" href="{DE}">'
    assert links(tmp_path, gzip.compress(head.encode()), "1.html.gz").url == DE
    assert links(tmp_path, head.encode("utf-16"), "1.html").url == DE
    assert links(tmp_path, b"\xfd" + head.encode(), "1.html").url == DE


def test_other_documents_have_the_group_of_their_path_and_are_not_opened(tmp_path):
    assert read_page_links(tmp_path / "gone.txt", "de/gone.txt") == ("*/gone.txt", "")
    with pytest.raises(DataError, match=r"gone\.html: cannot be read"):
        read_page_links(tmp_path / "gone.html", "gone.html")
