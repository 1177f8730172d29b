"""The papers' notation for language variants, arrangements and patterns (MAML-Align paper, section 4.1 and Table 4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from helpers.tags import TAGS
from metasearch.config.arrangement import Arrangement, Pattern, Variant

languages = TAGS
variants = st.builds(Variant, languages, st.lists(languages, min_size=1, max_size=5, unique=True).map(tuple))
arrangements = st.builds(Arrangement, st.lists(variants, min_size=2, max_size=3).map(tuple))


@pytest.mark.slow
@given(arrangements)
def test_an_arrangement_that_is_written_is_read_back(arrangement):
    assert Arrangement.parse(str(arrangement)) == arrangement


@pytest.mark.parametrize(
    ("text", "kind", "query", "candidates"),
    [
        ("el_el", "mono", "el", ("el",)),
        ("el_ar", "bi", "el", ("ar",)),
        ("el_{ar,el}", "multi", "el", ("ar", "el")),
        ("el_{ar,de}", "multi", "el", ("ar", "de")),
        ("el_{el}", "mono", "el", ("el",)),
        ("el_{ar}", "bi", "el", ("ar",)),
        ("zh-Hans_zh-Hant", "bi", "zh-Hans", ("zh-Hant",)),
        (" el_{ ar , el } ", "multi", "el", ("ar", "el")),
        ("zh-hant_PT-br", "bi", "zh-Hant", ("pt-BR",)),
        ("zh-tw_{pt_br,EN}", "multi", "zh-TW", ("pt-BR", "en")),
    ],
)
def test_a_variant_says_its_kind_and_languages(text, kind, query, candidates):
    variant = Variant.parse(text)
    assert (variant.kind, variant.query, variant.candidates) == (kind, query, candidates)
    assert variant.languages == {query, *candidates}


@pytest.mark.parametrize(
    ("arrangement", "pattern"),
    [
        ("el_el -> ar_ar", "mono -> mono"),
        ("hi_hi -> hi_de", "mono -> bi"),
        ("el_el -> el_{ar,el}", "mono -> multi"),
        ("hi_de -> hi_{de,hi}", "bi -> multi"),
        ("el_el -> el_ar -> el_{ar,el,hi}", "mono -> bi -> multi"),
        ("en_en -> ar_en", "mono -> bi"),
        ("en_en -> en_ar -> en_{ar,en,es}", "mono -> bi -> multi"),
    ],
)
def test_arrangements_of_table_4_are_read_as_they_are_printed(arrangement, pattern):
    assert str(Arrangement.parse(arrangement)) == arrangement
    assert Arrangement.parse(arrangement).pattern == Pattern.parse(pattern)


@pytest.mark.parametrize("text", ["", "el", "el_", "_el", "el-ar", "el_{}", "el_{ar", "el_ar}", "el_{ar,,el}", "e_el"])
def test_what_is_no_variant_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"is not a language variant; write el_ar or el_\{ar,el\}"):
        Variant.parse(text)


def test_a_wrong_link_of_an_arrangement_is_named():
    with pytest.raises(ValueError, match="'el+ar' is not a language variant".replace("+", r"\+")):
        Arrangement.parse("el_el -> el+ar -> el_{ar,el}")


@pytest.mark.parametrize("text", ["mono", "mono -> ", "mono -> bi -> multi -> mono"])
def test_a_pattern_has_two_or_three_links(text):
    with pytest.raises(ValueError, match="two or three links such as 'mono -> bi'"):
        Pattern.parse(text)


class FrozenConfig(BaseModel):
    chain: Arrangement


def test_a_declaration_reads_and_writes_an_arrangement_as_text():
    declared = FrozenConfig.model_validate({"chain": "el_el→el_ar"})
    assert declared.chain == Arrangement((Variant("el", ("el",)), Variant("el", ("ar",))))
    assert declared.model_dump_json() == '{"chain":"el_el -> el_ar"}'
