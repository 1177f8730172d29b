"""An index says how it is searched; a search follows it unless told otherwise."""

import json
from pathlib import Path

import numpy as np
import pytest

from metasearch.errors import ConfigError
from metasearch.search.documents.languages import are_translated
from metasearch.search.index import mapped_vectors
from metasearch.search.index.base import SearchError
from metasearch.search.index.local import LocalStore
from metasearch.search.index.plan import RANKED_BY_DEFAULT
from metasearch.search.indexes import change_index, index_documents, open_searcher
from tests.helpers.commands import metasearch
from tests.helpers.files import write

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
    assert LocalStore.open(made).plan.ranking == RANKED_BY_DEFAULT.model_copy(update={"balance": True})


def test_the_ranking_changes_without_a_document_and_keeps_all_vectors(made):
    before = LocalStore.open(made)
    Path("rows.jsonl").unlink()
    change_index(made, {"balance": False, "by": "passage"})
    after = LocalStore.open(made)
    assert after.plan.ranking == RANKED_BY_DEFAULT.model_copy(update={"by": "passage"})
    assert before.changed()
    assert np.array_equal(before.quantised.codes, after.quantised.codes)
    with pytest.raises(ConfigError, match=r"ranking of the index.*Did you mean 'balance'"):
        change_index(made, {"balanced": True})


def test_an_index_that_cannot_be_expanded_names_the_option_that_searches_it(made, monkeypatch):
    change_index(made, {"expand": True})
    monkeypatch.setattr(mapped_vectors, "MOST", 3)
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
    assert out == f"search: --hybrid\nroot: {made.parent}\nsite: none\n"
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


def site(folder, tags, name="{tag}/{number}.html"):
    for tag in tags:
        for number in range(2):
            text = f"<p>Page {number} in {tag}, of {tag} and nothing else."
            write(folder / name.format(tag=tag, number=number), text)
    return folder


@pytest.mark.parametrize("name", ["{tag}/{number}.html", "{number}.{tag}.md", "a/{tag}/b/{number}.txt"])
def test_scores_are_balanced_where_most_pages_are_in_several_languages(name, tmp_path, caplog):
    """Of six pages four are translated, then of ten, so that it is under a half with one more."""
    caplog.set_level("INFO")
    folder = site(tmp_path / "site", ["de", "el"], name)
    index_documents([site(folder, ["en"], "{tag}-only-{number}.html")], tmp_path / "i", "tiny", device="cpu")
    said = [each for each in caplog.messages if "balance" in each]
    assert said == ["most pages are in several languages, so searches balance scores; --no-balance turns that off"]
    assert open_searcher(tmp_path / "i", "cpu").ranking.balance is True
    for number in range(3):
        (folder / f"more{number}.html").write_text(f"<p>Further page {number}", encoding="utf-8")
    caplog.clear()
    index_documents([folder], tmp_path / "i", device="cpu")
    assert open_searcher(tmp_path / "i", "cpu").ranking.balance is False
    assert not any("balance" in each for each in caplog.messages)


def test_what_is_asked_goes_before_what_the_pages_suggest(tmp_path):
    folder = site(tmp_path / "site", ["de", "el"])
    index_documents([folder], tmp_path / "i", "tiny", device="cpu", ranking={"balance": False})
    assert open_searcher(tmp_path / "i", "cpu").ranking.balance is False


@pytest.mark.parametrize(
    ("pages", "translated"),
    [
        ({"de/a.html": "de", "el/a.html": "el"}, True),
        ({"de/a.html": "de", "el/b.html": "el"}, False),
        # One language twice is no translation, and a page without a language in its name may be one.
        ({"de/a.html": "de", "de-AT/a.html": "de"}, False),
        ({"a.md": "", "a.de.md": "de"}, True),
        ({"a.md": "", "a.de.md": "de", "b.md": "", "c.md": ""}, True),
        ({"a.md": "", "a.de.md": "de", "b.md": "", "c.md": "", "d.md": ""}, False),
        ({}, False),
    ],
)
def test_half_of_the_pages_are_translated(pages, translated):
    assert are_translated(pages) is translated
