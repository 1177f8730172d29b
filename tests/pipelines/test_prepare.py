"""metasearch prepare: the pairs are those of the files, every line is accounted for, and nothing is done twice."""

import gzip
import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.prepared import contents, prepared, write_lines
from metasearch.config.corpus import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.prepared.manifest import Manifest
from metasearch.errors import ConfigError, DataError
from metasearch.pipelines.prepare.begin import prepare_corpus


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("prepare") / "files")


def pairs_of(corpus):
    return [(pair.source, pair.target, pair.languages) for pair in corpus.pairs(np.arange(len(corpus)))]


def check_as_in_memory(files, folder, **asked):
    """Compare a prepared corpus with the same files in memory, and return its manifest."""
    memory = read_corpus([files], CorpusSettings(**asked))
    corpus = prepared([files], folder, shard=32, block=16, settings=asked)
    assert pairs_of(corpus) == [(pair.source, pair.target, pair.languages) for pair in memory]
    parts = corpus.manifest.parts
    assert [part.pairs for part in parts] == [part.pairs for part in memory.parts]
    assert all(part.read == part.pairs + sum(part.dropped.values()) for part in parts)
    assert sum(part.read for part in parts) == memory.report.read
    report = json.loads((folder / "report.json").read_text())
    assert report["dropped"] == dict(memory.report.dropped)
    assert (report["lines read"], report["pairs kept"]) == (memory.report.read, len(memory))
    return corpus.manifest


@pytest.mark.parametrize(
    "asked",
    [{}, {"max_lines": 7}, {"max_chars": 20, "normalise": True}, {"languages": ("fr",)}],
    ids=str,
)
def test_pairs_and_counts_are_those_of_the_files_in_memory(files, tmp_path, asked):
    check_as_in_memory(files, tmp_path / "prepared", **asked)


LINE = st.one_of(
    st.sampled_from([b"one\teins", b"two\tzwei", b"", b"\t", b"one", b"a\0\tb", b"\xff\tx", b" \tx", b"one \teins\tx"]),
    st.tuples(st.text(max_size=6), st.text(max_size=6)).map(lambda pair: "\t".join(pair).encode().replace(b"\n", b"")),
)


@pytest.mark.exhaustive
@given(st.lists(st.lists(LINE, min_size=1, max_size=40), min_size=1, max_size=3), st.integers(0, 5))
def test_any_lines_are_read_as_in_memory(tmp_path_factory, lines, most):
    folder = tmp_path_factory.mktemp("any")
    for code, own in zip(("de", "el", "fr"), lines, strict=False):
        (folder / "files").mkdir(exist_ok=True)
        (folder / "files" / f"en-{code}.tsv").write_bytes(b"".join(line + b"\n" for line in [*own, b"whole\tganz"]))
    check_as_in_memory(folder / "files", folder / "prepared", max_lines=most)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_all_forms_of_a_corpus_give_the_same_pairs(tmp_path):
    zstd, parquet = pytest.importorskip("backports.zstd"), pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    content = b"one\teins\ntwo\tzwei\n"
    forms = {"en-de.tsv": content, "en-de.tsv.gz": gzip.compress(content), "en-de.tsv.zst": zstd.compress(content)}
    for i, (name, data) in enumerate(forms.items()):
        (tmp_path / f"{i}").mkdir()
        (tmp_path / f"{i}" / name).write_bytes(data)
    (tmp_path / "3").mkdir()
    parquet.write_table(pyarrow.table({"de": ["eins", "zwei"], "en": ["one", "two"]}), tmp_path / "3" / "de-en.parquet")
    found = [pairs_of(prepared([tmp_path / f"{i}"], tmp_path / f"prepared-{i}")) for i in range(4)]
    assert found == [[("one", "eins", ("en", "de")), ("two", "zwei", ("en", "de"))]] * 4


def test_a_pair_that_another_file_had_is_left_out_where_that_is_asked_for(tmp_path):
    for name in ("A", "B"):
        (tmp_path / "files" / name).mkdir(parents=True)
        (tmp_path / "files" / name / "en-de.tsv").write_text(f"one\teins\n{name}\teigen\none\teins\n")
    for across, expected in ((False, (2, 2)), (True, (2, 1))):
        manifest = prepared([tmp_path / "files"], tmp_path / f"{across}", across=across).manifest
        assert tuple(part.pairs for part in manifest.parts) == expected
        assert [part.dropped["duplicate"] for part in manifest.parts] == [3 - count for count in expected]
    with pytest.raises(ConfigError, match="--dedup-global and --max-lines"):
        prepared([tmp_path / "files"], tmp_path / "x", across=True, settings={"max_lines": 1})


def test_texts_of_test_sets_are_left_out(files, tmp_path):
    (tmp_path / "test.txt").write_text("ONE 10!\nnothing alike\n")
    manifest = prepared([files], tmp_path / "prepared", exclude=[str(tmp_path / "test.txt"), "demo"]).manifest
    # `one 10` stands once in each of the two files.
    assert [part.dropped["in the test set test.txt"] for part in manifest.parts] == [1, 1]
    assert set(manifest.asked.exclude) == {"test.txt", "demo"}
    # Of a table all cells count.
    (tmp_path / "test.csv").write_text('"One, 10?",something else,4.2\n')
    manifest = prepared([files], tmp_path / "by-table", exclude=[str(tmp_path / "test.csv")]).manifest
    assert [part.dropped["in the test set test.csv"] for part in manifest.parts] == [1, 1]
    (tmp_path / "test.jsonl").write_text('{"text": "one 10"}\n')
    with pytest.raises(
        DataError, match=r"expected a file of texts, a line each, or a table in \.tsv or \.csv; got \.json"
    ):
        prepared([files], tmp_path / "x", exclude=[str(tmp_path / "test.jsonl")])
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "test.txt").write_text("another\n")
    with pytest.raises(ConfigError, match=r"--exclude: duplicate name 'test\.txt'"):
        prepared([files], tmp_path / "x", exclude=[str(tmp_path / "test.txt"), str(tmp_path / "two" / "test.txt")])
    with pytest.raises(ConfigError, match=r"--exclude demos: neither a file nor a task\. Did you mean 'demo'"):
        prepared([files], tmp_path / "x", exclude=["demos"])


@pytest.mark.slow
def test_any_number_of_processes_writes_the_same_bytes(files, tmp_path):
    one, three = (prepared([files], tmp_path / f"{n}", shard=24, block=16, processes=n) for n in (1, 3))
    assert len(one.shards) == 100 // 24 + 1
    assert contents(one.folder) == contents(three.folder)


def test_a_finished_corpus_is_not_prepared_again(files, tmp_path):
    prepared([files], tmp_path / "prepared")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")}
    # A process that was killed before the end may have left it.
    (tmp_path / "prepared" / "work").mkdir()
    manifest = prepare_corpus([files], tmp_path / "prepared")
    assert manifest == Manifest.read(tmp_path / "prepared")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").rglob("*")} == before


def test_what_is_wrong_is_said(files, tmp_path):
    with pytest.raises(ConfigError, match=r"max_tokens is a setting of stages: --set stages\.NAME\.corpus\.max_tokens"):
        prepare_corpus([files], tmp_path / "x", {"max_tokens": 60})
    (tmp_path / "en-de.tsv").write_text("no tab\n")
    with pytest.raises(DataError, match=r"en-de\.tsv: no line of 1 is a pair: 1 no tab"):
        prepare_corpus([tmp_path / "en-de.tsv"], tmp_path / "y")
    (tmp_path / "en-de.tsv").write_text("")
    with pytest.raises(DataError, match=r"en-de\.tsv: the file is empty"):
        prepare_corpus([tmp_path / "en-de.tsv"], tmp_path / "z")
