"""Reduce an encoder's vocabulary to the languages it is used for.

Without a number of tokens no vector changes. With one rare tokens go, and words that had them are made of smaller ones.
"""

import copy
import json
import logging
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from metasearch.compress.vocabulary import BYTES, find_padding, replaced, word_table
from metasearch.config.roles import Role
from metasearch.data.formats.blank import remove_invisible
from metasearch.data.formats.given import each_text
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.prompts import prompt_of
from metasearch.errors import ConfigError, DataError, EncoderError

log = logging.getLogger(__name__)

Spec = Mapping[str, Any]
"""The JSON of a tokenizer."""
Tokens = Sequence[Sequence[int]]
"""Token ids, text by text."""

_BATCH = 1000
_KEPT_OPTIONS = ("model_max_length", "model_input_names", "padding_side", "truncation_side")


def trim(encoder: Encoder, texts: Iterable[str], size: int | None = None) -> Encoder:
    """Return an encoder with only the tokens in these texts; without a size its embeddings are unchanged.

    Special tokens, bytes and the characters of all kept tokens are kept too. For every text whose tokens are all kept,
    tokens and vectors are as before, bit for bit; this is checked on the texts. Other texts are split into smaller
    tokens. (A text with words that the old vocabulary does not know is safe with WordPiece only if it is among the
    texts.)

    Args:
        encoder: the encoder.
        texts: texts whose tokens are kept; prompts are put before them.
        size: tokens to keep at most: the characters of the texts, and their most frequent tokens. Characters that no
            text has may be unknown; the log says how much longer texts become. None keeps all.

    Raises:
        DataError: there are no texts.
        EncoderError: the tokenizer is not of a kind that can be trimmed, or a text would be split differently.
        ConfigError: special tokens and the characters of the texts are more than `size`.
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
    padding = find_padding(encoder)
    # The model's padding token can be another than the tokenizer's, see `find_padding`.
    special = {*old.all_special_ids, padding} - {None}
    before = list(_tokenised(old, inputs))
    always = set(old.convert_ids_to_tokens(sorted(special)))
    counts = _counts(old, before)
    names = needed(spec, {*always, *counts, *_beginnings(old, spec, inputs, before)})
    wanted = names if size is None or size >= len(names) else most_frequent(spec, names, counts, always, size)
    smaller, moved = cut(spec, wanted)
    # The plain class takes the whole JSON; others build their own from the words.
    new = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(smaller)),
        **{name: getattr(old, name) for name in _KEPT_OPTIONS},
        **old.special_tokens_map,
    )
    ids = old.get_vocab()
    wrong = [name for name, number in new.get_vocab().items() if moved.get(ids[name]) != number]
    if len(new) != len(moved) or wrong:
        raise EncoderError(f"{encoder.name}: its tokenizer cannot be trimmed: {wrong[:3]}")
    if wanted is not names:
        _log_longer(old, new, len(names), inputs, before)
    else:
        for text, was, now in zip(inputs, before, _tokenised(new, inputs), strict=True):
            if [moved[number] for number in was] != now:
                raise EncoderError(
                    f"{encoder.name}: its tokenizer cannot be trimmed: it would split this text differently: {text!r}"
                )
    table = word_table(encoder.model[0].auto_model).weight.detach()
    # Old numbers in the order of the new ones: row i is that of the new token i.
    order = torch.tensor(sorted(moved, key=moved.__getitem__), device=table.device)
    return replaced(encoder, new, table[order], None if padding is None else moved[padding])


def _inputs(encoder: Encoder, texts: Iterable[str]) -> list[str]:
    """Return each distinct text behind the prompt for each role, and the prompts alone."""
    prompts = dict.fromkeys(prompt_of(encoder.model, role) for role in get_args(Role))
    distinct = dict.fromkeys(map(remove_invisible, each_text(texts)))
    if not distinct:
        raise DataError("no texts to take the vocabulary from")
    # Prompts of other names stand alone: they may be put before any text later.
    return [prompt + text for prompt in prompts for text in distinct] + list(encoder.model.prompts.values())


def _tokenised(tokenizer: PreTrainedTokenizerBase, inputs: Sequence[str]) -> Iterator[list[int]]:
    for start in range(0, len(inputs), _BATCH):
        yield from tokenizer(inputs[start : start + _BATCH], verbose=False)["input_ids"]


def _beginnings(old: PreTrainedTokenizerBase, spec: Spec, inputs: Sequence[str], tokens: Tokens) -> set[str]:
    """Return the tokens for beginnings of unknown words."""
    if spec["model"]["type"] != "WordPiece":
        return set()  # WordPiece alone loses a word whole for one piece that is missing
    backend, words = old.backend_tokenizer, set[str]()
    for text, ids in zip(inputs, tokens, strict=True):
        if old.unk_token_id in ids:
            plain = backend.normalizer.normalize_str(text) if backend.normalizer else text
            parts = backend.pre_tokenizer.pre_tokenize_str(plain) if backend.pre_tokenizer else [(plain, None)]
            words.update(word for word, _ in parts)
    return {piece for word in words for piece in beginning(backend.model, spec["model"]["unk_token"], word)}


def _counts(old: PreTrainedTokenizerBase, tokens: Tokens) -> dict[str, int]:
    counts = Counter(number for row in tokens for number in row)
    return dict(zip(old.convert_ids_to_tokens(list(counts)), counts.values(), strict=True))


def _log_longer(
    old: PreTrainedTokenizerBase, new: PreTrainedTokenizerBase, of: int, inputs: Sequence[str], before: Tokens
) -> None:
    """Log how much longer texts are with fewer tokens, and how many have an unknown word that they did not have."""
    lengths, lost = [0, 0], 0
    for was, now in zip(before, _tokenised(new, inputs), strict=True):
        lengths = [lengths[0] + len(was), lengths[1] + len(now)]
        lost += new.unk_token_id in now and old.unk_token_id not in was
    means = [length / len(before) for length in lengths]
    kept = f"the {len(new):,} most frequent of {of:,} tokens are kept"
    log.info(f"{kept}: a text of {means[0]:.1f} tokens has {means[1]:.1f} now")
    if lost:
        log.warning(f"{lost:,} of {len(before):,} texts now have unknown words; a larger --vocabulary keeps them")


# Chooses the tokens of a smaller vocabulary by how often texts have them.


def most_frequent(spec: Spec, names: set[str], counts: Mapping[str, int], always: Iterable[str], size: int) -> set[str]:
    """Return at most `size` tokens: required ones, ones that spell words, and the most frequent.

    `names` are the tokens of a vocabulary without a limit. `ConfigError` if required ones and characters exceed the
    size.
    """
    # Without its characters a word would be unknown, not longer.
    spelt = {*always, *alphabet(spec, {*always, *counts})}
    least = needed(spec, spelt, scripts=False)
    if len(least) > size:
        what = "special tokens and the characters of the texts"
        raise ConfigError(f"vocabulary {size}: {what} are {len(least):,} tokens; keep as many or more")
    ranked = sorted(names - least, key=lambda name: (-counts.get(name, 0), name))

    def kept(count: int) -> set[str]:
        return needed(spec, spelt | set(ranked[:count]), scripts=False)

    # A token may need others, such as the parts that BPE makes it of, so that their number is found by trying.
    fitting = bisect_right(range(len(ranked) + 1), size, key=lambda count: len(kept(count)))
    return kept(fitting - 1)


# Reduce a tokenizer to some tokens, in the JSON of the `tokenizers` library, with no other change.
#
# A text whose old tokens were all kept is cut into the same tokens by the new tokenizer. Why, for each kind of model:
#
# - Unigram takes the path of pieces with the highest sum of scores, and of equal ones that whose last piece is longest.
#   A subset of the pieces has a subset of the paths, and the best of all is still there with the same sum. But a
#   character without a piece of its own may be unknown at a price that depends on the lowest score of all. So the
#   pieces of all characters in kept pieces stay, and so does a piece with the lowest score. Pieces of one character of
#   the same scripts stay, too.
# - BPE joins, again and again, the neighbours whose merge comes first. All merges that make a kept token stay, with
#   those that make their parts, and so on. So every merge that was done can be done, in the same order, and no other is
#   there.
# - WordPiece takes the longest piece that a word begins with, and continues behind it. It was kept, and longer ones
#   were not there before. A word that cannot be cut to its end is unknown: the pieces that its beginning is cut into
#   must be kept, too. `beginning` finds them for words of the texts; other words that were unknown may become known.

KINDS = ("BPE", "Unigram", "WordPiece")
"""Kinds of tokenizers that can be cut."""


def numbers(spec: Spec) -> dict[str, int]:
    """Return the id of every token, added tokens last."""
    return {**_own_numbers(spec["model"]), **{added["content"]: added["id"] for added in spec["added_tokens"]}}


def needed(spec: Spec, used: Iterable[str], scripts: bool = True) -> set[str]:
    """Return the tokens to keep so that the used tokens are produced as before; with Unigram also their `scripts`."""
    names = numbers(spec).keys()
    model = spec["model"]
    added = {token["content"] for token in spec["added_tokens"]}
    tokens = names & {*used, *added, *BYTES, *_template_tokens(spec["post_processor"]), model.get("unk_token")}
    if model["type"] == "BPE":
        if '"ByteLevel"' in json.dumps(spec["pre_tokenizer"]):
            # Byte-level BPE begins with single bytes, and has no unknown token for one that is missing.
            tokens |= names & set(pre_tokenizers.ByteLevel.alphabet())
        return _with_parts(model, tokens)
    prefix = model.get("continuing_subword_prefix") or ""
    # See above for Unigram; with WordPiece, so that words whose pieces are gone can still be spelt.
    characters = {character for name in tokens for character in name}
    tokens |= names & {*characters, *(prefix + character for character in characters)}
    if model["type"] == "Unigram":
        tokens.add(model["vocab"][model["unk_id"] or 0][0])
        if scripts:
            # Without bytes to fall back on, a new text must not meet a character of its own script that is unknown.
            known = {_script(character) for character in characters}
            tokens |= {name for name in names if len(name) == 1 and _script(name) in known}
        # The price of an unknown character is taken from the lowest score.
        tokens.add(min(model["vocab"], key=lambda item: item[1])[0])
    return tokens


def alphabet(spec: Spec, tokens: set[str]) -> set[str]:
    """Return the tokens needed to spell some tokens, and the tokens that cannot be spelt."""
    model = spec["model"]
    if model["type"] == "BPE":
        # A character at the end of a word may have a mark, so that its length tells nothing.
        return _with_parts(model, tokens) - {made for _, _, made in _merges(model)}
    names, prefix = numbers(spec).keys(), model.get("continuing_subword_prefix") or ""
    characters = {character for name in tokens for character in name.removeprefix(prefix)}
    known = {each for each in characters if each in names and (not prefix or prefix + each in names)}
    whole = {name for name in tokens if not known.issuperset(name.removeprefix(prefix))}
    return names & {*known, *(prefix + each for each in known), *whole}


def cut(spec: Spec, tokens: set[str]) -> tuple[dict[str, Any], dict[int, int]]:
    """Return the JSON with these tokens only, and a map from old to new ids."""
    old = numbers(spec)
    model = spec["model"]
    pieces = _own_numbers(model)
    # Tokens that are added to the model are numbered behind its own.
    order = sorted(tokens, key=lambda name: (name not in pieces, old[name]))
    new = {name: number for number, name in enumerate(order)}
    # Without the model, by far the largest part, which is made anew.
    smaller = copy.deepcopy({**spec, "model": None})
    smaller["model"] = {**model, "vocab": {name: new[name] for name in order if name in pieces}}
    if model["type"] == "Unigram":
        # The number of a unigram piece is its place in the list, where the order of old numbers is kept.
        smaller["model"]["vocab"] = [[name, score] for name, score in model["vocab"] if name in tokens]
        if model["unk_id"] is not None:
            smaller["model"]["unk_id"] = new[model["vocab"][model["unk_id"]][0]]
    if model["type"] == "BPE":
        # `needed` has the parts of every merge that stays, so none is left without them.
        smaller["model"]["merges"] = [[left, right] for left, right, made in _merges(model) if made in tokens]
    moved = {old[name]: number for name, number in new.items()}
    for added in smaller["added_tokens"]:
        added["id"] = moved[added["id"]]
    smaller["added_tokens"].sort(key=lambda added: added["id"])
    _renumber(smaller["post_processor"], moved)
    if smaller["padding"]:
        smaller["padding"]["pad_id"] = moved[smaller["padding"]["pad_id"]]
    return smaller, moved


def beginning(model: WordPiece, unknown: str, word: str) -> list[str]:
    """Return the pieces that WordPiece finds in a word from its start, until it fails."""
    # A longer word is unknown as a whole, and none of its pieces is looked for.
    if len(word) > model.max_input_chars_per_word:
        return []
    # The longest beginning that is known is cut as the word is, since no longer piece fits anywhere in it.
    for end in range(len(word), 0, -1):
        pieces = [token.value for token in model.tokenize(word[:end])]
        if unknown not in pieces:
            return pieces
    return []


def _own_numbers(model: Mapping[str, Any]) -> dict[str, int]:
    """Return the id of every token in the model itself, without added tokens."""
    vocabulary = model["vocab"]
    return {name: i for i, (name, _) in enumerate(vocabulary)} if model["type"] == "Unigram" else dict(vocabulary)


def _merges(model: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return left part, right part and result of every merge, the first to be done first."""
    skipped = len(model.get("continuing_subword_prefix") or "")
    # Older versions of `tokenizers` write a merge as one string.
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    # The mark of a continued piece goes when it is joined to the one before.
    return [(left, right, left + right[skipped:]) for left, right in pairs]


def _script(character: str) -> str:
    """Return the script of a letter or mark, such as `GREEK`; None for other characters, which occur in any text."""
    if unicodedata.category(character)[0] not in "LM":
        return ""
    return unicodedata.name(character, "").partition(" ")[0]


def _with_parts(model: Mapping[str, Any], tokens: set[str]) -> set[str]:
    """Return BPE tokens and, recursively, the parts from which merges build them."""
    parts: dict[str, set[str]] = defaultdict(set)
    for left, right, made in _merges(model):
        parts[made] |= {left, right}
    whole: set[str] = set()
    waiting = list(tokens)
    while waiting:
        name = waiting.pop()
        if name not in whole:
            whole.add(name)
            waiting += parts.get(name, ())
    return whole


def _template_tokens(processor: Any) -> set[str]:
    """Return the tokens that a post-processor adds."""
    added: set[str] = set()
    for part in _processors(processor):
        added.update(*(special["tokens"] for special in part.get("special_tokens", {}).values()))
        added |= {part[role][0] for role in ("cls", "sep") if role in part}
    return added


def _renumber(processor: Any, moved: Mapping[int, int]) -> None:
    for part in _processors(processor):
        for special in part.get("special_tokens", {}).values():
            special["ids"] = [moved[number] for number in special["ids"]]
        # BertProcessing and RobertaProcessing have [name, number] by role, TemplateProcessing has `special_tokens`.
        for role in {"cls", "sep"} & part.keys():
            part[role][1] = moved[part[role][1]]


def _processors(processor: Any) -> list[dict[str, Any]]:
    """Return all post-processors in a sequence, at any depth."""
    inner = processor.get("processors") if processor else []
    return [processor] if inner is None else [part for each in inner for part in _processors(each)]
