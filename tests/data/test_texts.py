"""Texts with a known language: of files whose names tell it, and of a task's train part."""

import gzip
import logging
from pathlib import Path

import pytest

from helpers.saved import save_files, write_lines
from metasearch.data.benchmark import load_benchmark
from metasearch.data.texts import read_tagged, read_texts, tagged_of, text_files
from metasearch.errors import DataError


def texts(tagged):
    return {language: [text for _, text in found] for language, found in tagged.items()}


@pytest.fixture
def corpus(tmp_path):
    """A folder with German twice, Turkish packed, both sides of a Moses pair, and a file that tells no language."""
    (tmp_path / "en-de.tsv").write_text("one\teins\nthree\tdrei\n", encoding="utf-8")
    (tmp_path / "de.txt").write_text("zwei\n\n eins \nvier\n", encoding="utf-8")
    with gzip.open(tmp_path / "tr.txt.gz", "wt", encoding="utf-8") as file:
        file.write("bir\n")
    (tmp_path / "Wiki.el-en.el").write_text("ένα\n", encoding="utf-8")
    (tmp_path / "Wiki.el-en.en").write_text("two\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not a text\n", encoding="utf-8")
    return tmp_path


def test_the_name_of_a_file_tells_the_language_and_several_files_are_read_in_turn(corpus, caplog):
    with caplog.at_level(logging.INFO, "metasearch"):
        found = texts(read_tagged([corpus], 10))
    assert found == {
        "de": ["zwei", "eins", "drei", "vier"],
        "el": ["ένα"],
        "en": ["two", "one", "three"],
        "tr": ["bir"],
    }
    assert "1 files without a language are skipped: notes.md" in caplog.text


def test_texts_are_limited_distinct_and_every_other_one_is_a_question(corpus):
    found = read_tagged([corpus], 3, ["de", "tr"])
    assert found == {
        "de": [("question", "zwei"), ("candidate", "eins"), ("question", "drei")],
        "tr": [("question", "bir")],
    }


def test_a_saved_corpus_gives_the_texts_of_its_files(tmp_path):
    pytest.importorskip("pyarrow")
    files = write_lines(tmp_path / "corpus", 30)
    found = read_tagged([save_files(files, tmp_path / "saved")], 20)
    assert found == read_tagged([files], 20)
    assert texts(found)["en"][:2] == ["one 0", "two 1"]
    assert [len(own) for own in found.values()] == [20, 20, 20]


def test_tables_of_parallel_text_and_data_sets_of_the_hub_give_the_texts_of_both_columns(tmp_path, monkeypatch):
    write_table = pytest.importorskip("pyarrow.parquet").write_table
    arrow = pytest.importorskip("pyarrow")
    place = tmp_path / "snapshot" / "en-de"
    place.mkdir(parents=True)
    table = arrow.table({"english": ["one", "two", "three"], "non_english": ["eins", None, "drei"]})
    write_table(table, place / "train-00000-of-00001.parquet")
    expected = {"de": ["eins", "drei"], "en": ["one", "three"]}
    assert texts(read_tagged([tmp_path / "snapshot"], 10)) == expected
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *name, **_: str(tmp_path / "snapshot"))
    assert texts(read_tagged([Path("hub:sentence-transformers/talks")], 10)) == expected


@pytest.mark.parametrize("read", [text_files, lambda paths: read_tagged(paths, 10)])
def test_text_that_cannot_be_read_and_a_folder_of_another_table_are_errors(read, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "de.txt.zst").write_bytes(b"packed")
    with pytest.raises(DataError, match=r"de\.txt\.zst: \.zst files cannot be read; decompress it"):
        read([tmp_path / "texts"])
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "state.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"saved: no file "):
        read([tmp_path / "saved"])


def test_the_train_part_gives_questions_and_candidates_of_each_language_evenly_spread():
    train = load_benchmark("demo").split.train
    found = tagged_of(train, 30, ["de", "ar"])
    assert list(found) == ["de", "ar"]
    questions = {question.text for question in train.questions if question.language == "de"}
    candidates = {candidate.text for candidate in train.candidates if candidate.language == "de"}
    assert len(found["de"]) == 30
    for role, text in found["de"]:
        assert text in (questions if role == "question" else candidates)
    share = sum(role == "question" for role, _ in found["de"]) / 30
    assert share == pytest.approx(len(questions) / (len(questions) + len(candidates)), abs=1 / 30)


def test_of_a_similarity_task_each_sentence_has_the_language_of_its_side():
    train = load_benchmark("demo-sts").split.train
    found = tagged_of(train, 10_000)
    for pair in train.pairs:
        for language, text in zip(pair.languages, pair.texts, strict=True):
            assert ("text", text) in found[language]


def test_scores_are_no_texts_and_splits_for_evaluation_are_left_out_of_a_folder(tmp_path, caplog):
    lines = "".join(f"1.{i:03d}\teins {i}\tone {i}\n" for i in range(9))
    for split in ("train", "test"):
        (tmp_path / f"{split}.de-en.tsv").write_text(lines.replace("ein", f"{split} ein"), encoding="utf-8")
    with caplog.at_level(logging.INFO, "metasearch"):
        assert [path.name for path in text_files([tmp_path])] == ["train.de-en.tsv"]
        assert texts(read_tagged([tmp_path], 2)) == {"de": ["train eins 0", "train eins 1"], "en": ["one 0", "one 1"]}
    assert "1 files of a dev, validation or test split are skipped: test.de-en.tsv" in caplog.text
    assert list(read_texts([tmp_path]))[:2] == ["train eins 0", "one 0"]
    assert next(read_texts([tmp_path / "test.de-en.tsv"])) == "test eins 0"
