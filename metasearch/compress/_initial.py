"""The rows that the tokens of a new vocabulary begin with.

Notation used for tensor shapes: V words of the old vocabulary, V' of the new one, K columns of the word table.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase

from metasearch.compress._train_pieces import BYTES
from metasearch.spec.seeding import stream

Initial = Literal["pieces", "random"]

_ROLES = ("pad", "unk", "mask", "cls", "sep", "bos", "eos")
_LIKE = {"cls": "bos", "bos": "cls", "sep": "eos", "eos": "sep"}
_NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"


def first_rows(
    table: Tensor, old: PreTrainedTokenizerBase, new: PreTrainedTokenizerBase, initial: Initial, seed: int
) -> Tensor:
    """Return the word table `(V', K)` of a new vocabulary from that of an old one, `(V, K)`."""
    mean, deviation = table.mean(0), table.std(0, correction=0)
    # For all rows, also those that are filled below: so the noise of a row does not depend on the others.
    noise = stream(seed, "vocabulary").standard_normal((len(new), table.shape[1]), dtype=np.float32)
    rows = mean + deviation * torch.from_numpy(noise).to(table)
    special = _counterparts(old, new)
    if initial == "pieces":
        _fill(rows, table, {token: ids for token, ids in _sources(old, new).items() if token not in special})
    _fill(rows, table, special)
    return rows


def _fill(rows: Tensor, table: Tensor, sources: dict[int, list[int]]) -> None:
    """Set rows to the mean of old ones, given by number for the number of each new token."""
    if not sources:
        return
    flat = torch.tensor([number for numbers in sources.values() for number in numbers], device=table.device)
    lengths = torch.tensor([len(numbers) for numbers in sources.values()], device=table.device)
    # Offsets: where the numbers of each new token begin in `flat`.
    means = F.embedding_bag(flat, table, lengths.cumsum(0) - lengths, mode="mean")
    rows[torch.tensor(list(sources), device=table.device)] = means


def _counterparts(old: PreTrainedTokenizerBase, new: PreTrainedTokenizerBase) -> dict[int, list[int]]:
    """Return the old number of every special token that both have, by its new number."""
    numbers_of: dict[int, list[int]] = {}
    for role in _ROLES:
        numbers = (getattr(old, f"{name}_token_id") for name in (role, _LIKE.get(role, role)))
        source = next((number for number in numbers if number is not None), None)
        target = getattr(new, f"{role}_token_id")
        if source is not None and target is not None:
            # One token can have two roles, as `<s>` is `cls` and `bos`: the first role decides.
            numbers_of.setdefault(target, [source])
    return numbers_of


def _sources(old: PreTrainedTokenizerBase, new: PreTrainedTokenizerBase) -> dict[int, list[int]]:
    """Return the numbers of the old tokens that stand for each new one; none for a token that they cannot spell."""
    known = old.get_vocab()
    # A tokenizer makes the numbers of its special tokens from a text that spells them out, too.
    useless = set(old.all_special_ids)
    # `get_vocab` has another order in every process.
    names = dict(sorted((number, name) for name, number in new.get_vocab().items()))
    sources = {number: [known[name]] for number, name in names.items() if name in known and known[name] not in useless}
    texts = {number: text for number in names if number not in sources and (text := _text(new, number, names[number]))}
    if texts:
        spelt = old(list(texts.values()), add_special_tokens=False)["input_ids"]
        for number, ids in zip(texts, spelt, strict=True):
            if ids := [i for i in ids if i not in useless]:
                sources[number] = ids
    return sources


def _text(tokenizer: PreTrainedTokenizerBase, number: int, name: str) -> str:
    """Return the text that a token stands for; nothing for a part of a character."""
    if name in BYTES:
        # In UTF-8 a byte from 128 on is only part of a character.
        return chr(BYTES[name]) if BYTES[name] < 128 else ""
    text: str = tokenizer.decode([number]).strip()
    # WordPiece marks what continues a word; its decoder takes the mark away behind another token only.
    text = text.removeprefix("##") if name.startswith("##") else text
    return "" if _NO_CHARACTER in text else text
