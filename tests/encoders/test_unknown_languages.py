"""Languages that an encoder does not know are found by what its tokenizer makes of their letters."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import metasearch as ms
from metasearch.encoders.unknown_languages import _reason, warn_of_unknown, warn_of_unreadable
from metasearch.errors import Interrupted, MetasearchError
from metasearch.pipelines.folders import examine_index
from metasearch.runs.callbacks import Callback

JAPANESE = "鍵は玄関のマットの下にあります。扉の横の箱も見てください。" * 3
GERMAN = "Der Schlüssel liegt unter der Matte vor der Haustür. " * 3


def tokenizer_of(words):
    """Return a tokenizer that knows some words, and nothing else."""
    made = Tokenizer(models.WordLevel({"[UNK]": 0, **{word: i for i, word in enumerate(words, 1)}}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("aaaa bbbb " * 10, ["aaaa", "bbbb"], ""),
        # 10 words of 4 letters are known, 10 are not.
        ("aaaa bbbb " * 10, ["aaaa"], "50% of its letters are unknown to the tokenizer, or several tokens each"),
        # A token for each second letter is the limit; 15 tokens on 27 letters are above it.
        ("aa " * 30, ["aa"], ""),
        ("aaa a " * 15, ["aaa", "a"], ""),
        ("aa aa a " * 12, ["aa", "a"], "the tokenizer spells it, with 0.60 tokens a letter"),
        # Where a character is a word, a token for each is no spelling.
        ("水 火 " * 30, ["水", "火"], ""),
        # 3 characters and 4 letters may have 3 × 1 + 4 × 0.5 = 5 tokens; 2 and 5 may have 4.5.
        ("水 火 木 aa bb " * 10, ["水", "火", "木", "aa", "bb"], ""),
        ("水 火 a bb c d " * 10, [*"水火acd", "bb"], "the tokenizer spells it, with 0.86 tokens a letter"),
        # Digits are no letters, and fewer than 20 letters tell nothing.
        ("1234 aaaa " * 20, ["aaaa"], ""),
        ("aaaa " * 4, ["bbbb"], ""),
    ],
)
def test_a_language_is_known_by_its_letters(text, words, reason):
    assert _reason(tokenizer_of(words), [text]) == reason


def test_a_query_whose_letters_are_mostly_unknown_is_named(caplog):
    encoder = ms.load_encoder("mini")
    for known in ("Wo ist die 鍵?", "Where is the key?", "12 + 30"):
        warn_of_unreadable(encoder, known)
    assert caplog.messages == []
    warn_of_unreadable(encoder, "鍵はどこですか")  # 7 letters
    assert caplog.messages == [
        "the hits mean little: encoder 'mini' cannot read 7 of the 7 letters of the query; ask in another script, or "
        "make the index with an encoder that was trained on it"
    ]


@pytest.mark.parametrize("name", ["mini", "mini-e5"])
def test_built_in_encoders_of_twelve_languages_do_not_know_japanese(name, caplog):
    reasons = warn_of_unknown(ms.load_encoder(name), [("ja", JAPANESE), ("de", GERMAN)])
    assert set(reasons) == {"ja"}
    assert caplog.messages == [
        f"encoder '{name}' hardly knows language 'ja': 100% of its letters are unknown to the tokenizer, or several "
        "tokens each; --encoder e5 knows it"
    ]


@pytest.mark.slow  # 118 million weights are opened
def test_the_large_encoder_knows_both_and_no_invented_script():
    try:
        encoder = ms.load_encoder("e5")
    except MetasearchError as error:
        pytest.skip(str(error))
    assert warn_of_unknown(encoder, [("ja", JAPANESE), ("de", GERMAN)]) == {}
    assert set(warn_of_unknown(encoder, [("got", "𐌲𐌰𐌷𐌰𐌿𐍃𐌾𐌰𐌽 " * 20)])) == {"got"}


class Stopping(Callback):
    """Ends a run as Ctrl-C does once all texts are encoded."""

    def on_encode(self, what, done, total):
        if done == total:
            raise KeyboardInterrupt


def test_an_index_that_was_stopped_and_goes_on_keeps_the_reasons_for_texts_that_have_vectors(tmp_path):
    (tmp_path / "faq.ja.txt").write_text(JAPANESE, encoding="utf-8")
    with pytest.raises(Interrupted, match="of 1 new texts"):
        ms.index_documents([tmp_path / "faq.ja.txt"], tmp_path / "index", encoder="mini", callback=Stopping())
    ms.index_documents([tmp_path / "faq.ja.txt"], tmp_path / "index", encoder="mini")
    assert "language ja" in [each.about for each in examine_index(tmp_path / "index").findings]


def test_an_index_keeps_the_reasons_until_the_language_is_gone(tmp_path, caplog):
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    (docs / "faq.de.txt").write_text(GERMAN, encoding="utf-8")
    (docs / "faq.ja.txt").write_text(JAPANESE, encoding="utf-8")
    ms.index_documents([docs], index, encoder="mini")
    assert sum("hardly knows language 'ja'" in each for each in caplog.messages) == 1
    finding = [(each.about, each.state) for each in examine_index(index).findings]
    assert finding == [("files", "ok"), ("search", "ok"), ("language ja", "note")]
    (docs / "more.de.txt").write_text(GERMAN, encoding="utf-8")
    caplog.clear()
    ms.index_documents([docs], index)
    assert "hardly" not in caplog.text
    assert set(ms.open_searcher(index).store.unknown) == {"ja"}
    (docs / "faq.ja.txt").unlink()
    ms.index_documents([docs], index)
    assert ms.open_searcher(index).store.unknown == {}
