"""Vocabularies: learn one from texts, and give an encoder another one."""

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from metasearch.compress import _train_pieces as pieces
from metasearch.compress._train_pieces import BYTES, Kind
from metasearch.config.seeding import stream
from metasearch.data.formats.blank import remove_invisible
from metasearch.encoders.compressed import native_config
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import transformer_of
from metasearch.errors import ConfigError, DataError, EncoderError, require_known

# The rows that the tokens of a new vocabulary begin with.
#
# Notation used for tensor shapes: V words of the old vocabulary, V' of the new one, K columns of the word table.

Initial = Literal["pieces", "random"]

_ROLES = ("pad", "unk", "mask", "cls", "sep", "bos", "eos")
_LIKE = {"cls": "bos", "bos": "cls", "sep": "eos", "eos": "sep"}
_NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"


def first_rows(
    table: Tensor, old: PreTrainedTokenizerBase, new: PreTrainedTokenizerBase, initial: Initial, seed: int
) -> Tensor:
    """Return the embedding matrix `(V', K)` for a new vocabulary, from the old one, `(V, K)`."""
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
    """Set rows to the mean of old rows, given by id for each new token."""
    if not sources:
        return
    flat = torch.tensor([number for numbers in sources.values() for number in numbers], device=table.device)
    lengths = torch.tensor([len(numbers) for numbers in sources.values()], device=table.device)
    # Offsets: where the numbers of each new token begin in `flat`.
    means = F.embedding_bag(flat, table, lengths.cumsum(0) - lengths, mode="mean")
    rows[torch.tensor(list(sources), device=table.device)] = means


def _counterparts(old: PreTrainedTokenizerBase, new: PreTrainedTokenizerBase) -> dict[int, list[int]]:
    """Return a map from new to old ids for all special tokens in both vocabularies."""
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
    """Return the ids of old tokens that spell each new token; empty if they cannot."""
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
    """Return a token's text; empty for part of a character."""
    if name in BYTES:
        # In UTF-8 a byte from 128 on is only part of a character.
        return chr(BYTES[name]) if BYTES[name] < 128 else ""
    text: str = tokenizer.decode([number]).strip()
    # WordPiece marks what continues a word; its decoder takes the mark away behind another token only.
    text = text.removeprefix("##") if name.startswith("##") else text
    return "" if _NO_CHARACTER in text else text


# The order of XLM-R: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, and `<mask>` last. Positions of its family depend on it.
_FIRST = ("<s>", "<pad>", "</s>", "<unk>")
_MASK = "<mask>"
# With these among its pieces, a unigram model never takes a text that spells out the name of a byte for the byte.
_OF_BYTE_NAMES = frozenset("".join(BYTES))


def train_tokenizer(
    texts: Iterable[str], size: int, kind: Kind = "unigram", lowercase: bool = False, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """Learn a vocabulary in which no text is unknown: rare characters are spelt as UTF-8 bytes `<0x00>` to `<0xFF>`.

    Texts are normalised with NFKC, runs of white space count as one space, and a word begins with `▁`, as in
    SentencePiece. XLM-R's special tokens and template `<s> A </s>`. The same texts give the same tokenizer.
    `size` includes special tokens and the 256 bytes. `kind`: `unigram` (Kudo, 2018) or `bpe` (Sennrich et al., 2016).

    Raises:
        ConfigError: no such kind, or the size does not even hold the characters of the texts.
        DataError: there is no text, or the texts do not have so many pieces; says how many they have.
    """
    require_known("kind of tokenizer", kind, get_args(Kind))
    blank = _blank(lowercase)
    lines = [line for text in texts if (line := blank.normalizer.normalize_str(remove_invisible(text)))]
    if not lines:
        raise DataError("no text to learn a tokenizer from")
    alphabet = pieces.covered(lines)
    fixed = len(_FIRST) + len(BYTES) + 1
    characters = {"▁", *alphabet, *(_OF_BYTE_NAMES if kind == "unigram" else ())}
    least = fixed + len(characters)
    if size < least:
        raise ConfigError(
            f"size {size}: {fixed} special tokens and bytes and {len(characters)} characters need {least} at least"
        )
    # The trainer sees spaces instead of characters that are left to bytes, and learns no piece with them.
    rare = {ord(character): " " for character in set().union(*lines) - alphabet}
    tokenizer = _finished(blank, _model(kind, blank, [line.translate(rare) for line in lines], size - fixed))
    reached = tokenizer.get_vocab_size()
    if reached < size:
        raise DataError(f"size {size}: the texts have pieces for {reached} only; take {reached}, or more texts")
    names = {"bos": "<s>", "cls": "<s>", "pad": "<pad>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "mask": _MASK}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{role}_token": name for role, name in names.items()},
    )


def with_vocabulary(
    encoder: Encoder, tokenizer: PreTrainedTokenizerBase, initial: Initial = "pieces", seed: int = 0
) -> Encoder:
    """Return a copy of an encoder with another tokenizer and a new word table.

    Special tokens take the rows of their counterparts. With `pieces`, a token of the old vocabulary takes its row, and
    any other the mean of the rows that the old tokenizer gives for its text. All other rows are drawn from normal
    distributions with mean and deviation of the old columns.

    Raises:
        ConfigError: there is no such way to begin.
        EncoderError: the encoder cannot take the tokenizer: no padding token, or MPNet with a padding token that is
            not number 1.
    """
    require_known("initial", initial, get_args(Initial))
    old = encoder.model.tokenizer
    new = copy.deepcopy(tokenizer)
    table = word_table(transformer_of(encoder.model)).weight.detach()
    rows = first_rows(table, old, new, initial, seed)
    new.model_max_length = encoder.model.max_seq_length
    return replaced(encoder, new, rows)


def _blank(lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    lower = [normalizers.Lowercase()] if lowercase else []
    spaces = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *lower, *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def _model(kind: Kind, blank: Tokenizer, lines: list[str], count: int) -> models.Model:
    """Return the model with special tokens, bytes, at most `count` pieces, and the mask, in this order."""
    if kind == "bpe":
        learned, merges = pieces.bpe(blank, lines, count)
        names = [*_FIRST, *BYTES, *learned, _MASK]
        vocabulary = {name: number for number, name in enumerate(names)}
        return models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True)
    scored = pieces.unigram(blank, lines, count, _OF_BYTE_NAMES)
    # A byte is chosen where no piece fits, whatever its score, and never for a text that looks like its name.
    byte = 2 * len("<0x00>") * scored[-1][1]
    fixed = [*((name, 0.0) for name in _FIRST), *((name, byte) for name in BYTES)]
    return models.Unigram([*fixed, *scored, (_MASK, 0.0)], len(_FIRST) - 1, True)


def _finished(tokenizer: Tokenizer, model: models.Model) -> Tokenizer:
    tokenizer.model = model
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in _FIRST])
    # The space before a mask is part of it, as in XLM-R.
    tokenizer.add_special_tokens([AddedToken(_MASK, special=True, normalized=False, lstrip=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


def word_table(model: Any) -> nn.Embedding:
    """Return a model's embedding matrix (its narrow factor if factorised); `EncoderError` if it has none."""
    embedding = model.get_input_embeddings()
    table = getattr(embedding, "table", embedding)
    if not isinstance(table, nn.Embedding):
        raise EncoderError(f"its embedding matrix is a {type(table).__name__}; expected an Embedding")
    return table


def find_padding(model: Any) -> int | None:
    """Return the padding id that a model was made for, from which the RoBERTa family counts positions.

    The tokenizer may have another: the multilingual MiniLM, a BERT, has 0 where its tokenizer has 1.
    """
    counted = (module.padding_idx for module in model.modules() if _counts_past_padding(module))
    number: int | None = native_config(model).pad_token_id
    return next(counted, number)


def replaced(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, rows: Tensor, padding: int | None = None) -> Encoder:
    """Return a copy of an encoder with another tokenizer and embedding matrix `(V, K)`; `padding` as in `find_padding`.

    `EncoderError` if the tokenizer has no padding token, or the model cannot take its number.
    """
    pad = tokenizer.pad_token_id if padding is None else padding
    if tokenizer.pad_token_id is None:
        raise EncoderError("the tokenizer has no padding token; set its pad_token")
    old = encoder.model
    table = word_table(transformer_of(old))
    weight = nn.Parameter(rows.to(table.weight), requires_grad=table.weight.requires_grad)
    # The memo of deepcopy names the replacements, so the old table and tokenizer are never copied.
    memo = {id(table.weight): weight, id(old.tokenizer): tokenizer}
    model = copy.deepcopy(old, memo)
    transformer = model[0]
    if getattr(transformer, "do_lower_case", False):
        transformer.do_lower_case = False  # the tokenizer says itself what it does
    copied = word_table(transformer.auto_model)
    # The memo exchanged the weight; an Embedding keeps its size and its padding beside it.
    copied.num_embeddings = len(rows)
    if copied.padding_idx is not None:
        copied.padding_idx = pad
    for config in _configs(transformer.auto_model):
        _renumber(config, tokenizer, pad, len(rows))
    _move_positions(transformer.auto_model, pad)
    return Encoder(model, encoder.name, encoder.max_length)


def _configs(model: Any) -> Iterator[Any]:
    """Yield every configuration in a model; a compressed model holds its backbone's inside its own."""
    # By identity, as modules share their configuration.
    configs = [native_config(module) for module in model.modules() if hasattr(module, "config")]
    yield from {id(config): config for config in configs}.values()


def _renumber(config: Any, tokenizer: PreTrainedTokenizerBase, pad: int, words: int) -> None:
    config.vocab_size = words
    config.pad_token_id = pad
    # In the RoBERTa family one token is `bos` and `cls`, and one is `eos` and `sep`; BERT has the latter names alone.
    for name, other in (("bos", "cls"), ("eos", "sep")):
        number = getattr(tokenizer, f"{name}_token_id")
        if number is None and getattr(config, f"{name}_token_id", None) is not None:
            number = getattr(tokenizer, f"{other}_token_id")
        setattr(config, f"{name}_token_id", number)
        if hasattr(config, f"{other}_token_id"):  # ModernBERT has all four
            setattr(config, f"{other}_token_id", getattr(tokenizer, f"{other}_token_id"))


def _move_positions(model: Any, pad: int) -> None:
    """Move rows in the position table so that each position keeps its row under the new padding id.

    Models of the RoBERTa family count positions from `padding_idx + 1` on. `EncoderError` for MPNet, where it is fixed.
    """
    for module in filter(_counts_past_padding, model.modules()):
        before = module.padding_idx
        if before == pad:
            continue
        if native_config(model).model_type == "mpnet":
            raise EncoderError(f"MPNet needs a tokenizer with padding token {before}; here it is {pad}")
        old = module.position_embeddings
        weight = old.weight.detach()
        rows = weight.new_zeros(len(weight) + pad - before, weight.shape[1])
        rows[pad + 1 :] = weight[before + 1 :]
        moved = nn.Embedding(len(rows), weight.shape[1], padding_idx=pad, device=weight.device, dtype=weight.dtype)
        moved.weight = nn.Parameter(rows, requires_grad=old.weight.requires_grad)
        module.position_embeddings = moved
        module.padding_idx = pad
        # These buffers are as long as the table, and were made for its old length.
        numbers = torch.arange(len(rows), device=weight.device)[None]
        for name, value in (("position_ids", numbers), ("token_type_ids", torch.zeros_like(numbers))):
            if isinstance(getattr(module, name, None), Tensor):
                setattr(module, name, value)
        for config in _configs(model):
            config.max_position_embeddings = len(rows)


def _counts_past_padding(module: Any) -> bool:
    return isinstance(getattr(module, "padding_idx", None), int) and hasattr(module, "position_embeddings")
