"""A neutral index: what languages differ in is taken out of its vectors and of those of queries.

It is made by default where two languages have five passages each.
"""

import json

import numpy as np
import pytest

from helpers.commands import metasearch
from helpers.serving import running
from metasearch.encoders.builtin import tiny
from metasearch.encoders.maps import estimate
from metasearch.encoders.neutral import append
from metasearch.errors import DataError, EncoderError, Interrupted
from metasearch.runs.callbacks import Callback
from metasearch.search.index.exact_search import to_int8
from metasearch.search.index.local import LocalStore
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings

SENTENCES = {
    "de": "Das Haus Nummer {} steht in der Stadt.",
    "en": "The house number {} stands in the town.",
    "fr": "La maison numéro {} est dans la ville.",
}
TEXTS = {language: [SENTENCES[language].format(n) for n in range(25)] for language in ("de", "en")}


@pytest.fixture(scope="module")
def encoder():
    return tiny.build()


@pytest.fixture
def docs(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO", "metasearch")
    write(de=25, en=25)
    return tmp_path


def write(**counts):
    """Write so many passages of some languages; `und` has no language in its name."""
    for language, count in counts.items():
        rows = [json.dumps({"text": SENTENCES.get(language, "{}").format(n)}) + "\n" for n in range(count)]
        with open(f"docs.{language}.jsonl" if language != "und" else "docs.jsonl", "w", encoding="utf-8") as file:
            file.writelines(rows)


def index(docs, encoder, name="index", neutral=None, callback=None):
    how = {"callback": callback} if callback else {}
    return update(docs / name, sorted(docs.glob("docs*.jsonl")), encoder, IndexSettings(neutral=neutral), **how)


def said(caplog):
    """Return what was told about the projection since the last call."""
    lines = [
        record.message for record in caplog.records if "projection" in record.message or "centred" in record.message
    ]
    caplog.clear()
    return lines


def contents(docs, name="index"):
    """Return the projection of an index, and the vectors of its passages by text."""
    store = LocalStore.open(docs / name)
    vectors = store.quantised.take(slice(None))
    texts = [passage.text for passage, _ in store.passages(range(len(store)))]
    arrays = {key: value.tolist() for key, value in store.plan.record.items()}
    return arrays, {text: vector.tolist() for text, vector in zip(texts, vectors, strict=True)}


def test_scores_are_those_of_the_map_of_its_own_passages_on_both_sides(docs, encoder, caplog):
    """A row is a page without translations; queries have a centre of their own."""
    done = index(docs, encoder)
    assert done.neutral == ("de", "en")
    assert said(caplog) == ["language bias is removed: a projection was estimated from de 25, en 25"]
    # Stored in eight bits, then projected.
    stored = {language: to_int8(encoder.encode(texts, "candidate")) for language, texts in TEXTS.items()}
    vectors = {language: rounded.take(slice(None)) for language, rounded in stored.items()}
    neutral = estimate(vectors)
    store = LocalStore.open(docs / "index")
    (query,) = neutral(encoder.encode(["house number 7"], "question"), store.plan.query_centre)
    expected = {
        text: query @ vector
        for tag, texts in TEXTS.items()
        for text, vector in zip(texts, neutral(vectors[tag]), strict=True)
    }
    hits = Searcher(store, encoder).search(["house number 7"], top_k=50)[0]
    assert len(hits) == 50
    assert max(abs(hit.score - expected[hit.passage.text]) for hit in hits) < 0.02


@pytest.mark.parametrize(
    ("counts", "lines"),
    [
        ({"de": 25, "en": 5}, ["language bias is removed: a projection was estimated from de 25, en 5"]),
        ({"de": 25, "en": 5, "fr": 3},
         ["language bias is removed: a projection was estimated from de 25, en 5, without fr 3"]),
        ({"de": 25, "en": 4}, ["no language-neutral projection: it needs 5 passages in each of two languages or "
         "more; there are de 25, en 4", "vectors are centred: their mean was estimated from de 25, en 4"]),
        ({"de": 25, "en": 0, "und": 25}, ["no language-neutral projection: it needs 5 passages in each of two "
         "languages or more; there are de 25, und 25 (und: unknown; set it with --language or --detect)",
         "vectors are centred: their mean was estimated from de 25, und 25"]),
        ({"de": 25, "en": 0}, ["vectors are centred: their mean was estimated from de 25"]),
    ],
)  # fmt: skip
def test_by_default_it_is_made_of_two_languages_with_five_passages_and_one_line_says_so(
    counts, lines, docs, encoder, caplog
):
    write(**counts)
    done = index(docs, encoder)
    assert done.neutral == (("de", "en") if "removed" in "".join(lines) else ())
    assert said(caplog) == lines
    index(docs, encoder)  # without a change
    assert "estimated" not in "".join(said(caplog))


def test_turned_off_its_vectors_are_those_of_the_encoder_and_turned_on_again_none_is_encoded(docs, encoder, caplog):
    index(docs, encoder)
    by_default = contents(docs)
    assert index(docs, encoder, neutral=False).encoded == 0
    arrays, vectors = contents(docs)
    expected = to_int8(encoder.encode(TEXTS["de"], "candidate")).take(slice(None))
    assert arrays.keys() == {"sharpness", "sampled"}
    np.testing.assert_allclose([vectors[text] for text in TEXTS["de"]], expected, atol=1e-2)
    assert index(docs, encoder, neutral=True).encoded == 0
    assert contents(docs) == by_default


def test_asked_for_it_is_an_error_where_it_cannot_be_made_before_anything_is_encoded(docs, encoder):
    write(en=4)
    with pytest.raises(DataError, match=r"needs 5 passages in each of two languages or more; there are de 25, en 4$"):
        index(docs, encoder, neutral=True, callback=Stopping(0))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"fr": 20}, "estimated again (fr is new) from de 25, en 25, fr 20; all vectors are kept"),
        ({"en": 50}, "estimated again (en 25 → 50) from de 25, en 50; all vectors are kept"),
        ({"en": 12}, "estimated again (en 25 → 12) from de 25, en 12; all vectors are kept"),
    ],
)
def test_a_new_language_or_twice_or_half_the_passages_give_the_index_that_would_be_made_anew(
    change, line, docs, encoder, caplog
):
    index(docs, encoder)
    said(caplog)
    write(**change)
    assert index(docs, encoder).encoded == max(0, sum(change.values()) - 25 * ("en" in change))
    assert said(caplog) == [f"language bias is removed: a projection was {line}"]
    index(docs, encoder, "anew")
    (arrays, vectors), (anew, others) = contents(docs), contents(docs, "anew")
    # Which texts are encoded together changes the last bits of their vectors.
    assert arrays["languages"] == anew["languages"]
    np.testing.assert_allclose(arrays["centre"], anew["centre"], atol=1e-4)
    for text, vector in others.items():
        np.testing.assert_allclose(vectors[text], vector, atol=0.02)


def test_a_language_that_is_nearly_gone_leaves_the_projection(docs, encoder, caplog):
    index(docs, encoder)
    said(caplog)
    write(en=2)
    assert index(docs, encoder).neutral == ()
    expected = "vectors are centred: their mean was estimated from de 25, en 2; all vectors are kept"
    assert said(caplog) == [expected]


def test_little_more_leaves_the_projection_as_it_is(docs, encoder, caplog):
    index(docs, encoder)
    before, _ = contents(docs)
    said(caplog)
    write(de=24, en=49, fr=4)
    assert index(docs, encoder).neutral == ("de", "en")
    assert (contents(docs)[0], said(caplog)) == (before, [])


class Stopping(Callback):
    """Ends a run as Ctrl-C does once so many texts are encoded."""

    def __init__(self, after):
        self.after = after

    def on_encode(self, what, done, total):
        if done > self.after:
            raise KeyboardInterrupt


def test_stopped_and_continued_it_has_the_projection_of_one_that_was_never_stopped(docs, encoder, monkeypatch):
    from metasearch.search.query import update as module

    monkeypatch.setattr(module, "_AT_ONCE", 16)
    index(docs, encoder, "whole")
    with pytest.raises(Interrupted, match="32 of 50 new texts are encoded"):
        index(docs, encoder, callback=Stopping(32))
    assert index(docs, encoder).encoded == 18
    assert contents(docs) == contents(docs, "whole")


def test_an_encoder_with_a_projection_gets_no_second_one(docs, encoder, caplog):
    own = tiny.build()
    append(own, estimate({language: encoder.encode(texts, "candidate") for language, texts in TEXTS.items()}))
    assert index(docs, own).neutral == ()
    assert said(caplog) == ["vectors are centred: their mean was estimated from de 25, en 25"]
    with pytest.raises(EncoderError, match="already has a language-neutral projection"):
        index(docs, own, "asked", neutral=True)


def test_the_command_makes_it_by_default_and_leaves_it_out_if_told(docs):
    first = metasearch("index", *docs.glob("docs*.jsonl"), "--encoder=tiny", "-o", "index")
    assert first.stdout.splitlines()[0] == "encoder: tiny, language-neutral (de, en)"
    off = metasearch("index", *docs.glob("docs*.jsonl"), "--no-neutral", "--json", "-o", "index")
    assert json.loads(off.stdout)["neutral"] == []


def test_a_server_of_it_projects_embeddings_but_those_of_texts_that_are_compared_with_each_other(docs, encoder):
    index(docs, encoder)
    searcher = Searcher(LocalStore.open(docs / "index"), encoder)
    neutral, centre = searcher.store.plan.projection, searcher.store.plan.query_centre
    expected = {
        "query": neutral(encoder.encode(["house number 7"], "question"), centre),
        "document": neutral(encoder.encode(["house number 7"], "candidate")),
        "passage": neutral(encoder.encode(["house number 7"], "candidate")),
        "text": encoder.encode(["house number 7"], "text"),
        None: neutral(encoder.encode(["house number 7"], "candidate")),
    }
    with running(searcher) as server:
        for kind, vectors in expected.items():
            _, answer = server.post("/v1/embeddings", {"input": "house number 7", "input_type": kind})
            np.testing.assert_allclose(answer["data"][0]["embedding"], vectors[0], atol=1e-5)
    np.testing.assert_allclose(searcher.encode_queries(["house number 7"]), expected["query"], atol=1e-5)
    assert np.abs(expected["document"] - expected["text"]).max() > 1e-2
