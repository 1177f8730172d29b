"""Lengths of texts: where they are truncated, how long texts are shortened first, and batches of similar length."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from math import ceil

import numpy as np
from numpy.typing import NDArray

from metasearch.config.roles import MaxLength, Role
from metasearch.data.formats.blank import remove_invisible
from metasearch.errors import EncoderError

UNLIMITED = sys.maxsize
"""Length of a role whose texts are read to their end."""

_KINDS: tuple[tuple[Role, ...], ...] = (("question", "candidate"), ("text",))
"""Roles of retrieval, and of similarity and translation."""
_LEAST = 3
"""A word between two special tokens."""


def own_lengths(saved: Mapping[Role, float | None]) -> MaxLength:
    """Return the lengths that a checkpoint was saved with, from role → tokens; `EncoderError` if too short for a word.

    None, infinity, or a number such as the 10³⁰ of tokenizers mean no limit.
    """
    for role, length in saved.items():
        if length is not None and length < _LEAST:
            raise EncoderError(
                f"it reads {length:g} tokens of a {role} (max_seq_length, or {role}'s own length in "
                f"sentence_bert_config.json), special tokens included; a length is at least {_LEAST}"
            )
    return MaxLength(
        **{role: UNLIMITED if length is None or length >= UNLIMITED else int(length) for role, length in saved.items()}
    )


def complete(declared: MaxLength | None, own: MaxLength) -> MaxLength:
    """Return every role's length, from the task's lengths and the checkpoint's.

    There are two kinds of tasks, each with its roles. A role without a declared length gets the longest declared length
    of the other kind, because training read no more. If the task declares none, it gets the checkpoint's.
    """
    given = declared.model_dump(exclude_none=True) if declared else {}
    found: dict[str, int] = {}
    for kind, other in (_KINDS, _KINDS[::-1]):
        elsewhere = max((given[role] for role in other if role in given), default=None)
        here = any(role in given for role in kind)
        for role in kind:
            found[role] = given.get(role) or (None if here else elsewhere) or getattr(own, role)
    return MaxLength(**found)


# Long texts are shortened before tokenization: a tokenizer reads a text to its end before it truncates it.
#
# A shortened text has the same tokens, except for the word at the cut. A margin of tokens keeps that word out.

_CHARACTERS = 8
"""Characters per token at first; twice as many for a text that has too few tokens in them."""
_MARGIN = 16


def shorten(
    texts: Sequence[str], limit: int, left: bool, tokenise: Callable[[list[str], int], Sequence[Sized]]
) -> list[str]:
    """Return texts without invisible characters, shortened as far as they still have more than `limit` tokens.

    `left`: the tokenizer truncates on the left. `tokenise` returns each text's tokens, up to a limit.
    """
    texts = [remove_invisible(text) for text in texts]
    found, wanted = list(texts), limit + _MARGIN
    size = _CHARACTERS * wanted
    long = [i for i, text in enumerate(texts) if len(text) > size]
    while long:
        for i in long:
            found[i] = _cut(texts[i], size, left)
        tokens = tokenise([found[i] for i in long], wanted)
        size *= 2
        short = [i for i, own in zip(long, tokens, strict=True) if len(own) < wanted]
        long = [i for i in short if len(texts[i]) > size]
        for i in set(short) - set(long):
            found[i] = texts[i]
    return found


def _cut(text: str, size: int, left: bool) -> str:
    """Return about `size` characters of a text, up to a white space if there is one in the further half."""
    window = text[-size:] if left else text[:size]
    parts = window.split(None, 1) if left else window.rsplit(None, 1)
    whole = parts[-1 if left else 0] if len(parts) == 2 else ""
    return whole if 2 * len(whole) >= size else window


BATCH_TOKENS = 1024
"""Tokens of a batch on a CPU, padding included: what passes between layers then stays in its caches."""


def batches(lengths: NDArray[np.int64], most: int, tokens: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield start and end of batches for texts sorted by descending length.

    A batch has at most `most` texts, and at most `tokens` tokens, padding included, unless one text has more.
    """
    # A batch begins at every multiple of `most`, so that to encode so many texts at a time changes no batch.
    for start in range(0, len(lengths), most):
        count = min(most, len(lengths) - start)
        parts = ceil(count * max(lengths[start], 1) / tokens) if tokens else 1
        size = ceil(count / parts)
        yield from ((start + i, start + min(i + size, count)) for i in range(0, count, size))


def encode_in_batches(
    lengths: NDArray[np.int64],
    embed: Callable[[list[int]], NDArray[np.float32]],
    most: int,
    tokens: int,
    on_progress: Callable[[int, int], None] | None,
) -> NDArray[np.float32]:
    """Return the vectors `(N, D)` that `embed` gives for the numbers of texts, in batches of similar length.

    `on_progress` hears after each batch how many texts are done, and how many there are.
    """
    # The longest first, so that memory that does not suffice fails at once; a stable sort, so that batches repeat.
    order = np.argsort(-lengths, kind="stable")
    parts = []
    for start, end in batches(lengths[order], most, tokens):
        parts.append(embed(order[start:end].tolist()))
        if on_progress:
            on_progress(end, len(order))
    vectors = np.concatenate(parts)
    return vectors[np.argsort(order)]
