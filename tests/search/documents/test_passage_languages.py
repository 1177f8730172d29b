"""Where the language of a passage comes from, in order; and its detection, which is asked for alone."""

import json

import pytest

from helpers.passages import passages_of
from metasearch.data.languages import detectable, detector
from metasearch.errors import ConfigError
from metasearch.search.settings import IndexSettings

ROW = '{"text": "a", "language": "ar"}'
BARE = '{"text": "a"}'


@pytest.mark.parametrize(
    ("name", "content", "asked", "language"),
    [
        ("tr/a.de.jsonl", ROW, {"language": "el"}, "ar"),
        ("docs/a.de.jsonl", BARE, {"language": "el"}, "de"),
        ("tr/a.de.jsonl", BARE, {"language": "el"}, "de"),
        ("tr/a-de.jsonl", BARE, {"language": "el"}, "tr"),
        ("tr/a.jsonl", BARE, {"language": "el"}, "tr"),
        ("docs/a.jsonl", BARE, {"language": "el"}, "el"),
        ("tr/a.de.jsonl", BARE, {"language": "el", "names": False}, "el"),
        ("docs/a.jsonl", BARE, {}, "und"),
        ("docs/a.jsonl", '{"text": "a", "language": "und"}', {"language": "el"}, "el"),
        ("docs/a.jsonl", BARE, {"detect": {"a": "th"}.get}, "th"),
        ("docs/a.jsonl", BARE, {"detect": {"a": "th"}.get, "language": "el"}, "el"),
    ],
)
def test_the_first_that_tells_a_language_is_believed(name, content, asked, language, tmp_path):
    (passage,) = passages_of(tmp_path / name, content, **asked)
    assert passage.language == language


CLUES = {"Schlüssel": "de", "key": "en", "chave": "pt"}
SEES = {"detect": lambda text: CLUES.get(text, "und"), "detectable": frozenset(["de", "en", "pt"])}


@pytest.mark.parametrize(
    ("text", "stated", "language"),
    [
        ("key", "de", "en"),
        ("Schlüssel", "de-AT", "de-AT"),
        ("chave", "pt-BR", "pt-BR"),
        ("chave", "de-AT", "pt"),
        ("key", "hi", "hi"),
        ("OK", "de", "de"),
        ("OK", "", "und"),
        ("key", "", "en"),
    ],
)
def test_detection_overrides_what_documents_state_if_it_can_tell(text, stated, language, tmp_path):
    row = json.dumps({"text": text, "language": stated})
    (passage,) = passages_of(tmp_path / "a.jsonl", row, detect_always=True, **SEES)
    assert passage.language == language
    (passage,) = passages_of(tmp_path / "a.jsonl", row, **SEES)
    assert passage.language == (stated or language)


@pytest.mark.parametrize(
    ("texts", "always", "says"),
    [
        (["key"] * 4 + ["Schlüssel"] * 8, False, "12 passages have the language de, but 4 of them look like en 4"),
        (["key"] * 4 + ["Schlüssel"] * 9, False, None),
        (["key"] * 3 + ["chave"] * 2 + ["OK"] * 90 + ["Schlüssel"] * 4, False, None),
        (["key"] * 6 + ["chave"] * 3 + ["OK"] * 90, False, None),
        (["key"] * 6 + ["chave"] * 4, False, "10 passages have the language de, but 10 of them look like en 6, pt 4"),
        (["key"] + ["Schlüssel"] * 99, True, "100 passages have the language de, but 1 of them look like en 1"),
        (["Schlüssel"] * 99, True, None),
    ],
)
def test_a_line_says_where_texts_and_stated_languages_disagree(texts, always, says, tmp_path, caplog):
    rows = "".join(json.dumps({"text": text, "language": "de"}) + "\n" for text in texts)
    passages_of(tmp_path / "a.jsonl", rows, detect_always=always, **SEES)
    if says:
        says += "; detection decides" if always else "; if it is right, use --detect always,de,en"
        assert caplog.messages[0].startswith(says)
    assert len(caplog.messages) == bool(says)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["all"], "all"),
        (["DE", "en"], ("de", "en")),
        (["always"], ("always",)),
        (["always", "all"], ("always",)),
        (["en", "always", "de"], ("always", "en", "de")),
    ],
)
def test_always_may_stand_among_the_languages(given, kept):
    assert IndexSettings(detect=given).detect == kept
    assert IndexSettings(**json.loads(IndexSettings(detect=given).model_dump_json())).detect == kept


@pytest.mark.parametrize("languages", [(), ("en", "de"), ("de",)])
def test_a_text_that_tells_no_language_is_undetermined(languages):
    assert {*map(detector(languages), ["OK", "XL", "the", "???", "1. 2.", "A4", ""])} == {"und"}


def test_detection_gives_canonical_tags_and_takes_any_code():
    text = "Saan nakalagay ang susi ng aking silid? Hindi ko ito makita kahit saan."
    assert [detector(chosen)(text) for chosen in ([], ["tl", "eng"], ["fil", "en"])] == ["fil"] * 3
    assert detector(["nb", "deu"])("Hvor er nøkkelen til rommet mitt?") == "no"


@pytest.mark.slow
def test_the_language_of_a_text_is_detected():
    tell = detector()
    assert tell("Der Schlüssel liegt unter der Matte.") == "de"
    assert tell("กุญแจอยู่ใต้พรม") == "th"
    assert {"de", "th", "hi"} < detectable()
    assert detectable(["el", "pt-BR"]) == {"el", "pt"}
    few = detector(["el", "tr"])
    assert few("Der Schlüssel liegt unter der Matte.") == "tr"
    with pytest.raises(ConfigError, match=r"cannot detect the language 'dee'\. Did you mean 'de'\?") as caught:
        detector(["tr", "dee"])
    known = str(caught.value).partition("Known: ")[2].rstrip(".").split(", ")
    assert known == sorted(detectable())
    assert detectable().isdisjoint({"und", "zxx"})
