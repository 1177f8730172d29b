"""The preprocessing of the EMA teacher paper: NFKC, and one symbol each for quotes and dashes."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metasearch.data.formats.blank import normalise


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("“quoted” „zitiert“ «cité» ＂full＂ 5″", '"quoted" "zitiert" "cité" "full" 5"'),
        ("‘quoted’ ‚zitiert‘ ‹cité› `this´ l’eau 5′", "'quoted' 'zitiert' 'cité' 'this' l'eau 5'"),
        ("one‐two‑three 1–2 yes — no ―quoth he −4", "one-two-three 1-2 yes - no -quoth he -4"),
        ("ＡＢＣ ﬁne ① x² カ\uff9e", "ABC fine 1 x2 ガ"),
        ("\u00a0 no\u00a0break\u3000wide \n", "no break wide"),
        ("`ascii'", "'ascii'"),
    ],
)
def test_variants_of_a_symbol_are_written_in_one_way(written, expected):
    assert normalise(written) == expected


@pytest.mark.parametrize("text", ["プール", "בית־ספר", "don't", "well-known", "人々「日本」〜", "soft\u00adhyphen"])
def test_letters_and_marks_of_one_script_stay_as_they_are(text):
    assert normalise(text) == text


@given(st.text())
@example("e\u2032\u0301")
@example("\u00a8")
def test_twice_is_the_same_as_once_and_the_result_is_nfkc(text):
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFKC", once)
