"""Chooses the tokens of a smaller vocabulary by how often texts have them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from metasearch.compress._tokenizer_json import Spec, alphabet, needed, numbers
from metasearch.errors import ConfigError


def most_frequent(
    spec: Spec, names: set[str], always: Iterable[str], tokens: Iterable[Sequence[int]], size: int
) -> set[str]:
    """Return as many tokens as there may be: those that are always kept, all characters, and the most frequent others.

    Args:
        spec: JSON of the tokenizer.
        names: tokens that a vocabulary without a limit has, of which some are chosen.
        always: special tokens.
        tokens: numbers of the tokens of each text.
        size: of the vocabulary, at most.

    Raises:
        ConfigError: what is always kept is more than that.
    """
    if len(names) <= size:
        return names
    old = numbers(spec)
    counts = Counter(number for row in tokens for number in row)
    # Without its characters a word would be unknown, not longer.
    least = needed(spec, {*always, *alphabet(spec, names)})
    if len(least) > size:
        what = "the characters of the texts, and what stays always,"
        raise ConfigError(f"vocabulary {size}: {what} are {len(least):,} tokens; keep as many or more")
    ranked = sorted(names - least, key=lambda name: (-counts[old[name]], old[name]))
    # A token may need others, such as the parts that BPE makes it of, so that their number is found by trying.
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high + 1) // 2
        if len(needed(spec, least | set(ranked[:middle]))) <= size:
            low = middle
        else:
            high = middle - 1
    return needed(spec, least | set(ranked[:low]))
