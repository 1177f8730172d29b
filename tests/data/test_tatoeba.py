"""Tatoeba as LASER ships it: what is read, what is refused, and the task that is declared of it."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.formats import translation
from metasearch.config.library import Library
from metasearch.data.benchmark import load_benchmark
from metasearch.data.formats.blank import blank
from metasearch.data.locate import locate
from metasearch.data.readers import tatoeba
from metasearch.errors import DataError

TWO = {"deu": (["Hallo.", "Es regnet."], ["Hello.", "It rains."]), "ell": (["Ναι."], ["Yes."])}
DECLARED = Library().task("tatoeba")


def fill(folder, contents=None):
    """Write files of languages: the lines in that language, and those in English."""
    for language, sides in (contents or TWO).items():
        for suffix, lines in zip((language, "eng"), sides, strict=True):
            path = folder / f"tatoeba.{language}-eng.{suffix}"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_whatever_lines_are_written_are_read_back(tmp_path_factory, rows):
    clean = [tuple("-" if blank(text) else " ".join(text.split()) for text in row) for row in rows]
    folder = fill(tmp_path_factory.mktemp("tatoeba"), {"deu": tuple(zip(*clean, strict=True))})
    translations = tatoeba.read(folder, translation("deu")).pairs
    assert [(pair.target, pair.source) for pair in translations] == clean


def test_a_language_without_files_is_passed_over_and_named_where_the_task_is_partial(tmp_path, caplog):
    partial = translation("deu ell tha", partial=True)
    with caplog.at_level(logging.INFO, "metasearch.data.readers.tatoeba"):
        data = tatoeba.read(fill(tmp_path), partial)
    assert data.groups == ("deu", "ell")
    assert [record.getMessage() for record in caplog.records] == [
        "small: 2 of 3 languages are there; without files: tha"
    ]
    assert locate(partial, tmp_path / "small.yaml", tatoeba.files(partial), str(tmp_path)) == tmp_path


def test_the_declared_task_has_the_112_languages_of_laser_and_the_groups_of_the_papers():
    """83 files belong to languages of LASER; which one the papers leave out to count 82 is not known."""
    sizes = {name: len(codes) for name, codes in DECLARED.groups.items()}
    assert sizes == {"14": 14, "36": 36, "82 (LASER's)": 83, "112": 112}
    assert DECLARED.groups["112"] == DECLARED.languages == sorted(DECLARED.languages)
    assert DECLARED.partial


def test_the_published_files_have_a_thousand_sentences_in_most_languages(real_data):
    data = load_benchmark("tatoeba", data=str(real_data)).data
    counts = {language: len(pairs) for language, pairs in data.by_language.items()}
    assert set(DECLARED.groups["36"]) | set(DECLARED.groups["14"]) == set(counts)
    assert {code for code, n in counts.items() if n < 1000} == {"jav", "kat", "kaz", "mal", "swh", "tam", "tel", "tha"}
    assert max(counts.values()) == 1000
    for pairs in data.by_language.values():
        assert len({pair.target for pair in pairs}) == len({pair.source for pair in pairs}) == len(pairs)


@pytest.mark.parametrize(("gone", "other"), [("ell", "eng"), ("eng", "ell")])
@pytest.mark.parametrize("partial", [True, False])
def test_one_of_two_files_is_not_passed_over(tmp_path, gone, other, partial):
    (fill(tmp_path) / f"tatoeba.ell-eng.{gone}").unlink()
    with pytest.raises(DataError) as caught:
        tatoeba.read(tmp_path, translation("deu ell", partial=partial))
    assert (
        str(caught.value)
        == f"{tmp_path}/tatoeba.ell-eng.{gone}: no such file; tatoeba.ell-eng.{other} needs it, line by line"
    )
