"""Languages that the names of files and folders tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.tags import NAMES, written
from metasearch.data.documents.languages import find_folder_language, find_language, find_series, find_untagged


def told(stem, folder="", *siblings):
    """Return what a name tells in a folder that tells `folder`, beside these names."""
    return find_language(stem, folder, find_series([stem, *siblings]))


@given(written(NAMES, lower=True), st.sampled_from("._-"))
def test_a_name_tells_its_tag_as_a_whole_and_at_its_end(case, mark):
    tag, text = case
    assert told(text) == tag
    assert told(f"READ me{mark}{text}") == tag


@given(written(NAMES, lower=True))
def test_a_folder_tells_its_tag_as_a_whole_and_behind_a_dot(case):
    tag, text = case
    assert find_folder_language(text, set(), "fr") == find_folder_language(f"pages.{text}", set(), "fr") == tag


@pytest.mark.parametrize(
    ("stem", "language"),
    [
        ("README.de-en", "en"),
        ("faq.zh_CN", "zh-CN"),
        ("README_ZH_CN", "zh-CN"),
        ("es-419", "es-419"),
        # Words that are no codes, or are in another case, and countries.
        ("faq.old", ""),
        ("faq_new", ""),
        ("UK", ""),
        ("README_KR", ""),
        ("faqde", ""),
        ("sign_in", ""),
        ("back-to-java", ""),
        ("", ""),
    ],
)
def test_a_name_ends_in_the_longest_tag_that_exists(stem, language):
    assert told(stem) == language


@pytest.mark.parametrize(
    ("stem", "siblings", "language"),
    [
        # The folder is in German.
        ("faq", [], "de"),
        ("ar", ["tar", "as"], "de"),
        ("git-rm", ["git", "git-am"], "de"),
        ("faq.ar", [], "de"),
        ("faq.ar", ["faq.fr"], "ar"),
        ("faq-pt-br", ["faq-zh-tw"], "pt-BR"),
        ("faq_ar", ["faq_de"], "ar"),
        ("faq_ar", ["faq_de-at"], "ar"),
        ("faq.de", ["faq.fr"], "de"),
    ],
)
def test_in_a_folder_of_a_language_siblings_decide_whether_a_name_tells_another(stem, siblings, language):
    assert told(stem, "de", *siblings) == language


def test_a_folder_beside_one_with_a_tag_has_files_in_one_unknown_language():
    untagged = find_untagged(["pages", "pages.de", "docs", "docs.old", "zh.TW", ".de"])
    assert untagged == {"pages"}
    assert find_folder_language("pages", untagged, "fr") == "und"
    assert find_folder_language("docs", untagged, "fr") == "fr"
    assert told("git-rm", "und") == told("ar", "und") == "und"
    assert told("README.pt-br", "und") == "pt-BR"
