"""Reduce a tokenizer to some tokens, in the JSON of the `tokenizers` library, with no other change.

A text whose old tokens were all kept is cut into the same tokens by the new tokenizer. Why, for each kind of model:

- Unigram takes the path of pieces with the highest sum of scores, and of equal ones that whose last piece is longest. A
  subset of the pieces has a subset of the paths, and the best of all is still there with the same sum. But a character
  without a piece of its own may be unknown at a price that depends on the lowest score of all. So the pieces of all
  characters in kept pieces stay, and so does a piece with the lowest score. Pieces of one character of the same scripts
  stay, too.
- BPE joins, again and again, the neighbours whose merge comes first. All merges that make a kept token stay, those
  that make their parts, and so on. So every merge that was done can be done, in the same order, and no other is there.
- WordPiece takes the longest piece that a word begins with, and goes on behind it. It was kept, and longer ones were
  not there before. A word that cannot be cut to its end is unknown: the pieces that its beginning is cut into must be
  kept, too. `greedy` finds them for words of the texts; other words that were unknown may become known.
"""

import copy
import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import pre_tokenizers

from metasearch.compress._train_pieces import BYTES

KINDS = ("BPE", "Unigram", "WordPiece")
"""Kinds of tokenizers that can be cut."""


Spec = Mapping[str, Any]
"""The JSON of a tokenizer."""


def numbers(spec: Spec) -> dict[str, int]:
    """Return the id of every token, added tokens last."""
    return {**_own_numbers(spec["model"]), **{added["content"]: added["id"] for added in spec["added_tokens"]}}


def needed(spec: Spec, used: Iterable[str], scripts: bool = True) -> set[str]:
    """Return the tokens to keep so that the used tokens are produced as before; includes the used tokens.

    Args:
        spec: JSON of the tokenizer.
        used: tokens that stay in any case.
        scripts: whether with Unigram all other characters of their scripts stay, too.
    """
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


def greedy(model: Mapping[str, Any], word: str) -> list[str]:
    """Return the pieces that WordPiece finds in a word from its start, until it fails."""
    pieces: list[str] = []
    start = 0
    # A word above the limit is unknown as a whole, and none of its pieces is looked for.
    while start < len(word) <= model["max_input_chars_per_word"]:
        prefix = model["continuing_subword_prefix"] if start else ""
        ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in model["vocab"])
        end = next(ends, None)
        if end is None:
            break
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


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
