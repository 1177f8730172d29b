"""An index says how it is searched; a search follows it unless told otherwise."""

import json
from pathlib import Path

import numpy as np
import pytest

from metasearch.errors import ConfigError
from metasearch.retrieval.index import expansion
from metasearch.retrieval.index.base import SearchError
from metasearch.retrieval.index.local import LocalStore
from metasearch.retrieval.indexes import change_index, index_documents, open_searcher
from tests.helpers.commands import metasearch

TEXTS = {
    "de": ["Der Schlüssel liegt unter der Matte.", "Die Katze schläft im Korb."],
    "en": ["The key is under the mat.", "The bus leaves at noon."],
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """An index that is searched with balanced scores."""
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"text": text, "language": tag}) for tag, texts in TEXTS.items() for text in texts]
    Path("rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    index(ranking={"balance": True})
    return tmp_path / "i"


def index(**how):
    return index_documents(["rows.jsonl"], Path("i"), "tiny", device="cpu", **how)


def scores(**asked):
    return [hit.score for hit in open_searcher("i", "cpu").search(["Where is the key?"], **asked)[0]]


def test_a_search_ranks_as_the_index_says_unless_told_otherwise(made):
    assert scores() == scores(balance=True) != scores(balance=False)
    assert scores(hybrid=True) == scores(hybrid=True, balance=True)
    index()
    assert LocalStore.open(made).ranking == {"balance": True}


def test_the_ranking_changes_without_a_document_and_keeps_all_vectors(made):
    before = LocalStore.open(made)
    Path("rows.jsonl").unlink()
    change_index(made, {"balance": False, "by": "passage"})
    after = LocalStore.open(made)
    assert after.ranking == {"balance": False, "by": "passage"}
    assert before.changed()
    assert np.array_equal(before.quantised.codes, after.quantised.codes)
    with pytest.raises(ConfigError, match=r"ranking of the index.*Did you mean 'balance'"):
        change_index(made, {"balanced": True})


def test_an_index_that_cannot_be_expanded_names_the_option_that_searches_it(made, monkeypatch):
    change_index(made, {"expand": True})
    monkeypatch.setattr(expansion, "MOST", 3)
    with pytest.raises(SearchError, match=r"at most 3; the index has 4\. i is searched with expansion .* --no-expand$"):
        scores()
    with pytest.raises(SearchError, match=r"at most 3; the index has 4$"):
        scores(expand=True)
    assert len(scores(expand=False)) == 4


def test_the_command_line_says_it_once_and_takes_both_forms(made):
    asked = ["search", "i", "--json", "Where is the key?"]
    say = "metasearch: i: searched with --balance unless told otherwise\n"
    assert metasearch(*asked).stderr == say
    assert metasearch(*asked).stdout == metasearch(*asked, "--balance").stdout
    plain = metasearch(*asked, "--no-balance").stdout
    assert plain != metasearch(*asked).stdout
    out = metasearch("index", "-o", "i", "--no-balance", "--hybrid").stdout
    assert out == f"search: --hybrid\nroot: {made.parent}\n"
    assert metasearch(*asked, "--no-hybrid").stdout == plain
    assert "name DOCUMENTS, or what to change" in metasearch("index", "-o", "i", code=2).output
    wrong = metasearch("index", "-o", "i", "--balance", "--neutral", code=2).output
    assert "--neutral: no document is read; name DOCUMENTS, or leave it out" in wrong


def test_a_folder_of_a_tuning_leads_to_its_index(made, caplog):
    Path("shop").mkdir()
    made.rename("shop/index")
    caplog.set_level("INFO")
    assert open_searcher("shop", "cpu").store.name == "shop/index"
    assert "shop: its index is shop/index" in caplog.messages
    assert "exists and is no index; choose another folder with -o. Its index is shop/index" in (
        metasearch("index", "rows.jsonl", "-o", "shop", code=5).output
    )


@pytest.mark.slow
def test_a_tuning_that_moves_finds_the_encoder_beside_its_index(made):
    from metasearch.encoders.builtin import tiny

    tiny.build(seed=1).save(Path("shop/model"))
    index_documents(["rows.jsonl"], Path("shop/index"), "shop/model", device="cpu")
    Path("shop").rename("moved")
    # Another one where it was.
    tiny.build(seed=2).save(Path("shop/model"))
    assert len(open_searcher("moved", "cpu").search(["key"])[0]) == 4
    assert index_documents(["rows.jsonl"], Path("moved/index"), device="cpu").encoded == 0
    assert open_searcher("moved", "cpu").store.kind.encoder == str((Path("moved") / "model").resolve())
