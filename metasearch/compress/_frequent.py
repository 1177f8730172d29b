"""Chooses the tokens of a smaller vocabulary by how often texts have them."""

from collections.abc import Iterable, Mapping

from metasearch.compress._tokenizer_json import Spec, alphabet, needed
from metasearch.errors import ConfigError


def most_frequent(spec: Spec, names: set[str], counts: Mapping[str, int], always: Iterable[str], size: int) -> set[str]:
    """Return as many tokens as there may be: what always stays, what words can be spelt with, and the most frequent.

    Args:
        spec: JSON of the tokenizer.
        names: tokens of a vocabulary without a limit; those that no text has, such as other characters, come last.
        counts: token → how often the texts have it.
        always: special tokens.
        size: of the vocabulary, at most.

    Raises:
        ConfigError: what always stays and the characters are more than that.
    """
    # Without its characters a word would be unknown, not longer.
    spelt = {*always, *alphabet(spec, {*always, *counts})}
    least = needed(spec, spelt, scripts=False)
    if len(least) > size:
        what = "special tokens and the characters of the texts"
        raise ConfigError(f"vocabulary {size}: {what} are {len(least):,} tokens; keep as many or more")
    ranked = sorted(names - least, key=lambda name: (-counts.get(name, 0), name))
    # A token may need others, such as the parts that BPE makes it of, so that their number is found by trying.
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high + 1) // 2
        if len(needed(spec, spelt | set(ranked[:middle]), scripts=False)) <= size:
            low = middle
        else:
            high = middle - 1
    return needed(spec, spelt | set(ranked[:low]), scripts=False)
