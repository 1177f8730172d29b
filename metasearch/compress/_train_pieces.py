"""Learn vocabulary pieces from texts, deterministically.

The trainer of unigram pieces visits words in an order that differs from process to process, and so do the last digits
of its sums. So it is asked for more pieces, scores are rounded, and the best pieces are taken by score and code point.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Literal

from tokenizers import Tokenizer, models, trainers

Kind = Literal["unigram", "bpe"]

BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}
"""Names of the pieces that are single bytes, with the byte of each; they spell characters without a piece."""

COVERAGE = 0.9995
"""Share of all characters that get a piece of their own, as in SentencePiece; the rarest are left to their bytes."""

# Decimals of a score; those behind differ from process to process.
_DIGITS = 4
# What the unigram trainer adds to the lowest score from one missing character to the next.
_STEP = 1e-4
# Substrings that the unigram trainer begins with at most, beside all characters; it then drops the worst of them.
_BEGINNINGS = 1_000_000


def covered(texts: Sequence[str]) -> set[str]:
    """Return the most frequent characters that together cover `COVERAGE` of the texts; spaces excluded."""
    counts = Counter[str]()
    for text in texts:
        counts.update(text)
    del counts[" "]
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    before = accumulate((counts[character] for character in ranked), initial=0)
    enough = COVERAGE * counts.total()
    return {character for character, mass in zip(ranked, before, strict=False) if mass < enough}


def unigram(blank: Tokenizer, texts: Sequence[str], count: int, needed: Iterable[str]) -> list[tuple[str, float]]:
    """Return at most `count` pieces and their log probabilities, best first; every character is one of them.

    The blank tokenizer has the normaliser and the pre-tokeniser. Needed characters may be missing from the texts.
    """
    blank.model = models.Unigram()
    # The trainer takes memory for as many as are asked for; more than it begins with it never finds.
    wanted = min(count + max(count // 50, 16), _BEGINNINGS + len(set().union(*texts)) + 1)
    blank.train_from_iterator(texts, trainers.UnigramTrainer(vocab_size=wanted, show_progress=False))
    learned = [(piece, round(score, _DIGITS)) for piece, score in _model(blank)["vocab"]]
    lowest = min(score for _, score in learned)
    # Characters that the trainer added are scored in an order that varies: all of them get the lowest score.
    ceiling = lowest + _STEP * sum(len(piece) == 1 for piece, _ in learned)
    flat = {piece: lowest if len(piece) == 1 and score <= ceiling else score for piece, score in learned}
    flat = {**dict.fromkeys(needed, lowest), **flat}
    # Characters first, so that `count` cuts off longer pieces only.
    best = sorted(flat.items(), key=lambda item: (len(item[0]) > 1, -item[1], item[0]))[:count]
    return sorted(best, key=lambda item: (-item[1], item[0]))


def bpe(blank: Tokenizer, texts: Sequence[str], count: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Return at most `count` pieces, characters first, and their merges; arguments as in `unigram`."""
    blank.model = models.BPE()
    # The trainer takes memory for as many as are asked for. Characters, with the space before each text, and merges,
    # each of which makes the texts shorter by a symbol, cannot be more than this.
    most = 2 * sum(len(text) + 1 for text in texts)
    blank.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=min(count, most), show_progress=False))
    model = _model(blank)
    return sorted(model["vocab"], key=model["vocab"].__getitem__), [(left, right) for left, right in model["merges"]]


def _model(tokenizer: Tokenizer) -> dict[str, Any]:
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model
