"""metasearch prepare: the pairs are those of the files, every line is counted, and `datasets` opens the result."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.prepared import prepared, read, write_lines
from metasearch.config.distillation import CorpusSettings
from metasearch.data.benchmark import load_benchmark
from metasearch.data.formats.rows import data_files, read_batches
from metasearch.data.overlap import set_of, set_of_file
from metasearch.data.parallel import prepare
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.parallel.prepare import Cleaner, prepare_corpus
from metasearch.data.parallel.saved import COLUMNS, write_table
from metasearch.errors import ConfigError, DataError, RunFolderError

arrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("prepare") / "files")


def check_as_in_memory(files, folder, **asked):
    """Compare a prepared corpus with the same files in memory, and return the preparation."""
    memory = read(files, **asked)
    done = prepared([files], folder, settings=asked)
    assert list(read(folder)) == list(memory)
    pairs = Counter(memory.part.tolist())
    assert [part["pairs"] for part in done["parts"]] == [pairs[i] for i in range(len(memory.parts))]
    assert all(part["read"] == part["pairs"] + sum(part["dropped"].values()) for part in done["parts"])
    report = json.loads((folder / "report.json").read_text())
    assert report["dropped"] == dict(memory.report.dropped)
    assert (report["lines read"], report["pairs kept"]) == (memory.report.read, len(memory))
    assert sorted(report["examples"]) == sorted(memory.report.examples)
    return done


STAGE = {"max_lines": 7, "normalise": True}
"""Settings that a stage has, and a preparation does not have."""


@pytest.mark.parametrize("asked", [{}, {"max_chars": 20}, {"languages": ("fr",)}, STAGE], ids=str)
def test_pairs_and_counts_are_those_of_the_files_in_memory(files, tmp_path, asked):
    if asked != STAGE:
        check_as_in_memory(files, tmp_path / "prepared", **asked)
    # The same settings can be asked for when a prepared corpus is read.
    prepared([files], tmp_path / "whole")
    assert list(read(tmp_path / "whole", **asked)) == list(read(files, **asked))


def test_a_corpus_with_retired_tags_is_read_as_one_with_current_ones(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "en-he.tsv").write_text("one\tאחת\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "write_table", lambda folder, batches: write_table(folder, map(retire, batches)))
        prepared([tmp_path / "files"], tmp_path / "old")
    corpus = read(tmp_path / "old", languages=("heb",), pivot="eng")
    assert (corpus.counts, corpus[0].languages) == ({"he": 1}, ("en", "he"))


def retire(batch):
    """Return a batch as an earlier version wrote it, with the tags of the names of files."""
    tags = {"source_language": ["eng"], "target_language": ["iw"]}
    return arrow.record_batch([tags.get(name, batch.column(name)) for name in COLUMNS], list(COLUMNS))


LINE = st.one_of(
    st.sampled_from(
        [b"one\teins", b"two\tzwei", b"", b"\t", b"one", b"a\0\tb", b"\xff\tx", b" \tx", b"one \teins\t0.5"]
    ),
    st.tuples(st.text(max_size=6), st.text(max_size=6)).map(lambda pair: "\t".join(pair).encode().replace(b"\n", b"")),
)


@pytest.mark.exhaustive
@given(st.lists(st.lists(LINE, min_size=1, max_size=40), min_size=1, max_size=3))
def test_any_lines_are_read_as_in_memory(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("any")
    for code, own in zip(("de", "el", "fr"), lines, strict=False):
        (folder / "files").mkdir(exist_ok=True)
        (folder / "files" / f"en-{code}.tsv").write_bytes(b"".join(line + b"\n" for line in [*own, b"whole\tganz"]))
    check_as_in_memory(folder / "files", folder / "prepared")


def test_a_pair_that_another_file_had_is_dropped_where_that_is_asked_for(tmp_path):
    for name in ("A", "B"):
        (tmp_path / "files" / name).mkdir(parents=True)
        (tmp_path / "files" / name / "en-de.tsv").write_text(f"one\teins\n{name}\teigen\none\teins\n")
    for across, expected in ((False, (2, 2)), (True, (2, 1))):
        done = prepared([tmp_path / "files"], tmp_path / f"{across}", across=across)
        assert tuple(part["pairs"] for part in done["parts"]) == expected
        assert [part["dropped"]["duplicate"] for part in done["parts"]] == [3 - count for count in expected]
    assert [part.corpus for part in read(tmp_path / "True").parts] == ["A", "B"]


def test_texts_of_test_sets_are_dropped(files, tmp_path):
    (tmp_path / "test.txt").write_text("ONE 10!\nnothing alike\n")
    done = prepared(
        [files],
        tmp_path / "prepared",
        exclude=[set_of_file(tmp_path / "test.txt"), set_of("demo", load_benchmark("demo").data)],
    )
    # `one 10` stands once in each of the two files.
    assert [part["dropped"]["in the test set test.txt"] for part in done["parts"]] == [1, 1]
    assert json.loads((tmp_path / "prepared" / "report.json").read_text())["exclude"] == ["test.txt", "demo"]
    # Of a table all cells count.
    (tmp_path / "test.csv").write_text('"One, 10?",something else,4.2\n')
    done = prepared([files], tmp_path / "by-table", exclude=[set_of_file(tmp_path / "test.csv")])
    assert [part["dropped"]["in the test set test.csv"] for part in done["parts"]] == [1, 1]
    (tmp_path / "test.jsonl").write_text('{"text": "one 10"}\n')
    with pytest.raises(
        DataError, match=r"expected a file of texts, a line each, or a table in \.tsv or \.csv; got \.json"
    ):
        set_of_file(tmp_path / "test.jsonl")


def test_pairs_in_another_language_are_dropped(tmp_path):
    lines = ["this is a house with a garden\tdas ist ein Haus mit einem Garten", "the sea is blue\tla mer est bleue"]
    (tmp_path / "en-de.tsv").write_text("".join(f"{line}\n" for line in lines))
    done = prepared([tmp_path / "en-de.tsv"], tmp_path / "prepared", detect=("en", "de", "fr"))
    assert done["dropped"] == {"translation in another language": 1}
    with pytest.raises(ConfigError, match=r"--detect en,fr: .*en-de\.tsv is in de, too; name all languages"):
        prepared([tmp_path / "en-de.tsv"], tmp_path / "x", detect=("en", "fr"))


@pytest.mark.slow
def test_any_number_of_processes_writes_the_same_bytes(files, tmp_path):
    for processes in (1, 3):
        prepared([files], tmp_path / f"{processes}", processes=processes)
    one, three = ({p.name: p.read_bytes() for p in (tmp_path / f"{n}").iterdir()} for n in (1, 3))
    assert one == three


def test_datasets_opens_what_was_prepared_and_what_it_saves_is_read(files, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    prepared([files], tmp_path / "prepared")
    table = datasets.load_from_disk(str(tmp_path / "prepared"))
    assert tuple(table.column_names) == COLUMNS
    table.select(range(60, 40, -1)).save_to_disk(tmp_path / "own")
    assert list(read(tmp_path / "own")) == list(read(tmp_path / "prepared"))[60:40:-1]


def test_the_layout_is_that_of_save_to_disk(files, tmp_path):
    """By its documented files, so that a change shows where `datasets` is not installed."""
    prepared([files], tmp_path / "prepared")
    (path,) = data_files(tmp_path / "prepared")
    rows = [row for batch in read_batches(path) for row in batch.to_pylist()]
    assert rows[1] == dict(zip(COLUMNS, ("two 1", "de long long long 1", "en", "de", "files"), strict=True))
    features = json.loads((tmp_path / "prepared" / "dataset_info.json").read_text())["features"]
    assert features == {name: {"dtype": "string", "_type": "Value"} for name in COLUMNS}


def test_a_stopped_preparation_leaves_nothing(files, tmp_path, monkeypatch):
    clean_part = Cleaner.clean_part

    def stop(self, number, *others):
        if number == 1:
            raise KeyboardInterrupt
        return clean_part(self, number, *others)

    monkeypatch.setattr(Cleaner, "clean_part", stop)
    with pytest.raises(KeyboardInterrupt):
        prepared([files], tmp_path / "prepared")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_or_a_changed_data_file_is_refused(files, tmp_path):
    prepared([files], tmp_path / "prepared")
    with pytest.raises(RunFolderError, match="prepared exists already; choose another folder with -o"):
        prepare_corpus([files], tmp_path / "prepared")
    with pytest.raises(ConfigError, match="a prepared corpus cannot be combined with other files"):
        read_corpus([tmp_path / "prepared", files], CorpusSettings())
    (path,) = data_files(tmp_path / "prepared")
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"data-00000-of-00001\.arrow: checksum mismatch"):
        read(tmp_path / "prepared")
    (tmp_path / "prepared" / "report.json").unlink()
    path.write_bytes(content[:1000])
    with pytest.raises(DataError, match=r"data-00000-of-00001\.arrow: damaged or unreadable"):
        read(tmp_path / "prepared")
    (tmp_path / "prepared" / "state.json").write_text('{"_data_files": [5]}')
    with pytest.raises(DataError, match=r"state\.json: expected a 'filename' for each of _data_files"):
        read(tmp_path / "prepared")


def test_wrong_requests_are_refused(files, tmp_path):
    with pytest.raises(ConfigError, match=r"max_tokens is a setting of stages: --set stages\.NAME\.corpus\.max_tokens"):
        prepare_corpus([files], tmp_path / "x", {"max_tokens": 60})
    (tmp_path / "en-de.tsv").write_text("no tab\n")
    with pytest.raises(DataError, match=r"en-de\.tsv: no line of 1 is a pair: 1 no tab"):
        prepare_corpus([tmp_path / "en-de.tsv"], tmp_path / "y")
    (tmp_path / "en-de.tsv").write_text("")
    with pytest.raises(DataError, match=r"en-de\.tsv: the file is empty"):
        prepare_corpus([tmp_path / "en-de.tsv"], tmp_path / "z")
    assert [path.name for path in tmp_path.iterdir()] == ["en-de.tsv"]
    prepared([files], tmp_path / "prepared")
    for asked, message in (
        ({"languages": ("it",)}, "prepared: no parallel text of language 'it'"),
        ({"only": ("file",)}, r"no parallel text of corpus 'file'\. Did you mean 'files'"),
        ({"pivot": "de"}, "no parallel text of pivot 'de'"),
        ({"max_chars": 1}, r"prepared: no line of \d+ is a pair: \d+ over 1 characters"),
    ):
        with pytest.raises(DataError, match=message):
            read(tmp_path / "prepared", **asked)


@pytest.mark.parametrize("mark", ["True", "1", "yes"])
def test_translations_that_need_work_are_left_out_and_counted(mark, tmp_path, caplog):
    rows = ["source,target,id,fuzzy", "Open the file.,Öffnen Sie die Datei.,1,False", f"Close it.,Wir gehen.,2,{mark}"]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "en-de.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    assert [pair for pair in read(tmp_path / "files")] != []
    assert len(read(tmp_path / "files")) == 1
    assert "column 'fuzzy'), skipped: 1" in caplog.text
