"""Finds languages that an encoder's tokenizer does not know, in texts themselves.

Of a language that a tokenizer was made for, less than 1 % of the letters are unknown or several tokens each, and a
letter takes at most 0.40 tokens, or 0.64 where a character is a word or a syllable: `e5`, 37 languages of Tatoeba.
"""

import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Tokenizer

from metasearch.encoders.builtin import e5
from metasearch.encoders.encoder import Encoder

log = logging.getLogger(__name__)

TEXTS = 100
"""Texts of a language that tell enough."""
_CHARACTERS = 500
"""Characters of a text that are read."""
_LETTERS = 20
"""Letters of a language below which nothing is said."""
_LOST, _TOKENS, _TOKENS_BY_CHARACTER = 0.1, 0.5, 1.0
"""Share of lost letters, and tokens a letter and such a character, above which a language is hardly known."""
_UNKNOWN, _SPACES = ("<unk>", "[UNK]"), ("▁", "Ġ")
_BY_CHARACTER = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")
"""First word of the names of characters that are a word or a syllable each."""


def warn_of_unknown(encoder: Encoder, texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Log a line for each language that an encoder hardly knows, with an encoder that knows it; return the reasons.

    Args:
        encoder: with a fast tokenizer; of others nothing is said.
        texts: language tags and texts; the first 100 texts of a language are read.

    Returns:
        Language tag → reason, such as `98 % of its letters are unknown to the tokenizer`.
    """
    tokenizer, read = encoder.reader.fast_tokenizer, dict[str, list[str]]()
    for tag, text in texts:
        some = read.setdefault(tag, [])
        if len(some) < TEXTS:
            some.append(text)
    found = {tag: _reason(tokenizer, some) for tag, some in read.items()} if tokenizer else {}
    reasons = {tag: reason for tag, reason in found.items() if reason}
    for tag, reason in sorted(reasons.items()):
        known = tag.partition("-")[0] in e5.LANGUAGES.split() and encoder.name != "e5"
        other = "--encoder e5 knows it" if known else "choose an encoder that was trained on it"
        log.warning("encoder '%s' hardly knows language '%s': %s; %s", encoder.name, tag, reason, other)
    return reasons


def warn_of_unreadable(encoder: Encoder, query: str) -> None:
    """Log a line for a query whose letters are mostly unknown to an encoder, so that its hits mean nothing."""
    query = query[:_CHARACTERS]
    tokenizer = encoder.reader.tokenizer_of([query])
    letters, lost, _ = _read(tokenizer, query) if tokenizer else ([], 0, 0)
    if lost > len(letters) / 2:
        log.warning(
            "the hits mean little: encoder '%s' cannot read %d of the %d letters of the query; ask in another script, "
            "or make the index with an encoder that was trained on it", encoder.name, lost, len(letters),
        )  # fmt: skip


def _reason(tokenizer: Tokenizer, texts: Sequence[str]) -> str:
    """Return why a tokenizer hardly knows the language of texts; empty if it does."""
    letters = lost = tokens = by_character = 0
    for text in texts:
        own = text[:_CHARACTERS]
        at, without, read = _read(tokenizer, own)
        letters, lost, tokens = letters + len(at), lost + without, tokens + read
        by_character += sum(unicodedata.name(own[i], "").startswith(_BY_CHARACTER) for i in at)
    if letters < _LETTERS:
        return ""
    if lost > _LOST * letters:
        return f"{lost / letters:.0%} of its letters are unknown to the tokenizer, or several tokens each"
    # Each letter has the limit of its script: manuals in Chinese have many words and commands in Latin letters.
    if tokens > _TOKENS * (letters - by_character) + _TOKENS_BY_CHARACTER * by_character:
        return f"the tokenizer spells it, with {tokens / letters:.2f} tokens a letter"
    return ""


def _read(tokenizer: Tokenizer, text: str) -> tuple[list[int], int, int]:
    """Return the places of letters in a text, how many of them are lost, and the number of tokens with a letter."""
    spans = _spans(tokenizer, text)
    there = [unicodedata.category(each)[0] in "LM" for each in text]
    times = Counter(i for _, start, end in spans for i in range(start, end))
    gone = {i for known, start, end in spans if not known for i in range(start, end)}
    at = [i for i, letter in enumerate(there) if letter]
    lost = sum(i in gone or times[i] > 1 for i in at)
    return at, lost, sum(any(there[start:end]) for _, start, end in spans)


def _spans(tokenizer: Tokenizer, text: str) -> list[tuple[bool, int, int]]:
    """Return whether each token of a text is known, and its first and last characters; without marks of a space."""
    found: Any = tokenizer.encode(text, add_special_tokens=False)
    # Not the tokens themselves: an unknown one of a Unigram model is shown as its text.
    unknown = {tokenizer.token_to_id(token) for token in _UNKNOWN}
    tokens = zip(found.ids, found.tokens, found.offsets, strict=True)
    return [(number not in unknown, *span) for number, token, span in tokens if token not in _SPACES]
