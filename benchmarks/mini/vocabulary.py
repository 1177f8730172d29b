"""Learns a vocabulary from texts, and gives it to an encoder.

    python -m benchmarks.mini.vocabulary ~/data/parallel --size 32000 --lowercase --encoder minilm -o wide

The trainer of unigram pieces visits words in another order in every process, so the last digits of its sums differ. So
it is asked for more pieces, scores are rounded, and the best pieces are taken by score and code point.

Notation used for tensor shapes: V words of the old vocabulary, V' of the new one, K columns of the word table.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import click
import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from benchmarks.common.command import Command
from metasearch.compress.vocabulary import BYTES, replaced, word_table
from metasearch.config.seeding import stream
from metasearch.data.formats.blank import remove_invisible
from metasearch.data.formats.given import each_text
from metasearch.data.texts import read_texts, text_files
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.errors import ConfigError, DataError
from metasearch.io.output import whole

COVERAGE = 0.9995
"""Share of all characters that get a piece of their own, as in SentencePiece; the rarest are left to their bytes."""

# The order of XLM-R: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, and `<mask>` last. Positions of its family depend on it.
_FIRST = ("<s>", "<pad>", "</s>", "<unk>")
_MASK = "<mask>"
_FIXED = len(_FIRST) + len(BYTES) + 1
# With these among its pieces, a unigram model never takes a text that spells out the name of a byte for the byte.
_BYTE_NAMES = frozenset("".join(BYTES))
# Decimals of a score; those behind differ from process to process.
_DIGITS = 4
# What the unigram trainer adds to the lowest score from one missing character to the next.
_STEP = 1e-4
# Substrings that the unigram trainer begins with at most, beside all characters; it then drops the worst of them.
_BEGINNINGS = 1_000_000


def train_tokenizer(texts: Iterable[str], size: int, lowercase: bool = False) -> PreTrainedTokenizerFast:
    """Learn a vocabulary in which no text is unknown: rare characters are spelt as UTF-8 bytes `<0x00>` to `<0xFF>`.

    A unigram model (Kudo, 2018). Texts are normalised with NFKC, runs of white space count as one space, and a word
    begins with `▁`, as in SentencePiece. XLM-R's special tokens and template `<s> A </s>`. The same texts give the same
    tokenizer. `size` includes special tokens and the 256 bytes.

    Raises:
        ConfigError: the size does not even hold the characters of the texts.
        DataError: there is no text, or the texts do not have so many pieces; says how many they have.
    """
    tokenizer = Tokenizer(models.Unigram())
    lower = [normalizers.Lowercase()] if lowercase else []
    spaces = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *lower, *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    lines = [line for text in each_text(texts) if (line := tokenizer.normalizer.normalize_str(remove_invisible(text)))]
    if not lines:
        raise DataError("no text to learn a tokenizer from")
    alphabet = covered(lines)
    characters = {"▁", *alphabet, *_BYTE_NAMES}
    if size < _FIXED + len(characters):
        raise ConfigError(
            f"size {size}: {_FIXED} special tokens and bytes and {len(characters)} characters need "
            f"{_FIXED + len(characters)} at least"
        )
    # The trainer sees spaces instead of characters that are left to bytes, and learns no piece with them.
    rare = {ord(character): " " for character in set().union(*lines) - alphabet}
    scored = _pieces(tokenizer, [line.translate(rare) for line in lines], size - _FIXED)
    if (reached := _FIXED + len(scored)) < size:
        raise DataError(f"size {size}: the texts have pieces for {reached} only; take {reached}, or more texts")
    # A byte is chosen where no piece fits, whatever its score, and never for a text that looks like its name.
    byte = 2 * len("<0x00>") * scored[-1][1]
    fixed = [*((name, 0.0) for name in _FIRST), *((name, byte) for name in BYTES)]
    tokenizer.model = models.Unigram([*fixed, *scored, (_MASK, 0.0)], len(_FIRST) - 1, True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in _FIRST])
    # The space before a mask is part of it, as in XLM-R.
    tokenizer.add_special_tokens([AddedToken(_MASK, special=True, normalized=False, lstrip=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos": "<s>", "cls": "<s>", "pad": "<pad>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "mask": _MASK}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{role}_token": name for role, name in names.items()},
    )


def covered(texts: Sequence[str]) -> set[str]:
    """Return the most frequent characters that together cover `COVERAGE` of the texts; spaces excluded."""
    counts = Counter[str]()
    for text in texts:
        counts.update(text)
    del counts[" "]
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    before = accumulate((counts[character] for character in ranked), initial=0)
    enough = COVERAGE * counts.total()
    return {character for character, mass in zip(ranked, before, strict=False) if mass < enough}


def _pieces(blank: Tokenizer, texts: Sequence[str], count: int) -> list[tuple[str, float]]:
    """Return at most `count` pieces and their log probabilities, best first; every character is one of them."""
    # The trainer takes memory for as many as are asked for; more than it begins with it never finds.
    wanted = min(count + max(count // 50, 16), _BEGINNINGS + len(set().union(*texts)) + 1)
    blank.train_from_iterator(texts, trainers.UnigramTrainer(vocab_size=wanted, show_progress=False))
    learned = [(piece, round(score, _DIGITS)) for piece, score in json.loads(blank.to_str())["model"]["vocab"]]
    lowest = min(score for _, score in learned)
    # Characters that the trainer added are scored in an order that varies: all of them get the lowest score.
    ceiling = lowest + _STEP * sum(len(piece) == 1 for piece, _ in learned)
    flat = {piece: lowest if len(piece) == 1 and score <= ceiling else score for piece, score in learned}
    flat = {**dict.fromkeys(_BYTE_NAMES, lowest), **flat}
    # Characters first, so that `count` cuts off longer pieces only.
    best = sorted(flat.items(), key=lambda item: (len(item[0]) > 1, -item[1], item[0]))[:count]
    return sorted(best, key=lambda item: (-item[1], item[0]))


# Give an encoder another vocabulary.

_ROLES = ("pad", "unk", "mask", "cls", "sep", "bos", "eos")
_LIKE = {"cls": "bos", "bos": "cls", "sep": "eos", "eos": "sep"}
_NO_CHARACTER = "\N{REPLACEMENT CHARACTER}"


def with_vocabulary(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, seed: int = 0) -> Encoder:
    """Return a copy of an encoder with another tokenizer and a new word table.

    Special tokens take the rows of their counterparts. A token of the old vocabulary takes its row, and any other the
    mean of the rows that the old tokenizer gives for its text. Rows of tokens that it cannot spell are drawn from
    normal distributions with mean and deviation of the old columns. `EncoderError` as in `replaced`.
    """
    old, new = encoder.model.tokenizer, copy.deepcopy(tokenizer)
    table = word_table(encoder.model[0].auto_model).weight.detach()
    # For all rows, so the noise of a row does not depend on the others.
    noise = stream(seed, "vocabulary").standard_normal((len(new), table.shape[1]), dtype=np.float32)
    rows = table.mean(0) + table.std(0, correction=0) * torch.from_numpy(noise).to(table)
    sources = _sources(old, new) | _counterparts(old, new)
    flat = torch.tensor([number for numbers in sources.values() for number in numbers], device=table.device)
    lengths = torch.tensor([len(numbers) for numbers in sources.values()], device=table.device)
    # Offsets: where the numbers of each new token begin in `flat`.
    means = F.embedding_bag(flat, table, lengths.cumsum(0) - lengths, mode="mean")
    rows[torch.tensor(list(sources), device=table.device)] = means
    new.model_max_length = encoder.model.max_seq_length
    return replaced(encoder, new, rows)


def _counterparts(old: PreTrainedTokenizerBase, new: PreTrainedTokenizerBase) -> dict[int, list[int]]:
    """Return a map from new to old ids for all special tokens in both vocabularies."""
    counterparts: dict[int, list[int]] = {}
    for role in _ROLES:
        numbers = (getattr(old, f"{name}_token_id") for name in (role, _LIKE.get(role, role)))
        source = next((number for number in numbers if number is not None), None)
        target = getattr(new, f"{role}_token_id")
        if source is not None and target is not None:
            # One token can have two roles, as `<s>` is `cls` and `bos`: the first role decides.
            counterparts.setdefault(target, [source])
    return counterparts


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
    return "" if _NO_CHARACTER in text else text


@click.command(cls=Command)
@click.argument("texts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--encoder", required=True, help="Built-in name, local folder or hub name.")
@click.option("--size", default=32000, show_default=True, help="Tokens, special ones and the 256 bytes included.")
@click.option("--lowercase", is_flag=True, help="Make all texts lower case.")
@click.option("--seed", default=0, show_default=True, help="Of rows that the encoder cannot give.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="New folder of the encoder.")
def main(texts: Sequence[Path], encoder: str, size: int, lowercase: bool, seed: int, output: Path) -> None:
    """Learn a vocabulary from TEXTS, files or folders, and write an encoder with it."""
    learnt = train_tokenizer(read_texts(text_files(texts)), size, lowercase)
    made = with_vocabulary(load_encoder(encoder, seed=seed), learnt, seed)
    with whole(output) as folder:
        made.write(folder)


if __name__ == "__main__":
    main()
