"""Reduce an encoder's vocabulary to the languages it is used for.

Without a number of tokens no vector changes. With one rare tokens go, and words that had them are made of smaller ones.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from metasearch.compress._replace import find_padding, replaced, word_table
from metasearch.compress._tokenizer_json import KINDS, Spec, alphabet, cut, greedy, needed
from metasearch.config.recipe import Role
from metasearch.data.formats.blank import remove_invisible
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.encoders.prompts import prompt_of
from metasearch.errors import ConfigError, DataError, EncoderError

log = logging.getLogger(__name__)

_BATCH = 1000
_KEPT_OPTIONS = ("model_max_length", "model_input_names", "padding_side", "truncation_side")


def trim(encoder: Encoder, texts: Iterable[str], size: int | None = None) -> Encoder:
    """Return an encoder with only the tokens in these texts; without a size its embeddings are unchanged.

    Special tokens, bytes and the characters of all kept tokens are kept, too. For every text whose tokens are all kept,
    whether it is among the texts or not, tokens and vectors are as before, bit for bit. This is checked on the texts.
    Other texts are cut into smaller tokens than before. (A text with words that the old vocabulary does not know at
    all is safe with WordPiece only if it is among the texts.) Prompts of the encoder are put before texts, too.

    Args:
        encoder: whose vocabulary is cut.
        texts: that say what is kept.
        size: tokens to keep at most: the characters of the texts, and the tokens that are most frequent in them. Words
            with another token are cut into smaller ones, and characters that no text has may be unknown; the log says
            how many tokens the texts have then. None keeps all.

    Raises:
        DataError: there are no texts.
        EncoderError: the tokenizer is not of a kind that can be trimmed, or a text would be cut otherwise.
        ConfigError: special tokens and the characters of the texts are more than are to be kept.
    """
    old = encoder.model.tokenizer
    backend = getattr(old, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(f"{encoder.name}: its tokenizer is written in Python; only those in Rust can be trimmed")
    spec = json.loads(backend.to_str())
    kind = spec["model"].get("type")
    if kind not in KINDS:
        raise EncoderError(f"a tokenizer of kind {kind} cannot be trimmed; these can: {', '.join(KINDS)}")
    inputs = _inputs(encoder, texts)
    padding = find_padding(transformer_of(encoder.model))
    # The model's padding token can be another than the tokenizer's, see `find_padding`.
    special = {*old.all_special_ids, padding} - {None}
    before = [ids for batch in _batches(inputs) for ids in old(batch, verbose=False)["input_ids"]]
    always = set(old.convert_ids_to_tokens(sorted(special)))
    names = needed(spec, always | _used(old, spec, inputs, before))
    fewer = size is not None and size < len(names)
    if fewer:
        smaller, moved = cut(spec, most_frequent(spec, names, _counts(old, before), always, cast(int, size)))
    else:
        smaller, moved = cut(spec, names)
    # The plain class takes the JSON as it is; others build their own from the words.
    new = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(smaller)),
        **{name: getattr(old, name) for name in _KEPT_OPTIONS},
        **old.special_tokens_map,
    )
    _check_numbers(encoder, new, moved)
    after = (ids for batch in _batches(inputs) for ids in new(batch, verbose=False)["input_ids"])
    if fewer:
        _say(len(moved), len(names), before, after, new.unk_token_id, old.unk_token_id)
    else:
        _check_same(encoder, moved, inputs, before, after)
    table = word_table(transformer_of(encoder.model)).weight.detach()
    # Old numbers in the order of the new ones: row i is that of the new token i.
    order = torch.tensor(sorted(moved, key=moved.__getitem__), device=table.device)
    return replaced(encoder, new, table[order], None if padding is None else moved[padding])


def _inputs(encoder: Encoder, texts: Iterable[str]) -> list[str]:
    """Return each distinct text behind the prompt for each role, and the prompts alone."""
    prompts = dict.fromkeys(prompt_of(encoder.model, role) for role in get_args(Role))
    distinct = dict.fromkeys(map(remove_invisible, texts))
    if not distinct:
        raise DataError("no texts to take the vocabulary from")
    # Prompts of other names stand alone: they may be put before any text later.
    return [prompt + text for prompt in prompts for text in distinct] + list(encoder.model.prompts.values())


def _used(
    old: PreTrainedTokenizerBase, spec: dict[str, Any], inputs: Sequence[str], tokens: Sequence[Sequence[int]]
) -> set[str]:
    """Return the tokens of the inputs, and the tokens for beginnings of unknown words."""
    used: set[int] = set()
    words: set[str] = set()
    for text, ids in zip(inputs, tokens, strict=True):
        used.update(ids)
        # WordPiece alone loses a word whole for one piece that is missing.
        if spec["model"]["type"] == "WordPiece" and old.unk_token_id in ids:
            words.update(_words(old, text))
    known = {piece for word in words for piece in greedy(spec["model"], word)}
    return {*known, *old.convert_ids_to_tokens(sorted(used))}


def _words(tokenizer: PreTrainedTokenizerBase, text: str) -> list[str]:
    """Return the words that a text is cut into before its pieces are looked for."""
    backend = tokenizer.backend_tokenizer
    plain = backend.normalizer.normalize_str(text) if backend.normalizer else text
    return [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(plain)] if backend.pre_tokenizer else [plain]


def _batches(inputs: Sequence[str]) -> Iterator[Sequence[str]]:
    return (inputs[start : start + _BATCH] for start in range(0, len(inputs), _BATCH))


def _counts(old: PreTrainedTokenizerBase, tokens: Iterable[Sequence[int]]) -> dict[str, int]:
    """Return how often each token is in texts."""
    counts = Counter(number for row in tokens for number in row)
    return dict(zip(old.convert_ids_to_tokens(list(counts)), counts.values(), strict=True))


def _check_numbers(encoder: Encoder, new: PreTrainedTokenizerBase, moved: dict[int, int]) -> None:
    """Raise `EncoderError` unless a new tokenizer has the tokens that were moved, under their new numbers."""
    names = encoder.model.tokenizer.get_vocab()
    wrong = [name for name, number in new.get_vocab().items() if moved.get(names[name]) != number]
    if len(new) != len(moved) or wrong:
        raise EncoderError(f"{encoder.name}: its tokenizer cannot be trimmed: {wrong[:3]}")


def _check_same(
    encoder: Encoder,
    moved: dict[int, int],
    inputs: Sequence[str],
    before: Iterable[Sequence[int]],
    after: Iterable[Sequence[int]],
) -> None:
    """Raise `EncoderError` unless texts are cut into the tokens that they had, under their new numbers."""
    for text, was, now in zip(inputs, before, after, strict=True):
        if [moved[number] for number in was] != now:
            raise EncoderError(
                f"{encoder.name}: its tokenizer cannot be trimmed: it would split this text differently: {text!r}"
            )


def _say(
    kept: int,
    of: int,
    before: Sequence[Sequence[int]],
    after: Iterable[Sequence[int]],
    unknown: int | None,
    before_unknown: int | None,
) -> None:
    """Log how much longer texts are with fewer tokens, and how many have an unknown word that they did not have."""
    lengths, lost = [0, 0], 0
    for was, now in zip(before, after, strict=True):
        lengths = [lengths[0] + len(was), lengths[1] + len(now)]
        lost += unknown in now and before_unknown not in was
    means = [length / len(before) for length in lengths]
    log.info(
        f"the {kept:,} most frequent of {of:,} tokens are kept: a text of {means[0]:.1f} tokens has {means[1]:.1f} now"
    )
    if lost:
        log.warning(f"{lost:,} of {len(before):,} texts now have unknown words; a larger --vocabulary keeps them")


# Chooses the tokens of a smaller vocabulary by how often texts have them.


def most_frequent(spec: Spec, names: set[str], counts: Mapping[str, int], always: Iterable[str], size: int) -> set[str]:
    """Return at most `size` tokens: required ones, ones that spell words, and the most frequent.

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
