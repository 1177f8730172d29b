"""Languages that the names of files and folders tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.tags import NAMES, written
from metasearch.search.documents.languages import (
    find_folder_language,
    find_language,
    find_path_language,
    group_pages,
)
from metasearch.search.documents.read import is_page


@given(written(NAMES, lower=True), st.sampled_from("._-"))
def test_a_name_tells_its_tag_as_a_whole_and_at_its_end(case, mark):
    tag, text = case
    assert find_language(text, "") == tag
    assert find_language(f"READ me{mark}{text}", "") == tag


@given(written(NAMES, lower=True), st.sampled_from("._-"))
def test_a_folder_tells_its_tag_as_a_whole_and_at_its_end(case, mark):
    tag, text = case
    assert find_folder_language(text, "fr") == find_folder_language(f"pages{mark}{text}", "") == tag
    assert len({*group_pages({"pages/a.md": "", f"pages{mark}{text}/a.md": tag}).values()}) == 1
    assert find_folder_language(f"pages{mark}{text}.html", "") == find_folder_language(f"{text}.UTF-8", "") == tag
    assert find_folder_language("pages.old", "fr") == "fr"
    assert find_folder_language("how-to", "") == find_language("how_to", "") == ""


@pytest.mark.parametrize(
    ("stem", "language"),
    [
        ("README.de-en", "en"),
        ("faq.zh_CN", "zh-CN"),
        ("README_ZH_CN", "zh-CN"),
        ("es-419", "es-419"),
        ("UserGuide_DE", "de"),
        ("Manual German", ""),
        ("Manual-German", "de"),
        ("manual_eng", "en"),
        ("中文", "zh"),
        # Countries.
        ("README_KR", "ko"),
        ("faq.cn", "zh"),
        ("contact-us", ""),
        # Words that are no codes.
        ("faq.old", ""),
        ("faq_new", ""),
        ("faqde", ""),
        ("sign_in", ""),
        ("install.sh", ""),
        ("de.mo", ""),
        ("faq-cat", ""),
        # Retired codes.
        ("faq.iw", "he"),
        ("faq_nb", "no"),
        ("back-to-java", ""),
        ("", ""),
    ],
)
def test_a_name_ends_in_the_longest_tag_that_exists(stem, language):
    assert find_language(stem, "") == language


@pytest.mark.parametrize(
    ("stem", "language"),
    [
        ("faq", "de"),
        ("ar", "de"),
        ("git-rm", "de"),
        ("faq_ar", "de"),
        ("faq.ar", "ar"),
        ("app.ts", "de"),
        ("Foo.cs", "de"),
        ("faq-pt-br", "pt-BR"),
        ("zh-TW", "zh-TW"),
    ],
)
def test_in_a_folder_of_a_language_a_name_tells_another_after_a_dot_or_with_a_region(stem, language):
    assert find_language(stem, "de") == language


def test_pages_for_content_negotiation_have_their_tag_at_the_end():
    assert find_path_language("docs/faq.html.pt-br.utf8") == find_path_language("docs/faq.html.pt-br.gz") == "pt-BR"
    assert is_page("docs/faq.html.de")
    assert not any(map(is_page, ("faq.html.in", "faq.html.br", "faq.html.tt")))  # a template, Brotli, a template
