"""Tags of languages as they are written in documents and told by names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasearch.documents.languages import language_of_name, tag_of
from metasearch.spec.arrangement import language_of


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("de", "de"),
        ("EN", "en"),
        (" pt_br ", "pt-BR"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("es-419", "es-419"),
        ("sl-rozaj", "sl-rozaj"),
        ("de-CH-1996", "de-CH-1996"),
        ("und", "und"),
    ],
)
def test_a_tag_is_spelt_as_bcp_47_spells_it(written, tag):
    assert tag_of(written) == tag


@pytest.mark.parametrize("written", ["", "german", "d", "de-", "x-default", "de DE", "дe", "1", "de-" + "a" * 9])
def test_what_is_no_tag_is_refused(written):
    with pytest.raises(ValueError, match="is not a language tag such as de, fil or zh-CN"):
        tag_of(written)


@given(st.from_regex(r"\A[a-z]{2,3}([-_][A-Za-z]{2,4})?\Z"))
def test_a_tag_is_spelt_as_elsewhere_in_the_package(written):
    assert tag_of(written) == language_of(written)


@pytest.mark.parametrize(
    ("stem", "folders", "language"),
    [
        ("help.de", [], "de"),
        ("faq_de", [], "de"),
        ("faq-el", [], "el"),
        ("faq.pt-BR", [], "pt-BR"),
        ("faq_pt_BR", [], "pt-BR"),
        ("faq.zh-Hans", [], "zh-Hans"),
        ("de", [], "de"),
        ("en-us", [], "en-US"),
        ("zh_CN", [], "zh-CN"),
        ("faq", ["docs", "th"], "th"),
        ("faq", ["de", "old", "part"], "de"),
        ("faq", ["de", "tr"], "tr"),
        ("faq.ar", ["de"], "ar"),
        ("faq", ["docs", "en-us"], "en-US"),
        # Words that no list of languages of two letters has, or that are of another case.
        ("faq.old", [], ""),
        ("faq_new", [], ""),
        ("UK", [], ""),
        ("faq_DE", [], ""),
        ("faq", ["src", "doc", "app"], ""),
        ("faqde", [], ""),
        ("sign_in", [], ""),
        ("", [], ""),
    ],
)
def test_a_name_tells_a_language_by_its_end_and_a_folder_by_all_of_it(stem, folders, language):
    assert language_of_name(stem, folders) == language
