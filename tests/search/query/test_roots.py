"""An index names documents relative to a root, so that folders can move and be named in any form."""

import os
import shutil
from pathlib import Path

import pytest

from helpers.files import write_all
from metasearch.errors import ConfigError
from metasearch.search.index.local import LocalStore
from metasearch.search.index.places import shown
from metasearch.search.indexes import change_index, index_documents, open_searcher

TEXTS = {"key.en.txt": "The key is under the mat.", "more/bus.en.txt": "The bus leaves at noon."}


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path / "site", TEXTS)
    return tmp_path


def index(*paths, to="help.index", **how):
    return index_documents(paths, Path(to), "tiny", device="cpu", **how)


def changes(done):
    return done.encoded, done.added, done.changed, done.dropped


def names(to="help.index"):
    return set(LocalStore.open(Path(to)).files)


def found(to="help.index"):
    """Where the documents of all hits are, as a user opens them from the current folder."""
    searcher = open_searcher(to, "cpu")
    return {shown(searcher.path_of(hit.passage)) for hit in searcher.search(["key"])[0]}


def test_a_folder_is_the_same_however_it_is_named(work, monkeypatch):
    assert changes(index("site")) == (2, 2, 0, 0)
    os.symlink(work / "site", work / "link")
    for form in ("./site", "site/", work / "site", "link", "more/../site", "site/../site/"):
        (work / "more").mkdir(exist_ok=True)
        assert changes(index(form)) == (0, 0, 0, 0), form
    monkeypatch.chdir(work / "site" / "more")
    assert changes(index("..", to="../../help.index")) == (0, 0, 0, 0)
    assert changes(index("../more", "../key.en.txt", to="../../help.index")) == (0, 0, 0, 0)


def test_names_stay_and_paths_are_those_from_the_current_folder(work, monkeypatch):
    index("site")
    assert (names(), found()) == (set(TEXTS), {f"site/{name}" for name in TEXTS})
    monkeypatch.chdir(work / "site" / "more")
    assert names("../../help.index") == set(TEXTS)
    assert found("../../help.index") == {(work / "site" / "key.en.txt").as_posix(), "bus.en.txt"}


def test_documents_in_several_folders_have_the_common_parent_as_root(work):
    write_all(work / "news", {"key.en.txt": "The key is lost."})
    index("site", "news")
    assert names() == {"site/key.en.txt", "site/more/bus.en.txt", "news/key.en.txt"}
    with pytest.raises(ConfigError, match=r"1 existing documents .* such as 'news/key\.en\.txt': name them too"):
        index("site")
    assert changes(index("site", drop=True)) == (0, 0, 0, 1)


def test_a_folder_beside_the_root_widens_it(work):
    write_all(work / "news", {"a.en.txt": "It rains."})
    index("site")
    with pytest.raises(ConfigError, match=r"2 existing documents .* such as 'site/key\.en\.txt': name them too"):
        index("news")
    assert names() == set(TEXTS)
    assert changes(index("site", "news")) == (1, 1, 0, 0)
    assert names() == {"news/a.en.txt", *(f"site/{name}" for name in TEXTS)}


def test_a_document_that_two_names_lead_to_is_indexed_once(work):
    os.symlink(work / "site", work / "link")
    assert index("site", "link").passages == 2


def test_index_and_documents_move_together(work, monkeypatch):
    index("site", to="shop/help.index")
    away = work / "away"
    for each in ("site", "shop"):
        away.mkdir(exist_ok=True)
        shutil.move(work / each, away / each)
    assert found("away/shop/help.index") == {f"away/site/{name}" for name in TEXTS}
    monkeypatch.chdir(away)
    assert changes(index("site", to="shop/help.index")) == (0, 0, 0, 0)


def test_an_index_moves_alone_and_documents_stay(work):
    index("site")
    (work / "far" / "away").mkdir(parents=True)
    shutil.move(work / "help.index", work / "far" / "away" / "index")
    assert found("far/away/index") == {f"site/{name}" for name in TEXTS}


def test_a_root_with_another_name_is_found_by_the_documents_in_it(work, caplog):
    index("site")
    (work / "site").rename(work / "pages")
    assert changes(index("pages")) == (0, 0, 0, 0)
    assert f"its documents moved from {work / 'site'} to {work / 'pages'}" in caplog.text
    assert found() == {f"pages/{name}" for name in TEXTS}
    (work / "pages").rename(work / "docs")
    with pytest.raises(ConfigError, match=r"1 existing documents .* such as 'docs/key\.en\.txt'"):
        index("docs/more")
    assert changes(index("docs/more", drop=True)) == (0, 0, 0, 1)


def test_other_documents_are_no_moved_ones(work):
    index("site")
    (work / "site").rename(work / "pages")
    write_all(work / "news", {"a.en.txt": "It rains."})
    with pytest.raises(ConfigError, match=r"its 2 documents were in .*site, which is gone, .* in news; pass --root"):
        index("news")
    assert changes(index("news", drop=True)) == (1, 1, 0, 2)


def test_a_root_is_moved_without_documents(work):
    index("site")
    (work / "site").rename(work / "pages")
    with pytest.raises(ConfigError, match=r"none of the documents is below it, such as help\.index/key\.en\.txt"):
        change_index(Path("help.index"), root=Path("help.index"))
    change_index(Path("help.index"), root=Path("pages"))
    assert found() == {f"pages/{name}" for name in TEXTS}


def test_a_root_is_a_folder_that_holds_all_documents(work):
    index("site", root=Path())
    assert names() == {f"site/{name}" for name in TEXTS}
    with pytest.raises(ConfigError, match=r"--root site/more: site is not below it"):
        index("site", root=Path("site/more"))
    with pytest.raises(ConfigError, match=r"--root nowhere: expected a folder"):
        index("site", root=Path("nowhere"))


def test_a_link_to_a_release_is_the_root_wherever_it_leads(work):
    (work / "releases").mkdir()
    shutil.move(work / "site", work / "releases" / "1")
    shutil.copytree(work / "releases" / "1", work / "releases" / "2")
    write_all(work / "releases" / "2", {"more/bus.en.txt": "The bus leaves at one."})
    (work / "site").symlink_to("releases/1")
    assert changes(index("site")) == (2, 2, 0, 0)
    (work / "site").unlink()
    (work / "site").symlink_to("releases/2")
    assert changes(index("site")) == (1, 0, 1, 0)
    assert sorted(names()) == ["key.en.txt", "more/bus.en.txt"]
