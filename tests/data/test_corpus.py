"""Reading parallel corpora: the names and formats of files, what is chosen of them, and what is dropped."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.files import write
from metasearch.config.distillation import CorpusSettings
from metasearch.data.parallel.corpus import read_corpus
from metasearch.data.parallel.names import recognise
from metasearch.data.parallel.saved import TokenCounter
from metasearch.errors import DataError

ONE_TWO = [("one", "eins"), ("two", "zwei")]


def put(path, lines):
    return write(path, "".join(f"{line}\n" for line in lines))


def tsv(path, pairs):
    return put(path, ["\t".join(pair) for pair in pairs])


def moses(folder, name, pairs, second="en", packed=""):
    first = name.rsplit(".", 1)[-1].split("-")[0]
    put(folder / f"{name}.{first}{packed}", [target for _, target in pairs])
    put(folder / f"{name}.{second}{packed}", [source for source, _ in pairs])


def pairs_of(corpus):
    return [(pair.source, pair.target) for pair in corpus]


def read(*paths, **settings):
    return read_corpus(paths, CorpusSettings(**settings))


@pytest.mark.parametrize(
    ("name", "corpus", "languages", "split"),
    [
        ("en-de.tsv", "folder", ("en", "de"), "train"),
        ("TED2020-en-de-train.tsv.gz", "TED2020", ("en", "de"), "train"),
        ("TED2020-en-zh-CN-dev.tsv.gz", "TED2020", ("en", "zh-CN"), "dev"),
        ("News-Commentary-en-zh_cn-test.tsv", "News-Commentary", ("en", "zh-CN"), "test"),
        ("zh-CN-en.tsv", "folder", ("zh-CN", "en"), "train"),
        ("WikiMatrix.de-en.de", "WikiMatrix", ("de", "en"), "train"),
        ("europarl-v7.de-en.en.gz", "europarl-v7", ("de", "en"), "train"),
        ("de-en.de", "folder", ("de", "en"), "train"),
        ("tatoeba.deu-eng.deu", "tatoeba", ("de", "en"), "train"),
        ("OpenSubtitles.en-sh.sh", "OpenSubtitles", ("en", "sr-Latn"), "train"),
        ("GNOME.en-nb_NO.nb_NO", "GNOME", ("en", "no-NO"), "train"),
        ("eng_Latn-zho_Hans.tsv", "folder", ("en", "zh-Hans"), "train"),
        ("TED2020-en-pt-br-train.tsv.gz", "TED2020", ("en", "pt-BR"), "train"),
        ("pt-br-en.tsv", "folder", ("pt-BR", "en"), "train"),
        ("zh-hant-tw-en.tsv", "folder", ("zh-Hant-TW", "en"), "train"),
        ("sr-latn-en.tsv", "folder", ("sr-Latn", "en"), "train"),
        ("ted-en-de.tsv", "ted", ("en", "de"), "train"),
        ("x.fr-pt-br.fr", "x", ("fr", "pt-BR"), "train"),
    ],
)
def test_a_name_says_corpus_languages_and_split(tmp_path, name, corpus, languages, split):
    file = recognise(tmp_path / "folder" / name)
    assert (file.corpus, file.languages, file.split) == (corpus, languages, split)


def test_a_name_with_several_readings_is_read_by_the_pivot_or_refused(tmp_path):
    path = tmp_path / "fr-pt-br.tsv"
    assert recognise(path, pivot="fr").languages == ("fr", "pt-BR")
    with pytest.raises(
        DataError, match=r"fr-pt-br\.tsv: the name can be read as fr and pt-BR or fr-PT and br or pt and br"
    ):
        recognise(path)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("name", ["WikiMatrix.de-en", "europarl-v7.de-en", "TED2020.v1.de-en"])
def test_line_aligned_sides_are_read_as_one_part_from_the_folder_or_from_either_side(tmp_path, name, packed):
    moses(tmp_path, name, ONE_TWO, packed=packed)
    sides = [tmp_path / f"{name}.{code}{packed}" for code in ("de", "en")]
    for paths in ([tmp_path], sides[:1], sides[1:], [*sides, tmp_path]):
        corpus = read(*paths)
        assert pairs_of(corpus) == ONE_TWO
        assert [(part.path, part.corpus) for part in corpus.parts] == [(sides[0], name[:-6])]


def test_languages_and_corpora_can_be_chosen_and_the_pivot_can_be_another_one(tmp_path):
    tsv(tmp_path / "A-en-de.tsv", [("one", "eins")])
    tsv(tmp_path / "A-en-fr.tsv", [("one", "un")])
    tsv(tmp_path / "B-en-de.tsv", [("two", "zwei")])
    assert pairs_of(read(tmp_path, languages=("fr",))) == [("one", "un")]
    assert pairs_of(read(tmp_path, only=("B",))) == [("two", "zwei")]
    assert pairs_of(read(tmp_path / "A-en-fr.tsv", pivot="fr")) == [("un", "one")]


HELD_OUT = st.sampled_from(
    [
        "valid", "validation", "val", "dev", "devel", "development", "dev-test", "devtest", "test", "tests", "testset",
        "tst2013", "newstest2014", "newsdiscussdev2015", "newssyscomb2009", "wmttest2022", "eval", "evaluation",
        "heldout", "hold_out",
    ]
)  # fmt: skip
SPLITS = HELD_OUT | st.sampled_from(["train", "training", "train_set"])
FORMS = st.sampled_from(
    [
        "{split}{mark}de-en.{end}",
        "{split}{mark}News{mark}de-en.{end}",
        "News{mark}{split}.de-en.{end}",
        "News.de-en{mark}{split}.{end}",
        "de-en/{split}.{end}",
        "{split}/News.de-en.{end}",
        "News{mark}{split}/more/de-en.{end}",
    ]
)
ENDS = st.sampled_from(["tsv", "tsv.gz", "csv", "jsonl.gz", "parquet", "de", "en.gz"])


@given(SPLITS, FORMS, st.sampled_from("-._"), ENDS, st.sampled_from([str.lower, str.upper, str.title]))
def test_a_split_anywhere_in_a_name_is_found_and_is_no_part_of_the_corpus(split, form, mark, end, case):
    path = Path(form.format(split=case(split), mark=mark, end=end))
    part = recognise(Path("/texts") / path, folders=path.parts[:-1])
    assert part.languages == ("de", "en")
    assert (part.split == "train") == split.startswith("train")
    assert split.lower() not in part.corpus.lower()


@pytest.mark.parametrize(
    "name",
    [
        "contest.de-en.de",
        "newsdiscuss.de-en.en",
        "latest2014.de-en.tsv",
        "Testament-de-en.tsv",
        "devices_de-en/de-en.tsv",
        "validity.de-en.en",
    ],
)
def test_a_word_that_only_begins_like_a_split_is_none(name):
    path = Path(name)
    assert recognise(path, folders=path.parts[:-1]).split == "train"


@pytest.mark.parametrize("end", ["tsv", "de"])
def test_of_a_folder_only_train_is_read_and_one_line_counts_the_other_splits(tmp_path, caplog, end):
    for split in ("train", "valid", "test"):
        if end == "tsv":
            tsv(tmp_path / f"{split}.de-en.tsv", [(f"{split} eins", f"{split} one")])
        else:
            moses(tmp_path, f"{split}.de-en", [(f"{split} one", f"{split} eins")])
    put(tmp_path / "memory.tmx", ["<tmx/>"])
    corpus = read(tmp_path)
    assert pairs_of(corpus) == [("train one", "train eins")]
    held, other = (record.getMessage() for record in caplog.records)
    count = 2 * (1 if end == "tsv" else 2)
    assert held.startswith(f"skipped as dev, validation or test split: {count} files, {tmp_path / 'test.de-en'}")
    assert other == (
        f"skipped, not named as parallel text: 1 files, {tmp_path / 'memory.tmx'}; .tmx files are not read: save their "
        "translations as TSV, such as en-de.tsv"
    )
    assert pairs_of(read(tmp_path / f"test.de-en.{end}")) == [("test one", "test eins")]


def test_a_named_folder_may_be_called_like_a_split(tmp_path):
    tsv(tmp_path / "test" / "en-de.tsv", ONE_TWO)
    assert pairs_of(read(tmp_path / "test")) == ONE_TWO


# Columns of no text: scores, addresses and labels.
OTHERS = st.sampled_from(
    [
        lambda i: f"{1 + i / 100:.3f}",
        lambda i: f"-{i}",
        lambda i: f"{i}e-05",
        lambda i: f"https://example.org/a?b={i}",
        lambda i: "tatoeba",
        lambda i: f"id-{i:05d}",
    ]
)


@given(st.lists(OTHERS, max_size=4), st.lists(OTHERS, max_size=2), st.booleans(), st.booleans())
def test_the_texts_are_found_beside_columns_of_other_kinds(tmp_path_factory, before, after, packed, header):
    others = [*before, *after]
    path = tmp_path_factory.mktemp("columns") / f"en-de.tsv{'.gz' * packed}"
    rows = [
        [*(each(i) for each in before), f"line {i} one", f"Zeile {i} eins", *(each(i) for each in after)]
        for i in range(20)
    ]
    names = [[f"name {i}" for i in range(len(others) + 2)]] * header
    put(path, ["\t".join(row) for row in names + rows])
    assert pairs_of(read(path))[header:] == [(f"line {i} one", f"Zeile {i} eins") for i in range(20)]


def test_columns_that_cannot_be_told_apart_are_named_and_can_be_chosen(tmp_path):
    path = put(tmp_path / "en-de.tsv", [f"0.{i}\tnote {i} a\tone {i} a\teins {i} a" for i in range(9)])
    with pytest.raises(
        DataError,
        match=r"en-de\.tsv: which two of its 4 columns .* text are: 2, 3, 4 .* corpus\.columns of a stage to \[1,2\]",
    ):
        read(path)
    assert pairs_of(read(path, columns=(3, 4)))[8] == ("one 8 a", "eins 8 a")
    for columns in ((3,), (3, 3), (4, 5)):
        with pytest.raises(DataError, match=r"en-de\.tsv: columns .*: expected two columns from 1 to 4"):
            read(path, columns=columns)
    numbers = put(tmp_path / "en-fr.tsv", ["0.7\tune phrase", "0.8\tdeux mots"])
    with pytest.raises(DataError, match=r"en-fr\.tsv: which two of its 2 columns .* text are: 2 "):
        read(numbers)


def test_a_line_with_another_number_of_columns_is_dropped_and_counted(tmp_path):
    path = put(tmp_path / "en-de.tsv", ["one a\teins a", "two\tzwei\tdrei", "three b\tdrei b"])
    corpus = read(path)
    assert pairs_of(corpus) == [("one a", "eins a"), ("three b", "drei b")]
    assert corpus.report.dropped == {"another number of columns": 1}


def test_each_kind_of_damage_is_counted_and_its_first_places_are_kept(tmp_path):
    path = tmp_path / "en-de.tsv"
    path.write_bytes(b"one\teins\nno tab\n\xff\tx\na\t\n \tb\nn\0\tnul\n\none\teins\nx\ny\ntwo\tzwei")
    corpus = read(path)
    assert pairs_of(corpus) == ONE_TWO
    assert corpus.report.dropped == {"no tab": 4, "not UTF-8": 1, "empty side": 2, "NUL character": 1, "duplicate": 1}
    assert (corpus.report.read, corpus.report.kept) == (11, 2)
    tab, side = "no tab", "empty side"
    places = {2: tab, 3: "not UTF-8", 4: side, 5: side, 6: "NUL character", 7: tab, 8: "duplicate", 9: tab}
    assert corpus.report.examples == [f"{path}:{line}: {reason}" for line, reason in places.items()]
    assert corpus.report.describe() == (
        "11 lines read, 2 kept; dropped: 4 no tab, 1 not UTF-8, 2 empty side, 1 NUL character, 1 duplicate"
    )


def test_long_sides_are_dropped_by_tokens(tmp_path):
    path = tsv(tmp_path / "en-de.tsv", [("a b c", "a b"), ("a b c d", "a"), ("a", "a b c d")])
    words = TokenCounter(lambda texts: [len(text.split()) for text in texts], "words")
    corpus = read_corpus([path], CorpusSettings(max_tokens=3), words)
    assert pairs_of(corpus) == [("a b c", "a b")]
    assert corpus.report.dropped == {"over 3 tokens": 2}


def test_max_lines_keeps_the_first_pairs_of_each_file_and_reads_no_further(tmp_path):
    path = put(tmp_path / "en-de.tsv", ["damage", *(f"s{i}\tt{i}" for i in range(9))])
    corpus = read(path, max_lines=4)
    assert pairs_of(corpus) == [(f"s{i}", f"t{i}") for i in range(4)]
    assert corpus.report.read == 1 + 4


def test_normalised_text_is_what_is_read_and_compared(tmp_path):
    path = tsv(tmp_path / "en-de.tsv", [("“a” – b", "x"), ('"a" - b', "x"), ("…", "y")])
    assert pairs_of(read(path, normalise=True)) == [('"a" - b', "x"), ("...", "y")]
    assert len(read(path)) == 3


def test_codes_of_one_language_are_chosen_as_one(tmp_path):
    for code in ("iw", "he", "heb"):
        moses(tmp_path, f"{code}.{code}-en", [(f"one {code}", f"eins {code}")])
    for asked in ("he", "iw"):
        assert read(tmp_path, languages=(asked,), pivot="eng").counts == {"he": 3}


def table(path, **columns):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(pyarrow.table(columns), path)
    return path


ENGLISH, GERMAN = zip(*ONE_TWO, strict=True)


def test_a_table_has_a_column_a_language_or_one_of_both_or_names_of_the_hub(tmp_path):
    forms = [
        ("de-en.parquet", {"de": GERMAN, "en": ENGLISH, "score": [0.5, 0.7]}),
        ("de-en.parquet", {"english": ENGLISH, "non_english": GERMAN}),
        ("de-en.parquet", {"source": GERMAN, "target": ENGLISH}),
        ("en-de.parquet", {"source": ENGLISH, "target": GERMAN}),
    ]
    for i, (name, columns) in enumerate(forms):
        (tmp_path / f"{i}").mkdir()
        table(tmp_path / f"{i}" / name, **columns)
        assert pairs_of(read(tmp_path / f"{i}")) == ONE_TWO
    assert pairs_of(read(put(tmp_path / "en-de.csv", ["en,de", "one,eins", "two,zwei"]))) == ONE_TWO
    lines = [json.dumps({"de": target, "en": source}) for source, target in ONE_TWO]
    assert pairs_of(read(put(tmp_path / "en-de.jsonl", lines))) == ONE_TWO
    both = [{"en": e, "de": d} for e, d in ONE_TWO]
    table(tmp_path / "0" / "de-en.parquet", id=["a", "b", "c"], translation=[*both, None])
    corpus = read(tmp_path / "0")
    assert pairs_of(corpus) == ONE_TWO
    assert (corpus.report.read, corpus.report.dropped) == (2 + 1, {"empty side": 1})


def test_a_table_without_such_columns_is_refused(tmp_path):
    path = put(tmp_path / "en-de.jsonl", ['{"en": "one", "text": "eins"}'])
    with pytest.raises(
        DataError,
        match=r"en-de\.jsonl:1: no column 'de'.* Expected en and de, or source and target, or english and non",
    ):
        read(path)
    put(path, ['{"en": "one", "de": 5}'])
    with pytest.raises(DataError, match=r"en-de\.jsonl:1: column 'de': expected text, got 5"):
        read(path)


def as_on_the_hub(folder):
    """Write a data set with a folder for each pair of languages, in shards and splits, as links to blobs."""
    for code, german in (("de", GERMAN), ("fr", ("un", "deux"))):
        (folder / f"en-{code}").mkdir(parents=True)
        for i in (0, 1):
            name = f"en-{code}/train-0000{i}-of-00002.parquet"
            table(folder / name, english=ENGLISH[i : i + 1], non_english=german[i : i + 1])
        table(folder / f"en-{code}" / "dev-00000-of-00001.parquet", english=["three"], non_english=["drei"])
    (folder.parent / "blobs").mkdir()
    for number, path in enumerate(sorted(folder.rglob("*.parquet"))):
        path.symlink_to(path.replace(folder.parent / "blobs" / f"{number:064x}"))


def test_a_data_set_of_the_hub_is_read_by_its_name(tmp_path, monkeypatch):
    as_on_the_hub(tmp_path / "snapshot")
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *name, **_: str(tmp_path / "snapshot"))
    corpus = read("hub:sentence-transformers/parallel-sentences-talks/en-de")
    assert pairs_of(corpus) == ONE_TWO
    assert [part.corpus for part in corpus.parts] == ["parallel-sentences-talks"]
    assert read("hub:sentence-transformers/parallel-sentences-talks").counts == {"de": 2, "fr": 2}


def test_a_folder_that_datasets_saved_is_read_by_its_name(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    for split in ("train", "test"):
        place = tmp_path / "talks-en-de" / split
        place.mkdir(parents=True)
        content = arrow.table({"de": GERMAN, "en": ENGLISH})
        with arrow.OSFile(str(place / "a.arrow"), "wb") as file, arrow.ipc.new_stream(file, content.schema) as writer:
            writer.write_table(content)
        (place / "state.json").write_text('{"_data_files": [{"filename": "a.arrow"}]}')
    for path in (tmp_path, tmp_path / "talks-en-de" / "train"):
        corpus = read(path)
        assert pairs_of(corpus) == ONE_TWO
        assert corpus.parts[0].corpus == "talks"


@pytest.mark.parametrize("mark", ["True", "1", "yes"])
def test_translations_that_need_work_are_left_out_and_counted(mark, tmp_path, caplog):
    rows = ["source,target,id,fuzzy", "Open the file.,Öffnen Sie die Datei.,1,False", f"Close it.,Wir gehen.,2,{mark}"]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "en-de.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    assert pairs_of(read(tmp_path / "files")) == [("Open the file.", "Öffnen Sie die Datei.")]
    assert "column 'fuzzy'), skipped: 1" in caplog.text
