"""Passages are whole sentences, few and even; nothing of a text is lost, and none is longer than the limit."""

import json
import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.passages import shown

SENTENCES = "One is here. Two is there. Three is gone."


def words(text):
    """Count words, as an encoder counts tokens."""
    return len(text.split())


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        (SENTENCES, 6, ["One is here. Two is there.", "Three is gone."]),
        # 4, 2 and 2 words: as many as fit would leave 8 and 2 of these 10.
        ("A b c d. E f. G h. I j.", 8, ["A b c d. E f.", "G h. I j."]),
        # 7 and 5 words are as even as 5 and 7; a line that ends no sentence belongs to what follows.
        ("A b c d e.\n\nOn keys\n\nF g h i j.", 8, ["A b c d e.", "On keys\n\nF g h i j."]),
        # A cut in a sentence would be more even than 6 words and 1 word.
        ("A b c d e f. G.", 6, ["A b c d e f.", "G."]),
        # Sentences that are too long: 12 words are cut into 6 and 6, not into 8 and 4.
        ("a b c d e f g h i j k l", 8, ["a b c d e f", "g h i j k l"]),
    ],
)
def test_passages_are_even_as_far_as_sentences_allow(text, limit, expected, tmp_path):
    assert [passage for _, passage in shown(tmp_path / "a.txt", text, limit=limit, length=words)] == expected


def test_a_heading_stays_with_its_text_and_code_is_whole(tmp_path):
    page = "<p>A b c d e.<h2>Why so?</h2><p>F g h i j."
    expected = ["A b c d e.", "Why so?\n\nF g h i j."]
    assert [text for _, text in shown(tmp_path / "a.html", page, limit=8, length=words)] == expected
    # 5 and 9 words, though 7 and 7 would be even.
    parts = ["A b c d e.", "```\nf g\n\nh i j k l\n```"]
    assert [text for _, text in shown(tmp_path / "a.md", "\n\n".join(parts), limit=10, length=words)] == parts


@given(counts=st.lists(st.integers(1, 5), min_size=1, max_size=200), between=st.sampled_from([" ", "\n", "\n\n"]))
def test_no_passage_is_shorter_than_half_of_the_longest(counts, between, tmp_path):
    """Of sentences that are an eighth of a passage at most, whatever their lengths."""
    text = between.join(" ".join(["Word", *["word"] * (count - 1)]) + "." for count in counts)
    lengths = [words(passage) for _, passage in shown(tmp_path / "a.txt", text, limit=40, length=words)]
    assert sum(lengths) == sum(counts)
    assert max(lengths) <= min(40, 2 * min(lengths))
    assert len(lengths) == 1 or sum(counts) > 40


def test_a_title_takes_nothing_of_the_overlap(tmp_path):
    """Of rows with titles, as of an encoder that reads a prompt with every passage; the overlap is of the text."""

    def offsets(title, overlap):
        row = json.dumps({"title": title, "text": SENTENCES})
        settings = {"limit": 6 + len(title.split()), "overlap": overlap, "length": words}
        return [text.removeprefix(f"{title}\n") for _, text in shown(tmp_path / "a.jsonl", row, **settings)]

    expected = ["One is here. Two is there.", "Two is there. Three is gone."]
    assert offsets("", 3) == offsets("A short title", 3) == expected
    assert offsets("A short title", 0) == [expected[0], "Three is gone."]


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        (
            "北京是中国的首都。上海是最大的城市！你喜欢哪里？",
            9,
            ["北京是中国的首都。", "上海是最大的城市！", "你喜欢哪里？"],
        ),
        ("दिल्ली राजधानी है। यह शहर है।", 20, ["दिल्ली राजधानी है।", "यह शहर है।"]),
        ("أين المفتاح؟ تحت السجادة.", 14, ["أين المفتاح؟", "تحت السجادة."]),
        # A semicolon asks: by the rules of Unicode alone the first cut would be after the third word or the fifth.
        ("Πού είναι το κλειδί; Κάτω από το χαλί.", 24, ["Πού είναι το κλειδί;", "Κάτω από το χαλί."]),
        # A space ends a phrase, and other words have none between them.
        ("ฉันชอบกินข้าวผัด เขาชอบดื่มกาแฟร้อน", 22, ["ฉันชอบกินข้าวผัด", "เขาชอบดื่มกาแฟร้อน"]),
    ],
    ids=["Chinese", "Hindi", "Arabic", "Greek", "Thai"],
)
def test_each_script_has_its_own_ends_of_sentences(text, limit, expected, tmp_path):
    assert [passage for _, passage in shown(tmp_path / "a.txt", text, limit=limit)] == expected
    assert [passage for _, passage in shown(tmp_path / "a.txt", text, limit=limit, length=lambda t: len(t))] == expected


def test_a_word_that_is_longer_than_a_passage_is_cut(tmp_path):
    assert [text for _, text in shown(tmp_path / "a.txt", "an abcdefghij.", limit=4)] == ["an", "abcd", "efgh", "ij."]


@pytest.mark.parametrize("measure", [len, lambda text: len(text)], ids=["characters", "a function"])
def test_a_title_counts_and_stands_before_each_passage(measure, tmp_path):
    row = '{"title": "Keys", "text": "One is here. Two is there."}'
    expected = ["Keys\nOne is here.", "Keys\nTwo is there."]
    assert [t for _, t in shown(tmp_path / "a.jsonl", row, limit=20, length=measure)] == expected
    plain = [text.removeprefix("Keys\n") for text in expected]
    assert [t for _, t in shown(tmp_path / "a.jsonl", row, limit=15, length=measure, titles=False)] == plain


def test_a_title_longer_than_half_a_passage_stands_before_the_first_alone_and_that_is_said(tmp_path, caplog):
    """At 40 characters, a title of 19 with its line end is half of a passage."""
    for title, rest in (("x" * 19, f"{'x' * 19}\nAnother door."), ("x" * 20, "Another door.")):
        row = json.dumps({"title": title, "text": "Another lamp.\n\nAnother door."})
        assert shown(tmp_path / "a.jsonl", row, limit=40) == [(1, f"{title}\nAnother lamp."), (1, rest)]
    assert caplog.text.count("titles longer than half a passage, in the first passage alone: 1") == 1


def test_words_are_counted_one_by_one_and_each_once_as_far_as_that_is_right(tmp_path):
    asked = []

    def tokens(text):
        asked.append(text)
        return 2 + len(text.split())

    text = "One two. " * 200
    passages = [passage for _, passage in shown(tmp_path / "a.txt", text, limit=10, length=tokens)]
    assert passages == [" ".join(["One two."] * 4)] * 50
    # Nothing, each distinct word, and each passage to be sure.
    assert asked == ["", "One", "two.", *passages]


def test_a_text_of_many_blocks_is_read_whole_with_its_lines(tmp_path):
    lines = [f"word{number} " * 30 for number in range(400)]
    assert sum(map(len, lines)) > 8192 * 4
    passages = shown(tmp_path / "a.txt", "\n".join(lines), limit=300)
    assert " ".join(text for _, text in passages).split() == " ".join(lines).split()
    assert all(text.split()[0] in lines[line - 1] for line, text in passages)


LETTERS = st.sampled_from(
    [*"abcdeéß. \n\n\t;,!?", "ไทย", "กิน ", "北京。", "हिन्दी ", "; ", "Πού;", " \u200b", "👩‍👧", "\u2028"]
)
TEXTS = st.lists(LETTERS, max_size=60).map("".join)
LENGTHS = {
    "characters": len,
    "words and letters": lambda text: len(text.split()) + len(text),
    "bytes": lambda t: len(t.encode()),
}


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
@given(text=TEXTS, limit=st.integers(18, 40), overlap=st.integers(0, 8), length=st.sampled_from([*LENGTHS.values()]))
def test_no_character_is_lost_no_passage_too_long_and_every_line_right(
    name, text, limit, overlap, length, tmp_path, caplog
):
    # A first line, since front matter and an empty file are others' to test.
    text = f"begin\n{text}"
    caplog.set_level(logging.CRITICAL)
    passages = shown(tmp_path / name, text, limit=limit, overlap=overlap, length=length)
    assert all(length(passage) <= limit for _, passage in passages)
    read = re.sub(r"\s", "", "".join(passage for _, passage in passages))
    if name == "a.txt":
        # In order, and with an overlap some of it twice; what shows nothing may be missing at a passage's end.
        left = iter(read)
        assert all(c in left for c in re.sub(r"[\s\u200b]", "", text))
    lines = text.split("\n")
    for line, passage in passages:
        assert passage.split()[0][:1] in lines[line - 1]
        assert passage.lstrip(" \t\u200b").split("\n")[0].strip() in lines[line - 1]
