"""The one parser of language tags: BCP 47 in, its canonical form out, whatever the case and the separator."""

import pytest
from hypothesis import given
from pydantic import ValidationError

from helpers.tags import NAMES, written
from metasearch.config.arrangement import Variant
from metasearch.config.distillation import CorpusSettings
from metasearch.config.index import IndexSettings
from metasearch.config.languages import normalise_tag, parse_name, parse_pair, parse_tag
from metasearch.config.postprocessing import NeutralSettings
from metasearch.config.task import Translate


@given(written())
def test_a_tag_is_read_in_any_case_with_any_separator_and_its_canonical_form_is_stable(case):
    tag, text = case
    assert parse_tag(text) == parse_tag(f" {text} ") == tag
    assert parse_tag(tag) == tag


@given(written())
def test_every_declaration_reads_a_tag_in_the_same_way(case):
    tag, text = case
    assert IndexSettings(language=text, detect=(text,)).detect == (IndexSettings(language=text).language,) == (tag,)
    assert CorpusSettings(languages=(text,), pivot=text).languages == (tag,)
    assert NeutralSettings(languages=(text,)).languages == (tag,)
    assert Translate(source=text, into=("fr-CA",)).source == tag
    assert Variant.parse(f"{tag}_{{{text},fr-CA}}").candidates == (tag, "fr-CA")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "german",
        "d",
        "de-",
        "x-default",
        "de DE",
        "дe",
        "1",
        "de-" + "a" * 9,
        "de-u",
        "de-BR-Latn",
        "de-12",
        "i-klingon",
    ],
)
def test_another_text_is_refused_where_a_tag_is_required_and_kept_where_a_message_names_the_nearest(text):
    with pytest.raises(ValueError, match="is not a language tag such as de, fil or zh-CN"):
        parse_tag(text)
    with pytest.raises(ValidationError, match="is not a language tag such as de"):
        CorpusSettings(languages=(text,))
    assert normalise_tag(text) == text


@given(written(NAMES, lower=True))
def test_a_name_is_a_tag_in_any_case_of_script_and_region(case):
    tag, text = case
    assert parse_name(text) == tag


@pytest.mark.parametrize("text", ["KR", "DE", "xx", "in", "de-EN", "to-java", "git-rm", "de-1996", "de-1", "", "de_"])
def test_a_name_is_no_tag_if_a_part_of_it_does_not_exist_or_can_be_a_country(text):
    assert parse_name(text) == ""


@given(written(), written())
def test_a_pair_is_read_by_the_languages_that_a_task_has(first, second):
    assert parse_pair(f"{first[1]}-{second[1]}", [first[0], second[0]]) == (first[0], second[0])


@pytest.mark.parametrize(
    ("text", "pair"),
    [("pt-br-de", ("pt-BR", "de")), ("de-pt-br", ("de", "pt-BR")), ("sr-latn-sr-cyrl", ("sr-Latn", "sr-Cyrl"))],
)
def test_a_region_in_a_pair_is_told_from_a_language_by_the_task(text, pair):
    assert parse_pair(text, ["pt-BR", "de", "sr-Latn", "sr-Cyrl"]) == pair


@pytest.mark.parametrize(
    ("text", "tag"), [("pt-br", ""), ("pt-BR", "pt-BR"), ("pt_br", "pt-BR"), ("sr-latn", "sr-Latn")]
)
def test_where_names_are_pairs_a_region_behind_a_hyphen_has_capitals(text, tag):
    assert parse_name(text, cased=True) == tag


@pytest.mark.parametrize(
    ("text", "known", "says"),
    [
        ("ar-xx", ["ar"], "xx is not a language of the task"),
        ("sr-Latn-en", ["sr", "en"], "sr-Latn is not a language of the task"),
        ("ar", ["ar"], "'ar' is not a pair of languages such as ar-en"),
        (
            "en-pt-br",
            ["en", "pt-BR", "en-PT", "br"],
            "'en-pt-br' can be read as en and pt-BR or en-PT and br; "
            "write regions with an underscore, such as pt_BR-en",
        ),
    ],
)
def test_a_pair_that_cannot_be_read_says_why(text, known, says):
    with pytest.raises(ValueError, match=f"^{says}$"):
        parse_pair(text, known)
