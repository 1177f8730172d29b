"""Tokens per word and per character: they determine input length, and so time."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from transformers import PreTrainedTokenizerBase

from metasearch.compress._train_pieces import BYTES
from metasearch.data.formats.blank import remove_invisible

_BATCH = 1000


@dataclass(frozen=True)
class Fertility:
    """Counts over texts without special tokens; `spelt` are tokens that are single bytes of rare characters."""

    words: int
    characters: int
    tokens: int
    spelt: int

    @property
    def per_word(self) -> float:
        """Tokens a word."""
        return self.tokens / self.words

    @property
    def per_character(self) -> float:
        """Tokens a character."""
        return self.tokens / self.characters

    @property
    def spelt_share(self) -> float:
        """Share of tokens that are single bytes."""
        return self.spelt / self.tokens if self.tokens else 0.0


def fertility(tokenizer: PreTrainedTokenizerBase, texts: Iterable[str]) -> Fertility:
    """Return the counts over texts; at least one text must not be blank."""
    byte_ids = {number for name, number in tokenizer.get_vocab().items() if name in BYTES}
    words = characters = tokens = spelt = 0
    remaining = map(remove_invisible, texts)
    while batch := list(islice(remaining, _BATCH)):
        parts = [word for text in batch for word in text.split()]
        words += len(parts)
        characters += sum(map(len, parts))
        # Whole texts are counted, so no limit, and no warning about one.
        for ids in tokenizer(batch, add_special_tokens=False, verbose=False)["input_ids"]:
            tokens += len(ids)
            spelt += sum(number in byte_ids for number in ids)
    return Fertility(words, characters, tokens, spelt)
