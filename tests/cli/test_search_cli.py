"""`metasearch index` and `metasearch search` as a user runs them."""

import json
import re

import pytest
from click.testing import CliRunner

from metasearch.cli import main, search
from metasearch.encoders.builtin import tiny
from metasearch.encoders.encoder import Encoder
from metasearch.errors import ConfigError

DE = ("Der Schlüssel liegt unter der Matte.", "Die Katze schläft im Korb.")
EN = ("The key is under the mat.", "The bus leaves at noon.")


def metasearch(*args, code=0, **keys):
    result = CliRunner().invoke(main, [str(arg) for arg in args], **keys)
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    return result


def error(*args, code, **keys):
    (line,) = [line for line in metasearch(*args, code=code, **keys).stderr.splitlines() if "error:" in line]
    return line.partition("error: ")[2]


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for language, texts in (("de", DE), ("en", EN)):
        (tmp_path / "docs" / language).mkdir(parents=True)
        (tmp_path / "docs" / language / "faq.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return tmp_path / "docs"


@pytest.fixture
def index(docs):
    metasearch("index", docs.name, "--encoder=tiny", "--chunk-tokens=40", "-o", "faq.index")
    return docs.parent / "faq.index"


def test_index_tells_what_it_did_and_how_to_search(docs):
    said = metasearch("index", "docs", "--encoder=tiny", "-o", "my index").stdout.splitlines()
    assert said == [
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
        "docs/pets.csv:1: the header has no column 'text' with the text. Known: name.",
    ]
    said = metasearch("index", "docs", "--encoder=tiny", "-o", "i", "--strict", code=3)
    assert said.stderr.endswith("metasearch: error: {}\n".format("\n".join(problems)))
    said = metasearch("index", "docs", "--encoder=tiny", "-o", "i")
    assert said.stdout.splitlines()[:2] == [
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


def test_a_hit_has_score_language_file_line_and_passage(index):
    first, *text, blank, _, _, _, _, last = metasearch("search", "faq.index", EN[0], "--top-k=2").stdout.splitlines()
    assert first.split()[2:] == ["en", "docs/en/faq.txt:1"]
    assert (text, blank) == ([f"    {line}" for line in EN], "")
    assert last == "languages of the hits: en 1, de 1"


def test_languages_are_chosen_and_hits_come_as_json(index):
    found = json.loads(metasearch("search", "faq.index", "Wo?", "--language=de", "--json").stdout)
    assert found["query"] == "Wo?"
    assert {(hit["language"], hit["file"], hit["line"]) for hit in found["hits"]} == {("de", "docs/de/faq.txt", 1)}
    assert found["hits"][0].keys() == {"score", "language", "file", "line", "text", "places"}


def test_lines_of_the_standard_input_are_queries(index):
    lines = metasearch(
        "search", "faq.index", "--json", "--top-k=1", input=f"{EN[0]}\n\n\u200b\u200e\n{DE[0]}\n"
    ).stdout.splitlines()
    assert [json.loads(line)["query"] for line in lines] == [EN[0], DE[0]]


def test_a_mark_of_byte_order_is_no_part_of_the_first_query(index):
    found = metasearch("search", "faq.index", "--json", input=f"\ufeff{EN[0]}\n".encode()).stdout
    assert json.loads(found)["query"] == EN[0]


def test_queries_that_are_not_utf_8_are_refused_with_the_byte(index):
    assert error("search", "faq.index", "caf\udce9", code=2) == "the query is not UTF-8: byte 0xe9"
    (line,) = metasearch("search", "faq.index", "--json", code=3, input=b"tea\ncaf\xe9\n").stderr.splitlines()
    assert line == "metasearch: error: line 2 of the standard input is not UTF-8: byte 0xe9"


def test_a_standard_input_that_is_closed_is_none(index, monkeypatch):
    monkeypatch.setattr(search.sys, "stdin", None)
    with pytest.raises(ConfigError, match="there is no query, and no standard input to read one from"):
        search._asked_queries()


def test_the_end_of_a_query_that_is_not_read_is_said(docs):
    metasearch("index", docs.name, "--encoder=tiny", "--chunk-tokens=40", "-o", "faq.index")
    limit = tiny.build().limit("question")
    says = f"the query '{'bus ' * 10}…' was searched for by its first {limit} tokens; its end was not read"
    assert says in metasearch("search", "faq.index", "bus " * limit).stderr
    assert "not read" not in metasearch("search", "faq.index", "bus").stderr


def test_both_rankings_can_be_fused(index):
    (first, *_) = json.loads(metasearch("search", "faq.index", "bus noon", "--hybrid", "--json").stdout)["hits"]
    assert "The bus leaves" in first["text"]
    assert first["score"] == round(1 / 61 + 1 / 61, 6)  # first in both


def test_what_would_command_a_terminal_is_not_printed(docs):
    (docs / "en" / "faq.txt").write_text("\x1b[31mred\x1b[0m", encoding="utf-8")
    metasearch("index", "docs", "--encoder=tiny", "-o", "i")
    assert "\x1b" not in metasearch("search", "i", "red").stdout


def test_expand_scores_a_passage_with_its_like_in_another_language(docs):
    metasearch("index", "docs", "--encoder=tiny", "--chunk-tokens=12", "-o", "faq.index")
    asked = ("search", "faq.index", EN[0], "--json")
    plain, moved = (json.loads(metasearch(*asked, *more).stdout)["hits"] for more in ([], ["--expand"]))
    assert {hit["text"] for hit in moved} == {hit["text"] for hit in plain}
    assert {hit["score"] for hit in moved} != {hit["score"] for hit in plain}
    assert list(docs.parent.glob("faq.index/expansion/*.json"))
    assert error(*asked, "--expand", "--language=fr", code=2).startswith("no passage is in")


def test_balance_measures_scores_from_the_best_of_their_language(docs):
    metasearch("index", "docs", "--encoder=tiny", "--chunk-tokens=12", "-o", "faq.index")
    asked = ("search", "faq.index", EN[0], "--json")
    plain, even = (json.loads(metasearch(*asked, *more).stdout)["hits"] for more in ([], ["--balance"]))
    for language in {hit["language"] for hit in plain}:
        before, after = ([hit for hit in hits if hit["language"] == language] for hits in (plain, even))
        assert [hit["text"] for hit in after] == [hit["text"] for hit in before][: len(after)]
        assert after[0]["score"] == pytest.approx(before[0]["score"] / 2)
    one = metasearch(*asked, "--balance", "--language=en")
    assert "balance changes no order: all passages that are searched are in 'en'" in one.stderr
    assert error(*asked, "--balance", "--language=fr", code=2).startswith("no passage is in")


def test_documents_of_one_language_cannot_be_expanded(docs):
    metasearch("index", "docs/en", "--encoder=tiny", "--language=en", "-o", "en.index")
    assert error("search", "en.index", EN[0], "--expand", code=2) == (
        "expansion looks for passages in other languages; here all are in en"
    )


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["index", "docs"], 2, "Missing option '-o'"),
        (["index", "dogs", "-o", "x"], 3, "dogs: cannot be read: No such file or directory. Did you mean 'docs'?"),
        (["index", "docs", "--encoder=minni", "-o", "x"], 6, "unknown encoder 'minni'. Did you mean 'mini'?"),
        (["index", "docs", "--encoder=tiny", "--language=deutsch und so", "-o", "x"], 2, "'deutsch und so'"),
        (["index", "docs", "--encoder=tiny", "--chunk-tokens=9000", "-o", "x"], 2, "length 9000: encoder 'tiny' reads"),
        (["index", "docs", "--encoder=tiny", "--neutral", "-o", "x"], 3, "20 passages in each of two languages"),
        (["index", "docs", "--encoder=tiny", "-o", "docs"], 5, "docs exists and is no index"),
        (["index", "docs", "--chunk-tokens=41", "-o", "faq.index"], 2, "it was made with length 40, not 41"),
        (["index", "docs/de", "-o", "faq.index"], 2, "such as 'docs/en/faq.txt'"),
        (["search", "docs", "x"], 5, "docs is no index: it has no manifest.json"),
        (["search", "faq.index", "  "], 2, "the query is blank"),
        (["search", "faq.index", "\u2066 \u00ad\u200d\ufeff"], 2, "the query is blank"),
        (["search", "nowhere", "x"], 5, "nowhere does not exist"),
        (["search", "faq.index", "x", "--language=dee"], 2, "no passage is in language 'dee'. Did you mean 'de'?"),
        (["search", "faq.index", "x", "--encoder=mini"], 6, "its vectors are of encoder 'tiny'"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_code(index, args, code, says):
    assert says in error(*args, code=code)


def test_vectors_of_two_encoders_in_an_index_are_refused_by_both_names(docs, index):
    said = error("index", "docs", "--encoder=mini", "-o", "faq.index", code=6)
    assert re.search(r"its vectors are of encoder 'tiny' .* not of 'mini' \(", said)


def test_an_encoder_that_is_gone_is_named_with_the_way_on(docs, index, tmp_path):
    from metasearch.encoders.builtin import tiny

    tiny.build().save(tmp_path / "model")
    metasearch("index", "docs", "--encoder=model", "-o", "own")
    (tmp_path / "model").rename(tmp_path / "moved")
    assert "say with --encoder where it is" in error("search", "own", "key", code=6)
    assert "docs/en/faq.txt:1" in metasearch("search", "own", "key", "--encoder=moved").stdout


def test_everything_that_is_left_out_is_named(docs):
    for name in ("empty.txt", "void.txt", "page1.txt", "page2.txt"):
        (docs / name).write_text("", encoding="utf-8")
    said = metasearch("index", "docs", "--encoder=tiny", "-o", "i").stderr
    for name in ("empty.txt", "void.txt", "page1.txt", "page2.txt"):
        assert f"docs/{name}: left out: the file is empty" in said


def test_a_call_that_is_stopped_says_what_it_keeps(docs, monkeypatch):
    encode = Encoder.encode

    def stopping(self, texts, *rest, **keys):
        if "Stop." in texts:
            raise KeyboardInterrupt
        return encode(self, texts, *rest, **keys)

    (docs / "rows.en.jsonl").write_text('{"text": "One."}\n{"text": "Stop."}\n', encoding="utf-8")
    monkeypatch.setattr(Encoder, "encode", stopping)
    monkeypatch.setattr("metasearch.retrieval.search.update._AT_ONCE", 1)
    said = error("index", "docs", "--encoder=tiny", "-o", "i", code=130)
    assert said == "stopped; 3 of 4 new texts are encoded and kept, and the same command goes on"


def test_joiners_are_shown_and_what_commands_a_terminal_or_turns_its_writing_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "می\u200cخواهم so\u00adft \x1b[31mred \u202eturned\u2066"
    (tmp_path / "faq.jsonl").write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    metasearch("index", "faq.jsonl", "--encoder=tiny", "--language=fa", "-o", "faq.index")
    shown = metasearch("search", "faq.index", "red").stdout
    assert "می\u200cخواهم so\u00adft [31mred turned" in " ".join(shown.split(" ")).replace("  ", " ")
    assert not {"\x1b", "\u202e", "\u2066"} & set(shown)


def test_a_typed_query_that_is_not_utf_8_is_refused(index, monkeypatch):
    monkeypatch.setattr("metasearch.cli.search._asked_queries", search._typed)
    assert metasearch("search", "faq.index", input=b"key\n\n").exit_code == 0
    assert error("search", "faq.index", input=b"k\xffy\n", code=3) == "what was typed is not UTF-8: byte 0xff"


def test_a_search_keeps_no_tokens_of_the_queries_before(index, monkeypatch):
    kept = []
    forget = Encoder.forget
    monkeypatch.setattr(Encoder, "forget", lambda encoder: kept.append(len(encoder._tokens)) or forget(encoder))
    metasearch("search", "faq.index", input="\n".join(f"query {i}" for i in range(300)))
    assert len(kept) == 5  # lists of 64, the last one shorter
    assert max(kept) <= 64 + len(DE + EN)
