"""The one parser of language tags: BCP 47 in, its canonical form out, whatever the case and the separator."""

import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langcodes.data_dicts import LANGUAGE_REPLACEMENTS
from pydantic import ValidationError

from helpers.tags import NAMES, TAGS, written
from metasearch.config.arrangement import Variant
from metasearch.config.distillation import CorpusSettings
from metasearch.config.languages import normalise_tag, parse_name, parse_pair, parse_tag, spelling_of
from metasearch.config.projection import ProjectionSettings
from metasearch.config.task import Translate
from metasearch.search.settings import IndexSettings


@given(written())
def test_a_tag_is_read_in_any_case_with_any_separator_and_its_canonical_form_is_stable(case):
    tag, text = case
    assert parse_tag(text) == parse_tag(f" {text} ") == tag
    assert parse_tag(tag) == tag


ALPHABET = string.ascii_lowercase
CODES = [first + second for first in ALPHABET for second in ALPHABET]


def test_every_code_of_a_language_has_one_canonical_form():
    canonical = {code: parse_tag(code) for code in [*CODES, *(code + last for code in CODES for last in ALPHABET)]}
    assert {tag: parse_tag(tag) for tag in canonical.values()} == {tag: tag for tag in canonical.values()}
    # Of the codes that have been replaced (IANA registry), and of those of three letters for the ones of two.
    assert not set(LANGUAGE_REPLACEMENTS) & set(canonical.values())
    assert all(canonical[code] != code for code in LANGUAGE_REPLACEMENTS if code in canonical)
    assert [code for code in CODES if canonical[code] != code] == sorted(
        ["bh", "in", "iw", "ji", "jw", "mo", "nb", "sh", "tl", "tw"]
    )


SAME = [
    ("he", ["iw", "heb", "HEB"]),
    ("id", ["in", "ind"]),
    ("yi", ["ji", "yid"]),
    ("jv", ["jw", "jav"]),
    ("ro", ["mo", "ron", "rum", "mol"]),
    ("no", ["nb", "nob", "nor", "no-bok"]),
    ("nn", ["nno", "no-nyn"]),
    ("sr-Latn", ["sh", "hbs", "sr-latn"]),
    ("fil", ["tl", "tgl"]),
    ("zh", ["cmn", "zho", "chi", "zh-cmn", "zh-guoyu"]),
    ("yue", ["zh-yue"]),
    ("nan", ["zh-min-nan"]),
    ("de", ["deu", "ger", "de-Latn", "deu_Latn"]),
    ("ar", ["ara", "arb", "arb_Arab"]),
    ("fa", ["pes", "fas", "per"]),
    ("ms", ["zsm", "msa"]),
    ("tlh", ["i-klingon"]),
    ("en-GB-oxendict", ["en-GB-oed"]),
]


def test_codes_of_one_language_are_one_tag():
    for tag, others in SAME:
        assert {parse_tag(other) for other in [tag, *others]} == {tag}


@given(st.sampled_from([(tag, other) for tag, others in SAME[:6] for other in others[:2]]), st.data())
def test_a_replaced_code_keeps_script_region_and_the_rest(pair, data):
    tag, other = pair
    rest = data.draw(TAGS).partition("-")[2]
    assert parse_tag(f"{other}-{rest}".strip("-")) == parse_tag(f"{tag}-{rest}".strip("-"))


def test_a_tag_of_two_letters_needs_no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "langcodes", None)
    assert [parse_tag(code) for code in ("de", "EN", "no")] == ["de", "en", "no"]


def test_a_task_keeps_the_tag_that_it_declares_and_finds_it_by_any_other(tmp_path):
    assert Translate(source="IW", into=("deu",)).into == ("deu",)
    assert Variant.parse("iw_{deu,nb_NO}").candidates == ("deu", "nb-NO")
    assert [spelling_of(tag, ["iw", "deu"]) for tag in ("he", "iw", "ger", "tl")] == ["iw", "iw", "deu", "fil"]


@given(written())
def test_every_declaration_reads_a_tag_in_the_same_way(case):
    tag, text = case
    assert IndexSettings(language=text, detect=(text,)).detect == (IndexSettings(language=text).language,) == (tag,)
    assert CorpusSettings(languages=(text,), pivot=text).languages == (tag,)
    assert ProjectionSettings(languages=(text,)).languages == (tag,)
    assert Translate(source=text, into=("fr-CA",)).source == tag
    assert Variant.parse(f"{tag}_{{{text},fr-CA}}").candidates == (tag, "fr-CA")


NO_TAGS = ("", "german", "d", "de-", "x-default", "de DE", "дe", "1", "de-aaaaaaaaa", "de-u", "de-BR-Latn", "de-12")


def test_another_text_is_refused_where_a_tag_is_required_and_kept_where_a_message_names_the_nearest():
    for text in (*NO_TAGS, "i-default", "root"):
        with pytest.raises(ValueError, match="is not a language tag such as de, fil or zh-CN"):
            parse_tag(text)
        with pytest.raises(ValidationError, match="is not a language tag such as de"):
            CorpusSettings(languages=(text,))
        assert normalise_tag(text) == text


@given(written(NAMES, lower=True))
def test_a_name_is_a_tag_in_any_case_of_script_and_region(case):
    tag, text = case
    assert parse_name(text) == tag


def test_a_name_is_no_tag_if_a_part_of_it_does_not_exist_or_can_be_a_country():
    names = ("KR", "DE", "xx", "de-EN", "en-eu", "to-java", "git-rm", "de-1996", "de-1", "")
    assert [name for name in names if parse_name(name)] == []


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
