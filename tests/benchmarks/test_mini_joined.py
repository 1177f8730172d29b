"""The longer texts that `benchmarks/mini/joined.py` makes."""

import importlib

import pytest

from helpers.mini import MINI, line, written
from metasearch.data.parallel.names import recognise
from metasearch.data.parallel.read import read_corpus
from metasearch.spec.corpus import CorpusSettings


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of the folder."""
    monkeypatch.syspath_prepend(str(MINI))
    return importlib.import_module


def parallel(script, count, languages=("de", "el"), corpus="ntrex", words=3):
    """Return pairs of which sentence i is `corpus-i` and some words, and its translation has its language in front."""
    texts = [" ".join([f"{corpus}-{i}", *["word"] * (words - 1)]) for i in range(count)]
    return [line(script, text, f"{code}:{text}", code, corpus) for code in languages for text in texts]


def test_a_join_has_2_to_5_sentences_of_one_corpus_and_its_translation_the_same_ones(script):
    joined = script("joined")
    lines = [*parallel(script, 40), *parallel(script, 40, corpus="tatoeba")]
    made = joined.joined(lines, joined.Settings(share=1, others=0.5, front=0))
    assert len([one for one in made if one.corpus == "ntrex"]) == 2 * 40 * 1
    assert len([one for one in made if one.corpus == "tatoeba"]) == 2 * 40 * 0.5
    for one in made:
        names = [word for word in one.source.split() if word != "word"]
        assert 2 <= len(names) == len(set(names)) <= 5
        assert {name.split("-")[0] for name in names} == {one.corpus}
        assert one.target == " ".join(f"{one.language}:{name} word word" for name in names)
    assert {len(one.source.split()) // 3 for one in made} == {2, 3, 4, 5}


def test_the_same_english_joins_serve_all_languages_that_have_the_sentences(script):
    joined = script("joined")
    lines = [*parallel(script, 40), *parallel(script, 40, ("fr",), corpus="flores")]
    by_language = {code: [] for code in ("de", "el", "fr")}
    for one in joined.joined(lines, joined.Settings()):
        by_language[one.language].append(one.source)
    assert by_language["de"] == by_language["el"]
    assert not set(by_language["fr"]) & set(by_language["de"])


def test_sentences_that_few_share_are_joined_in_each_language_alone(script):
    joined = script("joined")
    lines = [*parallel(script, 15), *parallel(script, 5, ("de",), corpus="ntrex", words=4)]
    pools = list(joined.pools(lines))
    assert {(tuple(pool.renditions), len(pool.texts)) for pool in pools} == {(("de",), 15 + 5), (("el",), 15)}


def test_a_candidate_is_a_sentence_before_its_paragraph_and_its_english_the_sentence_alone(script):
    joined = script("joined")
    made = [one for one in joined.joined(parallel(script, 30), joined.Settings(front=1)) if one.language == "de"]
    paragraphs = []
    for one in made:
        front, *rest = [word.removeprefix("de:") for word in one.target.split() if word != "word"]
        assert one.source == f"{front} word word"
        assert rest.count(front) == 1
        assert 2 <= len(rest) == len(set(rest)) <= 5
        paragraphs.append((front, tuple(rest)))
    # Each paragraph stands behind two of its sentences.
    for (first, one), (second, other) in zip(paragraphs[::2], paragraphs[1::2], strict=True):
        assert one == other
        assert first != second


def test_no_side_is_longer_than_the_limits(script):
    joined = script("joined")
    lines = parallel(script, 60, words=30)
    made = joined.joined(lines, joined.Settings(words=100))
    assert {len(one.target.split()) for one in made} == {2 * 30, 3 * 30}
    assert all(len(one.target) <= 500 for one in joined.joined(lines, joined.Settings(characters=500)))
    assert joined.joined(lines, joined.Settings(words=59)) == []


def test_joins_depend_on_their_seed_alone(script):
    joined = script("joined")
    lines = parallel(script, 30)
    made = joined.joined(lines, joined.Settings(seed=1))
    assert made == joined.joined(lines, joined.Settings(seed=1))
    assert made != joined.joined(lines, joined.Settings(seed=2))


def test_what_a_distillation_of_the_seed_holds_out_is_in_no_join(script, tmp_path):
    """The corpus and its joins are read together, as by `metasearch distill`."""
    joined = script("joined")
    folder = written(tmp_path / "corpus", de=[f"english {i}\tdeutsch {i}\tntrex" for i in range(60)])
    joined.make(folder, tmp_path / "joined", joined.Settings(seed=3), dev=10)
    names = [path.name for path in (tmp_path / "joined").iterdir()]
    assert [recognise(tmp_path / name).languages for name in names] == [("en", "de")]
    train, dev = read_corpus([folder, tmp_path / "joined"], CorpusSettings()).hold_out(10, 3)
    held = {pair.source for pair in dev if len(pair.source.split()) == 2}
    parts = [text.split() for text in {pair.source for pair in train}]
    assert held
    assert not held & {f"english {number}" for words in parts if len(words) > 2 for number in words[1::2]}
