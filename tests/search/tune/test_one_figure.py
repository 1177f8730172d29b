"""`tune`, `adapt` and `search` rank the pages of an index alike: one search has one figure, to the last digit."""

from pathlib import Path

import numpy as np
import pytest

from metasearch.data.labels import load_labels
from metasearch.runs.folder import RunFolder
from metasearch.search.index.local import LocalStore
from metasearch.search.indexes import index_documents, open_searcher
from metasearch.search.tune import job
from metasearch.search.tune.adapt.job import Trial
from metasearch.search.tune.call import tune
from metasearch.search.tune.steps import ADAPTER, ANSWERED, Step
from metasearch.search.tune.table import Table

SENTENCES = {
    "de": "Der Artikel über {} erklärt, wie man {} mit {} einstellt und danach {} wieder entfernt.",
    "en": "The article about {} explains how to set {} with {} and then remove {} again.",
    "fr": "L'article sur {} explique comment régler {} avec {} et ensuite enlever {} de nouveau.",
}
WORDS = {
    "de": ("Lampe", "Boot", "Mühle", "Brot", "Pferd", "Uhr", "Stuhl", "Garten", "Brücke", "Fenster"),
    "en": ("lamp", "boat", "mill", "bread", "horse", "clock", "chair", "garden", "bridge", "window"),
    "fr": ("lampe", "bateau", "moulin", "pain", "cheval", "horloge", "chaise", "jardin", "pont", "fenêtre"),
}
PAGES, LABELLED = 26, 20


def languages_of(page):
    """Return the languages of a page: every sixth one has no translation."""
    return [["de", "en", "fr"][page % 3]] if page % 6 == 5 else list(SENTENCES)


def write_site(folder):
    """Write pages of one to eight sections in three languages; every third page ends with one of two shared texts."""
    rng = np.random.default_rng(3)
    folder.mkdir()
    for page in range(PAGES):
        drawn = rng.integers(0, 10, (rng.integers(1, 9), 4)).tolist()
        for tag in languages_of(page):
            words, sentence = WORDS[tag], SENTENCES[tag]
            sections = [
                f"## {words[row[0]]} {i}\n\n"
                + " ".join(sentence.format(*(words[(word + k) % 10] for word in row)) for k in range(4))
                for i, row in enumerate(drawn)
            ]
            sections += [f"## {words[9]}\n\n" + 9 * f"{sentence.format(*words[page % 2 :])} "] * (page % 3 == 0)
            text = "\n\n".join([f"# {words[page % 10]} {page}", *sections])
            (folder / f"page-{page:02}.{tag}.md").write_text(text, encoding="utf-8")


def labels():
    """Return a query about each of some pages; every seventh query is about the next page, too."""
    rows = []
    for page in range(LABELLED):
        tag = languages_of(page)[page % len(languages_of(page))]
        query = f"{WORDS[tag][page % 10]} {WORDS[tag][5 * page % 10]} {page}"
        for right in (page, page + 1) if page % 7 == 0 else (page,):
            name = f"page-{right:02}.{languages_of(right)[0]}.md"
            rows.append({"query": query, "page": name, "language": languages_of(right)[0], "query_language": tag})
    return rows


def precision(hits, right):
    """Return the average precision in the first 20 of the pages that have one of these numbers, in any language."""
    found = [int(Path(hit.passage.file).name[5:7]) in right for hit in hits]
    relevant = sum(len(languages_of(page)) for page in right)
    return sum(sum(found[: i + 1]) / (i + 1) for i, each in enumerate(found) if each) / min(relevant, 20)


@pytest.mark.slow
def test_one_search_has_one_figure_in_tune_adapt_and_search(tmp_path, monkeypatch):
    """Pages share passages, and queries share pages: neither changes which pages are translations of each other."""
    write_site(tmp_path / "site")
    first, *adapters = steps = [Step(form, projected=True) for form in ("", ADAPTER, ANSWERED)]
    monkeypatch.setattr(job, "list_steps", lambda *args, **keys: steps)
    monkeypatch.setattr(Table, "choose", lambda self: [step for step, _ in self.lines].index(adapters[0]))
    found = tune(labels(), tmp_path / "tuned", documents=tmp_path / "site", encoder="tiny", device="cpu")
    assert "The adapter is in index/, computed from all labels; the model in model/ has none." in found.report
    monkeypatch.undo()
    tuned = Table.read(RunFolder(tmp_path / "tuned"))
    # An index of its own, which knows the languages from the names of the files.
    index_documents([tmp_path / "site"], tmp_path / "index", "tiny", device="cpu")
    searcher = open_searcher(tmp_path / "index", "cpu")
    plan = searcher.store.plan
    assert (plan.languages, plan.ranking.balance, plan.translated > 20) == (("de", "en", "fr"), True, True)
    assert searcher.store.places > len(searcher.store)
    trial = Trial.of(searcher, load_labels(labels(), named=True), 4, None)
    adapted = trial.table()
    assert tuned.lines[0] == adapted.lines[0] == (first, "balanced")
    assert tuned.places == adapted.places
    for step in steps:
        lines = [table.lines.index((step, "balanced")) for table in (tuned, adapted)]
        assert tuned.scores[lines[0]].tolist() == adapted.scores[lines[1]].tolist()
    kept = LocalStore.open(tmp_path / "tuned" / "index").plan.adapter
    assert kept.name == "tune"
    assert np.array_equal(kept.matrix, trial.index.adapter(ADAPTER, trial.labels.data))
    texts = {question.id: question.text for question in trial.labels.data.questions}
    right = {}
    for row in labels():
        right.setdefault(row["query"], set()).add(int(row["page"][5:7]))
    found = searcher.search([*right], top_k=20, by="page")
    own = {query: precision(hits, right[query]) for query, hits in zip(right, found, strict=True)}
    assert [own[texts[uid]] for *_, uid in tuned.places] == tuned.scores[0].tolist()
    assert 0 < np.mean([*own.values()]) < 1
