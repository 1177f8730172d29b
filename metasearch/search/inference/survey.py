"""Finds out whether a checkpoint can be encoded with from its files, and what has to be known for that.

Supported are BERT models, also compressed ones and ones in int8, with a fast tokenizer, mean or CLS pooling, and linear
maps without activation. Before facts are used, the stored form has to give the same tokens and the same bits as the
whole model.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast, get_args

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import Transformer
from transformers import PreTrainedTokenizerFast

from metasearch.config.roles import Role
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.features import TextReader
from metasearch.encoders.inputs import TransformerInput
from metasearch.encoders.low.network import NetworkFacts
from metasearch.encoders.low.plain import modules_after, network_facts
from metasearch.errors import EncoderError
from metasearch.search.inference.encoder import WEIGHTS, StoredEncoder
from metasearch.search.inference.facts import Facts, InputFacts

_TEXTS = (
    "a",
    "Where is the key?",
    "Wo liegt der Schlüssel? Unter der Matte, wie immer. ¿Dónde está la llave? Debajo del felpudo.",
    "鑰匙在墊子下面 أين المفتاح؟ चाबी कहाँ है? Где ключ? Πού είναι το κλειδί; 0 1 2 3 � emoji 🔑\u200d",
)
_LONG = " ".join(_TEXTS) * 8


def survey(
    encoder: Encoder, folder: Path, warnings: Sequence[str], stored: Callable[[Facts], StoredEncoder]
) -> StoredEncoder | None:
    """Return an encoder that works from its files alone, for one just opened whole; None where that is not possible.

    `warnings` are from opening it; `stored` opens the other one by the facts.
    """
    if encoder.adapter is not None:  # its network does not read tokens
        return None
    model, read = encoder.model, encoder.input
    place = _places(folder)
    if not isinstance(read, TransformerInput) or place is None or not _plain_input(read, folder / place[0]):
        return None
    network, after = network_facts(read), modules_after(model, place)
    if network is None or after is None:
        return None
    facts = Facts(
        place=place[0],
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension(),
        neutral=encoder.neutral,
        prompts=dict(model.prompts),
        default_prompt_name=model.default_prompt_name,
        lengths=cast(dict[Role, int], read.lengths.model_dump()),
        warnings=warnings,
        network=NetworkFacts(**network, after=after),
        input=_input(read),
    )
    try:
        found = stored(facts)
    except EncoderError:  # names of weights are not as transformers would write them
        return None
    return found if _same_tokenizer(encoder.reader, found.reader) and _alike(encoder, found) else None


def _places(folder: Path) -> list[str] | None:
    """Return the folder of each module; without `modules.json` there is the transformer alone."""
    path = folder / "modules.json"
    try:
        return [each["path"] for each in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else [""]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _plain_input(read: TransformerInput, folder: Path) -> bool:
    """Return whether a module runs a tokenizer and a network as their files say, without more."""
    module, tokenizer = read.module, read.module.tokenizer
    return (
        type(module) is Transformer
        and isinstance(tokenizer, PreTrainedTokenizerFast)
        and tokenizer.padding_side == "right"
        and not tokenizer.split_special_tokens
        and (folder / "tokenizer.json").is_file()
        and (folder / WEIGHTS).is_file()
    )


def _input(read: TransformerInput) -> InputFacts:
    tokenizer = read.module.tokenizer
    columns = tuple(read.tokenise(["a"], 8))
    padding = {"input_ids": int(tokenizer.pad_token_id or 0), "token_type_ids": int(tokenizer.pad_token_type_id)}
    return InputFacts(
        columns=columns,
        padding={name: padding.get(name, 0) for name in columns},
        left=tokenizer.truncation_side == "left",
        special=tuple(read.special_ids),
        longest=read.longest,
    )


def _same_tokenizer(one: TextReader, other: TextReader) -> bool:
    """Return whether transformers changed nothing of a tokenizer's file."""
    found = []
    for tokenizer in (one.fast_tokenizer, other.fast_tokenizer):
        assert tokenizer is not None
        tokenizer.no_truncation()  # it is set whenever texts are read
        tokenizer.no_padding()
        found.append(tokenizer.to_str())
    return found[0] == found[1]


def _alike(encoder: Encoder, stored: Encoder) -> bool:
    roles: tuple[Role, ...] = get_args(Role)
    limits = {min(encoder.limit(role), 2 * len(_LONG)) for role in roles} | {8}
    texts = [*_TEXTS, *(prompt + _LONG for prompt in {encoder.prompt(role) for role in roles})]
    both = (encoder.reader, stored.reader)
    for limit in sorted(limits):
        found, same = (
            {name: [list(each) for each in values] for name, values in read.tokenise(texts, limit).items()}
            for read in both
        )
        if found != same:
            return False
    rows = [np.array([values[i] for values in found.values()], np.int32) for i in range(len(texts))]
    with torch.no_grad():
        for batch in (rows[:1], rows[1:3], rows[: len(_TEXTS)], rows[-1:], rows):
            one, other = (read.padded(list(found), batch) for read in both)
            if list(one) != list(other) or not all(torch.equal(one[name], other[name]) for name in one):
                return False
            if not torch.equal(encoder.network(one), stored.network(other)):
                return False
    return True
