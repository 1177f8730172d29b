"""`metasearch index` and `metasearch search` as a user runs them."""

import json

import pytest

from helpers.commands import metasearch
from helpers.files import write
from metasearch.encoders.builtin import tiny

DE = ("Der Schlüssel liegt unter der Matte.", "Die Katze schläft im Korb.")
EN = ("The key is under the mat.", "The bus leaves at noon.")


def error(*args, code, **keys):
    (line,) = [line for line in metasearch(*args, code=code, **keys).stderr.splitlines() if "error:" in line]
    return line.partition("error: ")[2]


def write_docs(folder):
    for language, texts in (("de", DE), ("en", EN)):
        write(folder / "docs" / language / "faq.txt", "\n\n".join(texts) + "\n")


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_docs(tmp_path)
    return tmp_path / "docs"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """A folder with documents and their index, which no test changes."""
    folder = tmp_path_factory.mktemp("indexed")
    write_docs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        metasearch("index", "docs", "--encoder=tiny", "--chunk-tokens=40", "-o", "faq.index")
    return folder


@pytest.fixture
def index(indexed, monkeypatch):
    monkeypatch.chdir(indexed)


def test_index_tells_what_it_did_and_how_to_search(docs):
    said = metasearch("index", "docs", "--encoder=tiny", "-o", "my index").stdout.splitlines()
    assert said == [
        "encoder: tiny",
        "documents: 2 (2 new, 0 changed, 0 gone)",
        "passages: 2 (2 encoded now)",
        "texts by language: de 1, en 1",
        "search: metasearch search 'my index' \"...\"",
    ]
    (docs / "de" / "faq.txt").unlink()
    counts = json.loads(metasearch("index", "docs", "-o", "my index", "--json").stdout)
    assert (counts["documents"], counts["dropped"], counts["encoded"], counts["languages"]) == (1, 1, 0, {"en": 1})


def test_what_cannot_be_read_is_named_and_counted_or_with_strict_an_error(docs):
    (docs / "pets.csv").write_text("name\nRex\n", encoding="utf-8")
    (docs / "more.jsonl").write_text('half\n{"text": "More.", "language": "german"}\n', encoding="utf-8")
    problems = [
        "docs/more.jsonl:1: not JSON: Expecting value at column 1",
        "docs/more.jsonl:2: language: 'german' is not a language tag such as de, fil or zh-CN",
        "docs/pets.csv:1: no column 'text'. Known: name. Name yours: --column COLUMN",
    ]
    said = metasearch("index", "docs", "--encoder=tiny", "-o", "i", "--strict", code=3)
    assert said.stderr.endswith("metasearch: error: {}\n".format("\n".join(problems)))
    said = metasearch("index", "docs", "--encoder=tiny", "-o", "i")
    assert said.stdout.splitlines()[1:3] == [
        "documents: 3 (3 new, 0 changed, 0 gone)",
        "skipped: 1 documents, 1 rows; kept as indexed before: 0 documents",
    ]
    outcomes = ("row skipped", "language ignored", "skipped")
    lines = [f"metasearch: {outcome}: {problem}" for outcome, problem in zip(outcomes, problems, strict=True)]
    assert [line for line in said.stderr.splitlines() if line in lines] == lines
    (docs / "en" / "faq.txt").write_bytes(b"\xff")
    counts = json.loads(metasearch("index", "docs", "-o", "i", "--json").stdout)
    assert {key: counts[key] for key in ("documents", "dropped", "skipped", "kept", "skipped_rows")} == {
        "documents": 3, "dropped": 0, "skipped": 1, "kept": 1, "skipped_rows": 0,
    }  # fmt: skip


def test_a_hit_has_score_languages_file_line_and_passage(index):
    first, *text, blank, last = metasearch("search", "faq.index", EN[0], "--top-k=2").stdout.splitlines()
    assert first.split()[2:] == ["en,", "de", "docs/en/faq.txt:1"]
    assert (text, blank) == ([f"    {line}" for line in EN], "")
    assert last == "languages of the hits: en 1, de 1"


def test_languages_are_chosen_and_hits_come_as_json(index):
    found = json.loads(metasearch("search", "faq.index", "Wo?", "--language=de", "--json").stdout)
    assert found["query"] == "Wo?"
    assert {(hit["language"], hit["file"], hit["line"]) for hit in found["hits"]} == {("de", "de/faq.txt", 1)}
    names = {"score", "language", "file", "line", "heading", "anchor", "text", "path", "places", "languages", "fields"}
    assert found["hits"][0].keys() == {*names, "url", "translations"}


def test_lines_of_the_standard_input_are_queries(index):
    lines = metasearch(
        "search", "faq.index", "--json", "--top-k=1", input=f"{EN[0]}\n\n\u200b\u200e\n{DE[0]}\n"
    ).stdout.splitlines()
    assert [json.loads(line)["query"] for line in lines] == [EN[0], DE[0]]


def test_what_would_command_a_terminal_is_not_printed(docs):
    (docs / "en" / "faq.txt").write_text("\x1b[31mred\x1b[0m", encoding="utf-8")
    metasearch("index", "docs", "--encoder=tiny", "-o", "i")
    assert "\x1b" not in metasearch("search", "i", "red").stdout


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["index", "docs"], 2, "Missing option '-o'"),
        (
            ["index", "dogs", "--encoder=tiny", "-o", "x"],
            3,
            "dogs: cannot be read: No such file or directory. Did you mean 'docs'?",
        ),
        (["index", "docs", "--encoder=minni", "-o", "x"], 6, "unknown encoder 'minni'. Did you mean 'mini'?"),
        (["index", "docs", "--encoder=tiny", "--language=deutsch und so", "-o", "x"], 2, "'deutsch und so'"),
        (["index", "docs", "--encoder=tiny", "-o", "docs"], 5, "docs exists and is no index"),
        (["index", "docs", "--chunk-tokens=41", "-o", "faq.index"], 2, "it was made with length 40, not 41"),
        (["index", "docs/de", "-o", "faq.index"], 2, "such as 'docs/en/faq.txt'"),
        (["search", "docs", "x"], 5, "docs is no index: it has no index.sqlite"),
        (["search", "faq.index", "  "], 2, "the query is blank"),
        (["search", "faq.index", "\u2066 \u00ad\u200d\ufeff"], 2, "the query is blank"),
        (["search", "nowhere", "x"], 5, "nowhere does not exist"),
        (["search", "faq.index", "x", "--encoder=mini"], 6, "its vectors are of encoder 'tiny'"),
        (["index", "docs", "--encoder=mini", "-o", "faq.index"], 6, "its vectors are of encoder 'tiny'"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_code(index, args, code, says):
    assert says in error(*args, code=code)


def test_an_encoder_that_is_gone_is_named_with_the_way_on(docs, tmp_path):
    tiny.build().save(tmp_path / "model")
    metasearch("index", "docs", "--encoder=model", "-o", "own")
    (tmp_path / "model").rename(tmp_path / "moved")
    assert "pass its path with --encoder" in error("search", "own", "key", code=6)
    assert "docs/en/faq.txt:1" in metasearch("search", "own", "key", "--encoder=moved").stdout
