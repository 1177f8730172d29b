"""Documents go into an index: what is new is encoded, what is gone is found no more, all else stays."""

import json
import sqlite3
from functools import cache
from pathlib import Path

import pytest

from helpers.files import write
from metasearch.encoders.builtin import tiny
from metasearch.errors import ConfigError, DataError, Interrupted, RunFolderError
from metasearch.search.index import database
from metasearch.search.index.local import LocalStore
from metasearch.search.query.searcher import Searcher
from metasearch.search.query.update import update
from metasearch.search.settings import IndexSettings

DE = ("Der Schlüssel liegt unter der Matte.", "Die Katze schläft im Korb.", "Das Brot backt im Ofen.")
EN = ("The key is under the mat.", "The bus leaves at noon.")


@cache
def encoder(seed=0):
    return tiny.build(seed=seed)


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows("docs/faq.de.jsonl", DE)
    write_rows("docs/faq.en.jsonl", EN)
    return tmp_path / "docs"


def write_rows(path, texts):
    write(Path(path), "".join(json.dumps({"text": text}) + "\n" for text in texts))


def index(folder, *paths, name="one", by=None, drop=False, **settings):
    return update(folder.parent / name, paths or ["docs"], by or encoder(), IndexSettings(**settings), drop=drop)


def searcher(docs, name="one"):
    return Searcher(LocalStore.open(docs.parent / name), encoder())


def found(docs, query, name="one", **asked):
    hits = searcher(docs, name).search([query], top_k=20, **asked)[0]
    return [(hit.passage.language, hit.passage.file, hit.passage.line, hit.passage.text) for hit in hits]


def everything(docs, name="one"):
    """All that a search gives, scores to three digits: their last bits depend on which texts are encoded together."""
    hits = searcher(docs, name).search(list(DE + EN), top_k=20, by="passage")
    return [{(hit.passage, hit.places, round(hit.score, 3)) for hit in each} for each in hits]


def test_scores_are_those_of_the_encoders_vectors_but_for_the_rounding_to_eight_bits(docs):
    index(docs)
    (query,) = encoder().encode([EN[1]], "question")
    # A page of one passage has its score, half of it as the mean of itself alone.
    for by in ("passage", "page", "group"):
        scores = {hit.passage.text: hit.score for hit in searcher(docs).search([EN[1]], top_k=5, by=by)[0]}
        for text, vector in zip(DE + EN, encoder().encode(list(DE + EN), "candidate"), strict=True):
            assert abs(scores[text] - query @ vector) < 0.02


def test_an_update_encodes_new_texts_alone_and_drops_what_is_gone(docs):
    done = index(docs)
    assert (done.documents, done.passages, done.encoded, done.languages) == (2, 5, 5, {"de": 3, "en": 2})
    assert {text for *_, text in found(docs, EN[0], languages=["en"])} == set(EN)
    before, done = everything(docs), index(docs)
    assert (done.encoded, done.added, done.changed, done.dropped) == (0, 0, 0, 0)
    assert everything(docs) == before
    write_rows("docs/faq.de.jsonl", ("Ganz neu.", *DE[:2]))
    done = index(docs)
    assert (done.encoded, done.changed, done.passages) == (1, 1, 5)
    assert found(docs, DE[0])[0] == ("de", "faq.de.jsonl", 2, DE[0])
    assert DE[2] not in [text for *_, text in found(docs, DE[2])]
    (docs / "faq.en.jsonl").unlink()
    assert index(docs).languages == {"de": 3}
    assert {language for language, *_ in found(docs, EN[0])} == {"de"}


def test_a_page_is_compared_with_all_pages_whenever_it_comes(docs):
    """An updated index is the same as a new one: also pages that did not change lose what most share by then."""

    def write_pages(first, last):
        for n in range(first, last):
            page = f"<title>{n} | Acme</title><p>Menu<h2 id=h{n}>Part {n}</h2><p>Page {n}."
            (docs / f"{n:02}.html").write_text(page, encoding="utf-8")

    def same_as_new(name):
        index(docs, name=name, neutral=False)
        assert everything(docs) == everything(docs, name)
        return {text for *_, text in found(docs, "Page 3.")}

    write_pages(0, 9)
    index(docs, neutral=False)
    assert "3 | Acme\nMenu\n\nPart 3\n\nPage 3." in same_as_new("nine")
    write_pages(9, 12)
    assert (index(docs, neutral=False).changed, index(docs, neutral=False).encoded) == (0, 0)
    assert "Part 3\n\nPage 3." in same_as_new("twelve")
    (hit,) = [hit for hit in searcher(docs).search(["3"], top_k=20)[0] if "Page 3." in hit.passage.text]
    assert (hit.passage.heading, hit.passage.anchor) == ("Part 3", "h3")
    for n in range(4, 12):
        (docs / f"{n:02}.html").unlink()
    index(docs, neutral=False)
    assert "3 | Acme\nMenu\n\nPart 3\n\nPage 3." in same_as_new("four")
    index(docs, name="whole", keep_repeated=True)
    with pytest.raises(ConfigError, match="keep_repeated"):
        index(docs, name="whole")


@pytest.mark.parametrize("damage", ["UPDATE codes SET crc = crc + 1", "UPDATE passage SET text = 'x' WHERE id = 1"])
def test_a_damaged_index_is_refused_before_documents_are_read(docs, damage):
    index(docs)
    with sqlite3.connect(docs.parent / "one" / "index.sqlite") as file:
        file.execute(damage)
    (docs / "faq.en.jsonl").unlink()
    with pytest.raises(RunFolderError, match="is damaged"):
        index(docs)


def test_no_passage_has_more_tokens_than_was_asked(docs):
    (docs / "long.en.txt").write_text(" ".join(f"Word {n} and then one more." for n in range(100)), encoding="utf-8")
    index(docs, length=12)
    texts = [hit.passage.text for hit in searcher(docs).search(["word"], top_k=200)[0]]
    lengths = encoder().lengths(texts, "candidate")
    assert len(texts) > 20
    assert lengths.max() <= 12 < lengths.sum()


@pytest.mark.slow
def test_what_a_call_that_was_stopped_had_encoded_is_not_encoded_again(docs, monkeypatch):
    monkeypatch.setattr("metasearch.search.query.update._AT_ONCE", 2)
    encode, calls = encoder().encode, []

    def stopping(texts, *rest, **keys):
        calls.append(len(texts))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return encode(texts, *rest, **keys)

    monkeypatch.setattr(encoder(), "encode", stopping)
    with pytest.raises(Interrupted, match="2 of 5 new texts are encoded and kept"):
        index(docs)
    with pytest.raises(RunFolderError, match="incomplete"):
        LocalStore.open(docs.parent / "one")
    index(docs)
    assert calls == [2, 2, 2, 1, 5]  # two are in, three are encoded after that, then words of all five as queries
    monkeypatch.undo()
    monkeypatch.chdir(docs.parent)
    index(docs, name="whole")
    assert everything(docs) == everything(docs, "whole")


@pytest.mark.slow
def test_documents_without_any_text_are_refused_and_an_index_stays_as_it_was(docs):
    index(docs)
    before = everything(docs)
    (docs / "a.txt").write_text("\u200b\n", encoding="utf-8")
    for name in ("one", "new"):
        with pytest.raises(DataError, match=rf"{name}: no document has text"):
            index(docs, "docs/a.txt", name=name, drop=True)
    assert everything(docs) == before


def test_settings_that_do_not_fit_are_refused(docs):
    with pytest.raises(ConfigError, match=r"length 5000: encoder 'tiny' reads \d+ tokens of a passage"):
        index(docs, length=5000)
    with pytest.raises(ConfigError, match=r"overlap 9: expected less than the 9 tokens of a passage"):
        index(docs, length=9, overlap=9)
    with pytest.raises(ConfigError, match=r"column 'title' cannot be the column with the text"):
        index(docs, column="title")
    assert not (docs.parent / "one").exists()


def test_a_document_that_changes_while_others_are_encoded_is_indexed_as_it_was_read(docs, monkeypatch):
    encode, changed = encoder().encode, []

    def changing(*args, **keys):
        if not changed:
            changed.append(write_rows("docs/faq.en.jsonl", ("Something else.",)))
        return encode(*args, **keys)

    monkeypatch.setattr("metasearch.search.query.update._AT_ONCE", 1)
    monkeypatch.setattr(encoder(), "encode", changing)
    assert index(docs).encoded == 5
    done = index(docs)
    assert (done.encoded, done.changed, done.passages) == (1, 1, 4)


def test_settings_without_effect_are_named(docs, caplog):
    (docs / "a.txt").write_text("Hello there.", encoding="utf-8")
    index(docs, "docs/a.txt", column="body", language="en", detect=("de", "en"))
    assert caplog.messages == [
        "column 'body' has no effect: no document has rows, such as .jsonl and .csv",
        "detect has no effect: texts without a language get the language 'en'",
    ]


def test_detection_is_added_to_an_index_and_encodes_again_what_changes_its_language_alone(docs):
    write_rows("docs/faq.jsonl", DE + EN)
    assert index(docs, "docs/faq.jsonl", language="en").languages == {"en": 5}
    done = index(docs, "docs/faq.jsonl", language="en", detect=("always", "de", "en"))
    assert (done.encoded, done.languages) == (3, {"de": 3, "en": 2})
    assert {language for language, *_, text in found(docs, DE[1]) if text in DE} == {"de"}
    assert index(docs, "docs/faq.jsonl", language="en", detect=("always", "de", "en")).encoded == 0


def test_an_index_of_another_schema_is_refused(docs, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(database, "SCHEMA", 5)
        index(docs)
    for call in (lambda: LocalStore.open(docs.parent / "one"), lambda: index(docs)):
        with pytest.raises(RunFolderError, match=r"schema 5, .* reads schema 6; .* make the index again in another"):
            call()


def test_a_page_is_read_again_where_others_tell_its_language(docs):
    """All pages state English. The Danish ones are corrected once the others in their folder are copies."""
    texts = {
        "en": "How to clean the {} with water and a brush when it has become dirty, and where to keep it in winter.",
        "da": "Sådan rengør man {} med vand og en børste, når den er blevet snavset, og her skal den stå om vinteren.",
    }
    page = "<html lang=en><title>{0}</title><p>{1} {1}</html>"
    for number in range(12):
        write(Path(f"docs/en/{number}.html"), page.format(number, texts["en"].format(number)))
        text = texts["da"].format(number) if number < 4 else f"This text of page {number} is not yet as it should be."
        write(Path(f"docs/da/{number}.html"), page.format(number, text))
    index(docs)
    for number in range(4, 12):
        write(Path(f"docs/da/{number}.html"), Path(f"docs/en/{number}.html").read_text(encoding="utf-8"))
    index(docs)
    index(docs, name="new")
    updated, new = (
        {file.path: file for file in LocalStore.open(docs.parent / n).files.values()} for n in ("one", "new")
    )
    assert updated == new
    tags = {each.file: each.language for each in LocalStore.open(docs.parent / "one").passages_by_place()}
    assert [file for file, tag in tags.items() if tag == "da"] == [f"da/{number}.html" for number in range(4)]
