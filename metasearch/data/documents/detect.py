"""Language detection with py3langid."""

from collections import Counter
from collections.abc import Callable, Sequence

from metasearch.config.languages import UNKNOWN, is_known, normalise_tag, primary_language
from metasearch.errors import ConfigError, nearest

_FREQUENT = 0.05
"""Share of the texts above which a detected language is one of the texts, not a mistake about a short one."""


def detector(languages: Sequence[str] = ()) -> Callable[[str], str]:
    """Return a function from text to language tag, the likeliest of 97.

    Short texts are often taken for another language; fewer languages to choose from help.
    """
    from py3langid import langid  # takes a while, and few commands detect

    identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    known = set(map(str, identifier.labels))
    chosen = list(dict.fromkeys(primary_language(normalise_tag(language)) for language in languages))
    for language in chosen:
        if language not in known:
            raise ConfigError(f"py3langid cannot detect the language '{language}'.{nearest(language, known)}")
    if chosen:
        identifier.set_languages(chosen)
    # Of digits and marks alone it says that they are in no language.
    return lambda text: str(identifier.classify(text)[0]).replace("zxx", UNKNOWN)


def detect_all(texts: Sequence[str], languages: Sequence[str]) -> dict[str, str]:
    """Return each text's language.

    Without tags to choose from, the languages of at least one text in twenty and the most frequent one are detected
    first, and then chosen from.
    """
    distinct = list(dict.fromkeys(texts))
    if not languages:
        counts = Counter(filter(is_known, map(detector(), distinct))).most_common()
        languages = [tag for i, (tag, count) in enumerate(counts) if i == 0 or count > _FREQUENT * len(distinct)]
    return dict(zip(distinct, map(detector(languages), distinct), strict=True))
