"""Equal texts in several languages are one hit that names them all, in a folder and in databases."""

import json
from collections import defaultdict
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import files
from helpers.indexes import in_postgresql
from metasearch.encoders.builtin import tiny
from metasearch.search.index.local import LocalStore
from metasearch.search.indexes import index_documents, open_searcher
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings

TEXTS = [f"The {thing} is {where}." for thing in ("key", "cat", "bread") for where in ("here", "there", "away", "gone")]
LANGUAGES = ("de", "es", "pt-BR")
ROWS = st.lists(
    st.tuples(st.sampled_from(TEXTS), st.sampled_from(LANGUAGES), st.sampled_from([None, 1, 2])),
    min_size=1,
    max_size=30,
)


@cache
def encoder():
    return tiny.build()


def searcher_of(folder, rows):
    folder.mkdir(exist_ok=True)
    path = folder / "rows.jsonl"
    lines = [{"text": text, "language": language, "n": number} for text, language, number in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    update(folder / "index", [path], encoder(), IndexSettings(names=False, neutral=False))
    return Searcher(LocalStore.open(folder / "index"), encoder())


def distinct(rows, languages=LANGUAGES):
    """Return the places of each text with its fields, and its languages, by plain counting."""
    found = defaultdict(list)
    for text, language, number in rows:
        if language in languages:
            found[text, number].append(language)
    return {key: (len(tags), set(tags)) for key, tags in found.items()}


def seen(hits):
    return {
        (hit.passage.text, hit.passage.fields.get("n")): (hit.places, set(hit.languages)) for hit in hits
    }  # fmt: skip


def check(searcher, rows, top_k, languages, **how):
    known = {language for _, language, _ in rows}
    asked = [tag for tag in languages if tag in known]
    (hits,) = searcher.search(["Where is the key?"], top_k=top_k, languages=asked, **how)
    expected = distinct(rows, asked or LANGUAGES)
    assert len(hits) == len(seen(hits)) == min(top_k, len(expected))
    assert seen(hits).items() <= expected.items()
    assert all(hit.languages[0] == hit.passage.language for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.slow
@given(ROWS, st.integers(1, 12), st.sets(st.sampled_from(LANGUAGES)), st.sampled_from(["", "balance"]))
def test_each_text_is_one_hit_with_all_its_places_and_languages(tmp_path_factory, rows, top_k, languages, how):
    searcher = searcher_of(tmp_path_factory.mktemp("equal"), rows)
    check(searcher, rows, top_k, sorted(languages), **({how: True} if how else {}))


EVERYWHERE = [(text, language, None) for text in TEXTS for language in LANGUAGES] + [(TEXTS[0], "de", None)]


@pytest.mark.parametrize(
    ("place", "how"),
    [
        *product(["folder"], ["plain", "balance", "expand", "hybrid"]),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in product(["postgresql"], ["plain", "hybrid"])),
    ],
)
def test_each_way_to_rank_finds_as_many_texts_as_are_asked_for(how, place, tmp_path, request):
    if how == "hybrid":
        pytest.importorskip("bm25s")
    searcher = searcher_of(tmp_path / "docs", EVERYWHERE)
    if place == "postgresql":
        server = request.getfixturevalue("postgres")
        searcher = Searcher(in_postgresql(searcher.store, server, searcher.cut_words), encoder())
    asked = {} if how == "plain" else {how: True}
    for top_k in (1, 5, 12, 40):
        check(searcher, EVERYWHERE, top_k, [], **asked)
        check(searcher, EVERYWHERE, top_k, ["es"], **asked)
    (best, *_), *_ = searcher.search([TEXTS[0]], top_k=1)
    assert (best.passage.text, best.places, sorted(best.languages)) == (TEXTS[0], 4, list(LANGUAGES))


def test_the_order_is_that_of_the_texts_alone(tmp_path):
    """Ranks and scores are those of an index that has each text in one language."""
    alone = searcher_of(tmp_path / "alone", [(text, "de", None) for text in TEXTS])
    everywhere = searcher_of(tmp_path / "everywhere", EVERYWHERE)
    first, second = ([each.search([query], top_k=12)[0] for query in TEXTS] for each in (alone, everywhere))
    for one, other in zip(first, second, strict=True):
        assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=1e-3)
        assert one[0].passage.text == other[0].passage.text


def test_untranslated_copies_are_the_page_that_they_copy(tmp_path):
    """Ten pages in English and French. The folders `da` and `de` have the English ones, and one German page."""
    things = ("apple", "brick", "cloud", "door", "engine", "flower", "garden", "house", "island", "jacket")
    texts = {
        "en": "How to clean the {} with water and a brush when it is dirty.<p>Where the {} is kept over the winter.",
        "fr": "Comment nettoyer {} avec de l'eau et une brosse quand il est sale.<p>Où {} est rangé pendant l'hiver.",
    }
    license = "<p>This manual is free: you can copy it and change it."
    for folder, thing in product(("da", "de", "en", "fr"), things):
        text = texts.get(folder, texts["en"]).format(thing, thing)
        files.write(tmp_path / "pages" / folder / f"{thing}.html", f"<h1>{thing}</h1><p>{text}{license}")
    german = "So reinigt man den Apfel mit Wasser und einer Bürste.<p>Dort wird er im Winter aufbewahrt."
    files.write(tmp_path / "pages/de/apple.html", f"<h1>Apfel</h1><p>{german}{license}")
    index_documents([tmp_path / "pages"], tmp_path / "index", "tiny", device="cpu")
    searcher = open_searcher(tmp_path / "index", "cpu")
    assert searcher.ranking.balance  # of 21 pages, each has a translation
    hits = searcher.search(["cleaning a brick"], top_k=40, prefer=["en"])[0]
    assert sorted(hit.passage.file for hit in hits) == [f"en/{thing}.html" for thing in things]
    found = {hit.passage.file: {each.passage.language for each in hit.translations} for hit in hits}
    assert found.pop("en/apple.html") == {"de", "fr"}
    assert all(languages == {"fr"} for languages in found.values())
    pages = searcher.search(["cleaning a brick"], top_k=40, by="page")[0]
    assert len({hit.passage.file for hit in pages}) == 21
    places = searcher.store.passages_by_place()
    originals = {places[i].file: places[own].file for i, own in enumerate(searcher.store.original_places().tolist())}
    assert originals["da/apple.html"] == originals["en/apple.html"] == "en/apple.html"
    assert {*originals.values()} == {hit.passage.file for hit in pages}


def test_a_page_in_a_folder_of_a_language_is_a_translation_also_in_part(tmp_path):
    """The German page has four English paragraphs, as stated, and one German one."""
    things = ("lock", "door", "hinge", "window")
    english = [f"How to oil the {thing} of the house in winter, and where the {thing} is." for thing in things]
    german = "Wo der Schlüssel des Hauses liegt und wie man ihn dreht."
    part = "".join(f'<p lang="en">{text}' for text in english)
    files.write(tmp_path / "pages/de/key.html", f"<h1>Schlüssel</h1><p>{german}{part}")
    files.write(tmp_path / "pages/en/key.html", f"<h1>Key</h1>{part}")
    for thing in ("Apfel", "Baum", "Garten", "Schuppen", "Zaun"):
        files.write(
            tmp_path / f"pages/de/{thing}.html", f"<p>Wo {thing} und Haus des Nachbarn sind und wem sie gehören."
        )
    index_documents([tmp_path / "pages"], tmp_path / "index", "tiny", {"length": 20}, device="cpu")
    for tag, other in (("de", "en"), ("en", "de")):
        (hit,) = open_searcher(tmp_path / "index", "cpu").search(["key"], top_k=1, prefer=[tag])[0]
        assert (hit.passage.file, [each.passage.file for each in hit.translations]) == (
            f"{tag}/key.html",
            [f"{other}/key.html"],
        )


def test_equal_pages_with_translations_of_their_own_keep_them(tmp_path):
    """Two versions of a manual: the English page is the same in both, and the French one is not."""
    for version, french in {"v1": "Où est la clé de la maison.", "v2": "La clé se trouve sous le tapis."}.items():
        files.write(tmp_path / "pages" / version / "en" / "key.md", "The key is under the mat.")
        files.write(tmp_path / "pages" / version / "fr" / "key.md", french)
    index_documents([tmp_path / "pages"], tmp_path / "index", "tiny", device="cpu")
    searcher = open_searcher(tmp_path / "index", "cpu")
    hits = searcher.search(["key"], prefer=["fr"])[0]
    assert {hit.passage.file: [each.passage.language for each in hit.translations] for hit in hits} == {
        "v1/fr/key.md": ["en"],
        "v2/fr/key.md": ["en"],
    }
    assert searcher.store.original_places().tolist() == [0, 1, 2, 3]
