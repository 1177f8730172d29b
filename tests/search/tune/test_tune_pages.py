"""Tuning with documents: a label means a page, whatever its form, and long ones are cut; passages are ranked."""

from dataclasses import replace

import pytest

from helpers.corpus import FakeEncoder
from metasearch.config.measure import BALANCED, MULTILINGUAL, Measure
from metasearch.data.labels import load_labels
from metasearch.data.records import Candidate, Question, RetrievalData
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Passage
from metasearch.search.documents.read import group_of
from metasearch.search.index.local import LocalStore
from metasearch.search.indexes import index_documents
from metasearch.search.tune.documents import cut_long
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.page_ranking import by_page, evaluate_pages
from metasearch.search.tune.pages import Pages

WORDS = {
    "de": ("Öffnen Sie die Bestellung Nummer", "und wählen Sie dort die Verfolgung."),
    "en": ("Open your own order number", "and choose to track it there."),
}
FIRST, SECOND = 0, 1


def text(thing, language, part):
    start, end = WORDS[language]
    return f"{start} {thing}{part} {end}"


def passages(things=12, unlabelled=3):
    """Return pages of two passages in two languages, `help/de/3.md` and `help/en/3.md`, and pages without a label."""
    return [
        Passage(f"Page {thing}\n{text(thing, language, part)}", f"help/{language}/{thing}.md", 1 + part, language)
        for thing in range(things + unlabelled)
        for language in ("de", "en")
        for part in (FIRST, SECOND)
    ]


FORMS = {
    "path": lambda thing, language: f"{language}/{thing}.md",
    "address": lambda thing, language: f"https://example.org/{language}/{thing}",
    "first paragraph": lambda thing, language: text(thing, language, FIRST),
    "passage": lambda thing, language: f"Page {thing}\n{text(thing, language, SECOND)}",
}
MEANT = {"path": 2, "address": 2, "first paragraph": 1, "passage": 1}
"""Passages of a page that a label of a form means."""


def labels(form, things=12, place="en"):
    return load_labels(
        [
            {"query": f"Where is {i}?", "document": FORMS[form](i, place), "query_language": "en", "language": "en"}
            for i in range(things)
        ],
        named=True,
    )


def joined(form="path", most=2000, same=None, **how):
    return pages_of(labels(form, **how), passages(), most, same)


def pages_of(told, found, most=2000, same=None):
    """Join labels to pages whose translations have the same path but for the language, or the same field `group`."""
    return Pages.of(told, found, [group_of(passage) for passage in found], range(len(found)), ["help"], most, same)


def test_a_label_of_an_untranslated_copy_means_the_page_that_it_copies():
    """The folder `da` has the English pages; they are not searched beside them."""
    found = passages()
    english = [i for i, passage in enumerate(found) if passage.language == "en"]
    copies = [replace(found[i], file=found[i].file.replace("/en/", "/da/")) for i in english]
    groups = [*map(group_of, found), *(passage.file for passage in copies)]
    originals = [*range(len(found)), *english]
    pages = Pages.of(labels("path", place="da"), [*found, *copies], groups, originals, ["help"], 2000, None)
    assert (pages.data, pages.unlabelled) == (joined("path").data, joined("path").unlabelled)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_label_means_the_same_page_and_is_scored_on_the_same_passages(form):
    """Twelve labelled pages and three others, in two languages, have two passages each: 15 · 2 · 2 are ranked."""
    pages, by_path = joined(form), joined("path")
    assert pages.data == by_path.data
    known = Labels.on_pages(pages, 4)
    tests = [known.hold_out(fold).split.test for fold in range(4)]
    assert {len(test.candidates) for test in tests} == {15 * 2 * 2}
    assert {each.text for each in known.everything.candidates} == {each.text for each in passages()}
    # Trained on are the passages that are meant, and those at their places in the translation; never another form.
    answers = [each for each in known.hold_out(None).split.train.candidates if each.answers]
    assert len(answers) == 12 * 2 * MEANT[form]
    assert {each.text for each in answers} <= {each.text for each in passages()}


def test_a_page_and_its_translation_are_held_out_together_and_are_never_wrong():
    known = Labels.on_pages(joined(), 4)
    for fold in range(4):
        parts = known.hold_out(fold).split
        asked = {each.id for each in parts.test.questions}
        left = {each.page.split("/")[-1] for each in parts.test.candidates if asked & {*each.answers}}
        assert len(left) == len(asked) == 3
        assert left.isdisjoint(each.page.split("/")[-1] for each in parts.train.candidates)
    answers = known.data.answers[known.data.questions[0].id]
    assert {tag: len(own) for tag, own in answers.items()} == {"de": 2, "en": 2}


def test_translations_count_unless_the_user_says_otherwise_and_are_not_trained_on_then():
    pages = joined(same=False)
    assert {*pages.data.answers[pages.data.questions[0].id]} == {"en"}
    assert {each.language for each in pages.data.candidates if each.id in pages.beside} == {"de"}
    assert "--no-same-page: the translations of a page count as wrong." in pages.notes
    alone = [each for each in passages() if each.language == "en"]
    with pytest.raises(DataError, match=r"^--same-page: no page has a translation"):
        pages_of(labels("path"), alone, same=True)


def test_translations_share_a_group_where_a_line_is_a_page():
    rows = [Passage(f"Text {i}", "faq.jsonl", i, tag, {"id": i, "group": "a"}) for i, tag in ((1, "de"), (2, "en"))]
    told = load_labels([{"query": "What?", "document": "2", "language": "en"}], named=True)
    assert len(pages_of(told, rows, 10).data.candidates) == 2


@pytest.mark.parametrize(("by", "answers"), [("hreflang", {"en", "de"}), ("none", {"en"})])
def test_translations_of_labels_are_those_of_the_index(tmp_path, by, answers):
    """The pages have other names, and each names both."""
    links = {tag: f"https://example.org/{tag}/{name}" for tag, name in (("en", "keys"), ("de", "schluessel"))}
    head = "".join(f'<link rel="alternate" hreflang="{tag}" href="{url}">' for tag, url in links.items())
    for tag, said in (("en", "The key is under the mat."), ("de", "Der Schlüssel liegt unter der Matte.")):
        file = tmp_path / "docs" / f"{links[tag].removeprefix('https://example.org/')}.html"
        file.parent.mkdir(parents=True)
        file.write_text(f"<html lang={tag}><head>{head}</head><body><p>{said}</p></body></html>", encoding="utf-8")
    index_documents([tmp_path / "docs"], tmp_path / "index", "tiny", {"translations": by}, device="cpu")
    told = load_labels([{"query": "Where is the key?", "document": "en/keys.html", "language": "en"}], named=True)
    known, _ = Labels.on_index(LocalStore.open(tmp_path / "index"), told, 4, None, 2000)
    assert {each.language for each in known.data.candidates if each.answers} == answers


def test_labels_without_a_page_are_named_and_an_error_where_most_are():
    told = [{"query": f"Where is {i}?", "document": f"en/{i}.md", "language": "en"} for i in (0, 1, 2, 77)]
    pages = pages_of(load_labels(told, named=True), passages())
    assert (
        "joined to pages: 3 of 4 labels (path 3); not joined: 1: row 4 'en/77.md' (no such page; nearest: en/7.md)"
        in (pages.notes)
    )
    assert "1 questions without a page are left out." in pages.notes
    assert len(pages.data.questions) == 3
    lost = [{**row, "document": f"x{row['document']}z"} for row in told]
    with pytest.raises(DataError, match=r"^joined to pages: 0 of 4 labels; not joined: 4: row 1"):
        pages_of(load_labels(lost, named=True), passages())


def test_evenly_spaced_pages_of_a_large_index_are_searched():
    """Of 3 · 2 pages without a label, with two passages each, every second one is taken for six passages."""
    pages = joined(most=6)
    assert len(pages.unlabelled) == 3 * 2
    assert any(note.startswith("Folds search 54 of 60 passages, of 27 pages.") for note in pages.notes)


def test_a_page_ranks_once_at_its_best_passage_and_languages_are_also_scored_apart():
    """Best passages score a 0.9, b 0.8, c 0.7 and d 0.6. Relevant are b, in the question's language, and d: AP is
    (1/2 + 2/4) / 2. Apart, without the other one, b is second of three, and d is third."""
    scores = {"a1": 0.9, "a2": 0.1, "b1": 0.2, "b2": 0.8, "c1": 0.7, "c2": 0.69, "d1": 0.6, "d2": 0.5}
    tags = {"a": "de", "b": "en", "c": "en", "d": "de"}
    candidates = tuple(
        Candidate(name, tags[name[0]], name, name[0], ("q",) * (name[0] in "bd"), page=name[0]) for name in scores
    )
    data = RetrievalData((Question("q", "en", "ask", "b"),), candidates)
    encoder = FakeEncoder({"ask": [1.0], **{name: [value] for name, value in scores.items()}})
    measure = Measure.parse("map@20", "retrieval")
    columns = evaluate_pages(encoder, data, [measure], MULTILINGUAL).questions.columns
    cell = (MULTILINGUAL, "en", "all")
    assert columns["map@20", *cell] == pytest.approx([(1 / 2 + 2 / 4) / 2])
    assert columns["map@20 own", *cell] == pytest.approx([1 / 2])
    assert columns["map@20 others", *cell] == pytest.approx([1 / 3])
    # Balanced: a 0.9 - 0.45, d 0.6 - 0.45 in German; b 0.8 - 0.4, c 0.7 - 0.4 in English. The order is the same.
    columns = evaluate_pages(encoder, data, [measure], BALANCED).questions.columns
    assert columns["map@20", BALANCED, "en", "all"] == pytest.approx([(1 / 2 + 2 / 4) / 2])


def test_clicks_on_all_names_of_a_page_are_summed_and_a_tenth_of_them_is_no_label():
    """Page 0 has 12 + 9 clicks by two names; page 1 has 2, a tenth or less; page 2 has 3, which is more."""
    clicks = {"en/0.md": 12, "https://example.org/en/0": 9, "https://example.org/en/1": 2, "en/2": 3}
    told = [{"query": "Where?", "page": page, "clicks": count, "language": "en"} for page, count in clicks.items()]
    pages = pages_of(load_labels(told, named=True), passages(), same=False)
    assert {each.page for each in pages.data.candidates if each.answers} == {"help/en/0.md", "help/en/2.md"}
    assert {*pages.data.grades.values()} == {21.0, 3.0}
    (line,) = (note for note in pages.notes if note.startswith("clicks"))
    assert line == (
        "clicks: 26 on 3 pairs of query and page; nDCG weighs pairs by clicks, and all else takes them alike; not "
        "used: 1 pairs (2 clicks) with a tenth of another page's or less"
    )


LIMIT = 20
LONG = "One sentence here. Two of it there. Three are enough."


def cut(*rows):
    data = load_labels([{"language": "en", **row} for row in rows])
    return cut_long(data, Settings(limit=LIMIT), lambda texts: [len(text) > LIMIT for text in texts])


def test_all_passages_of_a_long_document_are_answers_and_one_page():
    data, note = cut({"query": "a", "document": LONG, "relevance": 2}, {"query": "b", "document": "Short."})
    assert [(each.id, each.text, each.answers, each.page) for each in data.candidates] == [
        ("d1", "One sentence here.", ("q1",), "d1"),
        ("d1 passage 2", "Two of it there.", ("q1",), "d1"),
        ("d1 passage 3", "Three are enough.", ("q1",), "d1"),
        ("d2", "Short.", ("q2",), ""),
    ]
    assert data.grades == {("q1", name): 2.0 for name in ("d1", "d1 passage 2", "d1 passage 3")}
    assert [each.id for each in by_page(data).candidates] == ["d1", "d2"]
    assert "1 of 2 labelled documents" in note
    assert "cut into 3 passages of 20 tokens at most" in note


def test_short_documents_stay_as_they_are():
    data, note = cut({"query": "b", "document": "Short."})
    assert ([each.id for each in data.candidates], note) == (["d1"], "")
