"""Where the language of a passage comes from, in order; and its detection, which is asked for alone."""

import pytest

from helpers.passages import passages_of
from metasearch.data.documents.languages import detector
from metasearch.errors import ConfigError

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


@pytest.mark.parametrize("languages", [(), ("en", "de"), ("de",)])
def test_a_text_that_tells_no_language_is_undetermined(languages):
    tell = detector(languages)
    assert {text: tell(text) for text in ["OK", "XL", "the", "???", "1. 2.", "A4", ""]} == dict.fromkeys(
        ["OK", "XL", "the", "???", "1. 2.", "A4", ""], "und"
    )


def test_detection_gives_canonical_tags_and_takes_any_code():
    text = "Saan nakalagay ang susi ng aking silid? Hindi ko ito makita kahit saan."
    assert [detector(chosen)(text) for chosen in ([], ["tl", "eng"], ["fil", "en"])] == ["fil"] * 3
    assert detector(["nb", "deu"])("Hvor er nøkkelen til rommet mitt?") == "no"


@pytest.mark.slow
def test_the_language_of_a_text_is_detected():
    tell = detector()
    assert tell("Der Schlüssel liegt unter der Matte.") == "de"
    assert tell("กุญแจอยู่ใต้พรม") == "th"
    few = detector(["el", "tr"])
    assert few("Der Schlüssel liegt unter der Matte.") == "tr"
    with pytest.raises(ConfigError, match=r"cannot detect the language 'dee'\. Did you mean 'de'"):
        detector(["tr", "dee"])
