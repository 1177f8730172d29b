"""Adapters of an index: learned from labels, named, reversible, used by searches, and never half-written."""

import json
import multiprocessing
import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from metasearch.data.labels import load_labels
from metasearch.encoders.maps import Projection
from metasearch.errors import ConfigError, DataError, RunFolderError
from metasearch.search.index.adapters import add_adapter
from metasearch.search.index.database import Database
from metasearch.search.index.local import LocalStore
from metasearch.search.index.writer import writing
from metasearch.search.indexes import index_documents, list_adapters, open_searcher, use_adapter
from metasearch.search.tune.adapt.job import Trial, adapt
from metasearch.search.tune.adapt.metric import metric_adapter
from metasearch.search.tune.call import tune
from metasearch.search.tune.steps import ANSWERED, REMEMBERED, Step
from metasearch.search.tune.table import Table
from tests.helpers.commands import metasearch
from tests.helpers.files import write
from tests.helpers.indexes import kind, made, write_index

THINGS = ("key", "bus", "cat", "mill", "boat", "lamp", "bread", "horse")
FACTS = {"date": "2026-01-01T00:00:00+00:00", "form": "answers", "labels": 8, "kept": True, "result": "Kept."}


def matrix(seed, dimension=24):
    return np.random.default_rng(seed).standard_normal((dimension, dimension)).astype(np.float32)


def add(folder, name, seed, use=True):
    with writing(folder, kind()) as writer:
        return add_adapter(writer, matrix(seed), {**FACTS, "name": name}, use)


def in_use(folder):
    found = LocalStore.open(folder).plan.adapter
    return found and (found.name, found.matrix.tolist())


def write_pages(folder, things):
    for language, thing in product(("de", "en"), things):
        write(folder / language / f"{thing}.md", f"# {thing}\n\nAbout the {thing} in {language}.\n")


def test_the_verdict_names_what_the_scores_ignore_of_the_search(tmp_path):
    write_pages(tmp_path / "help", THINGS)
    ranking = {"hybrid": True, "expand": True, "balance": True}
    index_documents([tmp_path / "help"], tmp_path / "i", "tiny", device="cpu", ranking=ranking)
    found = adapt(tmp_path / "i", labels(), device="cpu")
    ignored = " These scores ignore --hybrid and --balance, which the index is searched with."
    assert found.facts.result == f"{found.choice}{ignored}"


@pytest.fixture
def stored(tmp_path):
    return write_index(tmp_path / "i", made())


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder / "help", THINGS)
    index_documents([folder / "help"], folder / "i", "tiny", device="cpu")
    return folder / "i"


def labels(things=THINGS, language="en"):
    return [{"query": f"Where is the {each}?", "page": f"{language}/{each}.md", "language": "en"} for each in things]


def test_an_index_has_named_adapters_and_uses_one_of_them_or_none(stored):
    assert in_use(stored) is None
    add(stored, "first", 1)
    add(stored, "second", 2, use=False)
    assert in_use(stored) == ("first", matrix(1).tolist())
    before = LocalStore.open(stored)
    use_adapter(stored, "second")
    assert before.changed()  # so that a server opens it again
    assert in_use(stored) == ("second", matrix(2).tolist())
    use_adapter(stored, None)
    assert in_use(stored) is None
    assert [each.name for each in list_adapters(stored)[0]] == ["first", "second"]


def test_a_wrong_name_is_an_error_with_the_nearest_one(stored):
    with pytest.raises(ConfigError, match=r"no adapter 'clicks' in this index. It has none; learn one"):
        use_adapter(stored, "clicks")
    add(stored, "clicks", 1)
    with pytest.raises(ConfigError, match=r"no adapter 'click' in this index. Did you mean 'clicks'"):
        use_adapter(stored, "click")
    with pytest.raises(ConfigError, match="it has an adapter 'clicks' already"):
        add(stored, "clicks", 2)


def test_an_adapter_of_other_vectors_is_not_used_and_said_so(stored, caplog):
    add(stored, "clicks", 1)
    with writing(stored, kind()) as writer:
        facts = writer.state["adapters"][0]
        writer.change({"adapters": [{**facts, "vectors": "of another index"}]})
    assert in_use(stored) is None
    assert "adapter 'clicks' is not used" in caplog.text
    caplog.clear()
    use_adapter(stored, "clicks")
    assert "adapter 'clicks' is not used" in caplog.text


def die_before_the_end(folder):
    whole = Database.write_state

    def half(self, state):
        whole(self, state)
        os._exit(137)  # the matrix and the facts are written, and the transaction has not ended

    Database.write_state = half
    add(folder, "new", 2)


def test_a_writer_that_is_killed_leaves_the_old_adapter(stored):
    add(stored, "old", 1)
    process = multiprocessing.get_context("fork").Process(target=die_before_the_end, args=(stored,))
    process.start()
    process.join()
    assert process.exitcode == 137
    assert in_use(stored) == ("old", matrix(1).tolist())
    assert [each.name for each in list_adapters(stored)[0]] == ["old"]
    add(stored, "new", 2)
    assert in_use(stored) == ("new", matrix(2).tolist())


def test_adapting_stores_a_reversible_adapter_that_changes_queries_alone(pages):
    plain = open_searcher(pages, "cpu")
    found = adapt(pages, labels(), name="clicks", device="cpu")
    assert found.facts.labels == 8
    assert found.facts.result == str(found.choice)
    use_adapter(pages, "clicks")
    searcher = open_searcher(pages, "cpu")
    before, now = plain.encode_queries(["a lamp"])[0].astype(np.float64), searcher.encode_queries(["a lamp"])[0]
    mapped = searcher.store.plan.adapter.matrix.astype(np.float64) @ before
    np.testing.assert_allclose(now, mapped / np.linalg.norm(mapped), rtol=0, atol=1e-6)
    assert np.array_equal(searcher.encode_documents(["a lamp"]), plain.encode_documents(["a lamp"]))
    # The same labels give the same bits, whatever is in use.
    adapt(pages, labels(), name="again", device="cpu")
    use_adapter(pages, "again")
    assert np.array_equal(LocalStore.open(pages).plan.adapter.matrix, searcher.store.plan.adapter.matrix)
    use_adapter(pages, None)
    assert np.array_equal(open_searcher(pages, "cpu").encode_queries(["a lamp"])[0], before.astype(np.float32))


def test_the_stored_adapter_learns_from_quoted_passages_as_the_folds_do(tmp_path):
    """Each page has a passage that a label quotes, and one that it does not: an answer is quoted passage less query."""
    told = {thing: " ".join(f"{thing}{i}" for i in range(12)) for thing in THINGS}
    for thing in THINGS:
        text = f"# {thing}\n\n{told[thing]}\n\n## More\n\n{f'Where is the {thing}? ' * 12}\n"
        (tmp_path / f"{thing}.md").write_text(text, encoding="utf-8")
    index_documents([tmp_path], tmp_path / "i", "tiny", {"length": 96}, device="cpu")
    quoted = [{"query": f"Where is the {thing}?", "document": told[thing]} for thing in THINGS]
    trial = Trial.of(open_searcher(tmp_path / "i", "cpu"), load_labels(quoted, named=True), 4, None)
    assert trial.labels.beside
    texts = {each.page: each.text for each in trial.index.passages if each.id not in trial.labels.beside}
    questions, page_of = trial.labels.data.questions, {each.answers: each.page for each in trial.labels.data.candidates}
    queries = trial.index.encode([each.text for each in questions], "question")
    right = trial.index.encode([texts[page_of[(each.id,)]] for each in questions], "candidate")
    mean = trial.index.encode([each.text for each in trial.index.passages], "candidate").mean(0)
    expected = metric_adapter(mean - queries.mean(0), right - queries, len(THINGS))
    trial.add("quoted", ANSWERED, "", kept=True)
    np.testing.assert_allclose(LocalStore.open(tmp_path / "i").plan.adapter.matrix, expected, rtol=0, atol=1e-5)


def test_adapt_also_tries_the_search_without_the_projection_and_says_how_to_get_it(pages, monkeypatch):
    monkeypatch.setattr(Table, "choose", lambda self: [step for step, _ in self.lines].index(Step()))
    found = adapt(pages, labels(), name="plain", device="cpu")
    assert [str(each.step) for each in found.choice.standings] == [
        "projection", "base encoder", "projection + adapter", "projection + adapter with answers"
    ]  # fmt: skip
    assert not found.kept
    assert found.facts.result.endswith("turn the projection off: metasearch index DOCUMENTS --no-neutral -o INDEX.")


ASKED = {
    "key": ("My parcel has not arrived", "The delivery of the parcel is late"),
    "bus": ("How do I cook rice?", "Boiling rice with water"),
    "cat": ("Which train goes to Berlin?", "Train tickets to Berlin"),
    "mill": ("My tooth hurts", "A dentist for my tooth"),
    "boat": ("Music for a wedding", "Songs to dance at a wedding"),
    "lamp": ("The price of gold", "How much does gold cost?"),
    "bread": ("A visa for China", "Travelling to China with a passport"),
    "horse": ("Weather in the mountains", "Will it snow in the mountains?"),
}
"""Two queries about each page, of which the page says nothing."""


@pytest.mark.slow
def test_labelled_queries_find_their_pages_in_another_language_until_the_adapter_is_dropped(tmp_path, monkeypatch):
    write_pages(tmp_path / "help", THINGS)
    index_documents([tmp_path / "help"], tmp_path / "i", "mini", device="cpu")
    like = {"Mein Paket ist nicht angekommen": "key", "Der Preis von Gold": "lamp", "Musik für eine Hochzeit": "boat"}
    asked = [*like, "The horse"]
    before = open_searcher(tmp_path / "i", "cpu").search(asked, top_k=5)
    rows = [{"query": each, "page": f"en/{thing}.md", "language": "en"} for thing in THINGS for each in ASKED[thing]]
    found = adapt(tmp_path / "i", rows, name="clicks", device="cpu")
    assert (found.kept, found.facts.form) == (True, REMEMBERED)
    assert "Of 16 labels, 16 share a page with others, and are held out alone." in found.facts.result
    new, shared = found.figures
    assert (new.questions, shared.questions, new.base) == (16, 16, shared.base)
    assert shared.gain.low > 0.3
    assert shared.control.mean < 0
    assert new.gain.low < 0
    assert [str(new), str(shared)] == found.report.splitlines()[-2:]
    after = open_searcher(tmp_path / "i", "cpu").search(asked, top_k=5)
    assert {asked[i]: Path(hits[0].passage.file).stem for i, hits in enumerate(after[:3])} == like
    store = LocalStore.open(tmp_path / "i")
    with writing(tmp_path / "i", store.kind) as writer:
        add_adapter(writer, store.plan.adapter.matrix, {**FACTS, "name": "alone"}, use=True)
    alone = open_searcher(tmp_path / "i", "cpu").search(asked, top_k=5)
    assert alone[3] == after[3]  # unlike all labels: the same scores, to the last digit
    for name, hits in (("clicks", after), (None, before)):
        use_adapter(tmp_path / "i", name)
        assert open_searcher(tmp_path / "i", "cpu").search(asked, top_k=5) == hits
    use_adapter(tmp_path / "i", "clicks")
    assert "adapter 'clicks' with 16 queries" in metasearch("doctor", tmp_path / "i").stdout
    monkeypatch.setattr(Table, "improvable", lambda self: False)
    # The encoder finds none of these pages, so that the labels may be wrong.
    tuned = tune(rows, tmp_path / "tuned", documents=tmp_path / "help", encoder="mini", device="cpu", accept=True)
    assert tuned.choice.kept.step.learner == REMEMBERED
    for figure in found.figures:
        assert f"{REMEMBERED}, {figure}" in tuned.report
    assert open_searcher(tmp_path / "tuned/index", "cpu").search(asked, top_k=5) == after


def test_a_question_that_shares_its_page_is_held_out_alone_and_another_one_with_its_page(pages):
    """Two queries a page in English, some also in German; the last page has one label alone."""
    rows = [{"query": f"{word} {each}", "page": f"en/{each}.md", "language": "en"} for each in THINGS for word in "ab"]
    rows += [{"query": f"wo {each}", "page": f"de/{each}.md", "language": "de"} for each in THINGS[:3]]
    rows = rows[:15] + rows[16:]
    labels = Trial.of(open_searcher(pages, "cpu"), load_labels(rows, named=True), 4, None).labels
    asked = sorted(row["query"] for row in rows)
    apart = sorted({*asked} - {"a horse"})
    for what, held in (("as asked", asked), ("new pages", asked), ("pages with labels", apart)):
        parts = [labels.hold_out(fold, what).split for fold in range(4)]
        assert sorted(each.text for part in parts for each in part.test.questions) == held
        for part in parts:
            for each in part.test.questions:
                thing, learned = each.text.split()[1], part.train.questions
                left = {other.language for other in learned if other.text.endswith(f" {thing}")}
                several = {"de", "en"} - {each.language} if thing in THINGS[:3] else {"en"}
                assert left == (set() if what == "new pages" or thing == THINGS[7] else several)


def test_labels_that_cannot_be_held_out_or_joined_are_an_error_in_one_line(pages):
    for rows, message in (
        (labels(THINGS[:1]), "too few labels to hold some out: queries: 1, pages: 1; an adapter needs 8 queries"),
        (labels(THINGS[:1] * 9), "too few labels to hold some out: queries: 1, pages: 1"),
        (
            [{**row, "query": f"{i}. {row['query']}"} for i, row in enumerate(labels(THINGS[:1] * 9))],
            "queries: 9, pages: 1",
        ),
        (labels([f"no-{each}" for each in THINGS]), "joined to pages: 0 of 8 labels; not joined: 8"),
    ):
        with pytest.raises(DataError, match=message):
            adapt(pages, rows, device="cpu")
    with pytest.raises(ConfigError, match="expected the folder of an index, not the address"):
        adapt("postgresql://localhost/shop/help", labels(), device="cpu")


def test_an_adapter_of_a_projection_that_was_estimated_again_meanwhile_is_not_written(pages, monkeypatch):
    known, table = list_adapters(pages), Trial.table

    def slow(trial):
        found = table(trial)
        # The index has none: as if another process had estimated it anew.
        store = trial.index.store
        store.plan = replace(store.plan, projection=Projection(np.zeros(2), np.zeros((0, 2)), ("de", "en")))
        return found

    monkeypatch.setattr(Trial, "table", slow)
    with pytest.raises(RunFolderError, match="its projection was estimated again meanwhile"):
        adapt(pages, labels(), name="late", device="cpu")
    assert list_adapters(pages) == known


def test_the_command_line_lists_uses_and_refuses(pages, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("labels.jsonl").write_text("\n".join(map(json.dumps, labels())), encoding="utf-8")
    metasearch("adapt", pages, code=2)
    done = metasearch("adapt", pages, "labels.jsonl", "--name", "cli", "--device", "cpu", "--json")
    assert json.loads(done.stdout)["name"] == "cli"
    assert metasearch("adapt", pages, "--use", "cli").stdout == "adapter: cli\n"
    assert "* cli" in metasearch("adapt", pages, "--list").stdout
    assert "adapter 'cli'" in metasearch("doctor", pages).stdout
    assert metasearch("adapt", pages, "--none").stdout == "adapter: none\n"
    Path("shop").mkdir()
    Path("shop/index").symlink_to(pages)  # as in the folder of a tuning
    assert metasearch("adapt", "shop", "--use", "cli").stdout == "adapter: cli\n"
    address = "postgresql://localhost/shop/help"
    assert f"{address}: expected the folder" in metasearch("adapt", address, "--list", code=2).stderr
    wrong = metasearch("adapt", pages, "--use", "clii", code=2)
    assert "Did you mean 'cli'" in wrong.stderr
