"""Students: small encoders that distillation trains, made from an encoder's weights.

- with a factorised word table and recurrent layers: multi-stage distillation paper, section 3.1.3;
- static: one vector a word, and the mean of its words' vectors for a text, without layers.

Notation used for tensor shapes: V words, D dimensions.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer
from torch import Tensor, nn

from metasearch.config.compress import check_initial
from metasearch.config.seeding import seed_of
from metasearch.data.formats.blank import remove_invisible
from metasearch.data.formats.given import each_text
from metasearch.encoders.compressed import (
    CompressedConfig,
    CompressedModel,
    FactorisedEmbedding,
    check_fewer,
    principal_directions,
)
from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.encoders.inputs import is_static, transformer_of
from metasearch.encoders.prompts import prompt_of
from metasearch.encoders.random_state import seeded
from metasearch.errors import ConfigError, DataError, EncoderError


def make_student(
    assistant: Encoder,
    bottleneck: int | None = None,
    recurrent: int | None = None,
    repeats: int | None = None,
    initial: str = "svd",
    seed: int = 0,
    name: str | None = None,
    texts: Iterable[str] | None = None,
) -> Encoder:
    """Return a compressed encoder; uncompressed parts are copies from the assistant.

    Args:
        assistant: encoder of a kind in `metasearch.encoders.compressed.BACKBONES`.
        bottleneck: columns K of the word table's narrow factor; none leaves the table whole.
        recurrent: layers M to keep, the first of the assistant's L; none keeps all.
        repeats: number of times they run; by default L/M. 1 makes a student without recurrence.
        initial: initial bottleneck.
        seed: seed of fresh weights.
        name: name of the student in results; by default the assistant's name with K and M.
        texts: weight words by their frequency (plus one) in `svd`; by default all words count the same.

    Raises:
        EncoderError: the assistant is of a kind that cannot be compressed, or is compressed already.
        ConfigError: a number does not fit the assistant or is missing, or `initial` is unknown or needs a bottleneck.
        DataError: there are no texts.
    """
    check_initial(initial, bottleneck)
    if bottleneck is None and recurrent is None and repeats is None:
        raise ConfigError("nothing to compress: give a bottleneck or a number of recurrent layers")
    source = transformer_of(assistant.model)
    config = CompressedConfig(backbone=source.config, bottleneck=bottleneck, recurrent=recurrent, repeats=repeats)
    config._attn_implementation = source.config._attn_implementation
    with seeded(seed_of(seed, "student")):  # weights are made on the CPU
        student = CompressedModel(config)
        # Weights of the same name in both: the student's layers are numbered as the assistant's first.
        own = student.backbone.state_dict().keys()
        shared = {name: weight for name, weight in source.state_dict().items() if name in own}
        # Not strict, as a factorised table has other names than a whole one.
        student.backbone.load_state_dict(shared, strict=False)
        if initial == "random":
            # As PyTorch draws them: Embedding N(0, 1), Linear U(±1/√K), LayerNorm 1 and 0.
            for module in student.backbone.embeddings.modules():
                if isinstance(module, nn.Embedding | nn.Linear | nn.LayerNorm):
                    module.reset_parameters()
    table = student.get_input_embeddings()
    if initial == "svd" and isinstance(table, FactorisedEmbedding):
        words = source.get_input_embeddings().weight
        table.approximate(words, None if texts is None else _counts(assistant, texts, len(words)))
    label = name or "".join([assistant.name, f"-b{bottleneck}" * bool(bottleneck), f"-r{recurrent}" * bool(recurrent)])
    made = Encoder(with_transformer(assistant.model, student.to(torch.float32)), label, assistant.max_length)
    return made.to(assistant.device)


def _counts(encoder: Encoder, texts: Iterable[str], size: int) -> torch.Tensor:
    """Return how often an encoder reads each word `(V,)` in texts, special tokens and prompts included, and 1 more."""
    prompt, limit = prompt_of(encoder.model, "text"), encoder.limit("text")

    def tokenise(batch: list[str]) -> Iterable[Sequence[int]]:
        return encoder.input.tokenise(batch, limit)["input_ids"]

    return 1 + count_tokens(tokenise, (prompt + text for text in each_text(texts)), size)


def with_transformer(model: SentenceTransformer, transformer: Any) -> SentenceTransformer:
    """Return a copy of a model around another transformer; the model's own is not copied."""
    return copy.deepcopy(model, {id(model[0].auto_model): transformer})


POSITIONS = 32
"""Positions whose mean vector stands for all, the first ones: about the length of a sentence.

Rows of `mini` find 76.8 of 100 translations of Tatoeba so, 72.9 with all of its 512 and 71.4 without any.
"""
_WORDS = 512
"""Words that the encoder reads at a time."""
_TEXTS = 4096
"""Texts that are tokenised at a time."""

Tokenise = Callable[[list[str]], Iterable[Sequence[int]]]


def make_static(
    encoder: Encoder,
    rows: str = "words",
    dimensions: int | None = None,
    texts: Iterable[str] | None = None,
    name: str | None = None,
) -> Encoder:
    """Return an encoder's static student, which plain sentence-transformers loads, without prompts.

    Args:
        encoder: the encoder; a static one keeps its own rows.
        rows: `words` skips modules after the pooling; `tokens` includes them.
        dimensions: columns of the best approximation of the rows, weighted by frequency where texts are given; by
            default all.
        texts: say how frequent each word is. The mean over all of their words is subtracted from each row; by default
            nothing is.
        name: name of the student in results; by default the encoder's with `-static`.

    Raises:
        EncoderError: the encoder's tokenizer is written in Python, or its embedding block is of an unknown kind.
        ConfigError: `dimensions` is below 1, or not below the present dimensions.
        DataError: the texts have no words.
    """
    tokenizer = _tokenizer(encoder)
    table = _rows(encoder, rows)
    if dimensions is not None:
        check_fewer("dimensions", dimensions, table.shape[1], f"word vectors have {table.shape[1]} dimensions")
    shares = None
    if texts is not None:

        def tokenise(batch: list[str]) -> Iterable[Sequence[int]]:
            return (text.ids for text in tokenizer.encode_batch(batch, add_special_tokens=False))

        counts = count_tokens(tokenise, map(remove_invisible, each_text(texts)), len(table))
        shares = (counts / counts.sum()).to(table)
        table = table - shares @ table
    if dimensions is not None:
        basis = principal_directions(table, dimensions, shares)
        table = (table.to(basis) @ basis).to(table)
    modules = [StaticEmbedding(tokenizer, embedding_weights=table.contiguous()), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu")
    return Encoder(model, name or f"{encoder.name}-static", encoder.max_length).to(encoder.device)


def blank(encoder: Encoder) -> Encoder:
    """Return a static encoder with the words and dimensions of an encoder's static student, filled with zeros."""
    tokenizer = _tokenizer(encoder)
    table = torch.zeros(_size(encoder), encoder.dimension())
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, table)], device="cpu")
    return Encoder(model, encoder.name, encoder.max_length)


def _tokenizer(encoder: Encoder) -> Tokenizer:
    """Return a copy of the tokenizer without truncation and padding."""
    found = encoder.model.tokenizer
    backend = found if isinstance(found, Tokenizer) else getattr(found, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(f"{encoder.name}: its tokenizer is written in Python; a static encoder needs one in Rust")
    made = Tokenizer.from_str(backend.to_str())
    made.no_truncation()
    made.no_padding()
    return made


def _size(encoder: Encoder) -> int:
    return int(encoder.input.words.num_embeddings)


@torch.no_grad()
def _rows(encoder: Encoder, rows: str) -> Tensor:
    """Return the rows `(V, D)`."""
    if is_static(encoder.model):
        table: Tensor = encoder.input.words.weight.detach().clone()
        return table
    network = _levelled(encoder) if rows == "words" else encoder.embedder
    before, after = ([], []) if rows == "words" else _specials(encoder.model.tokenizer)
    made = []
    for words in torch.split(torch.arange(_size(encoder), device=encoder.device), _WORDS):
        ids = [words.new_tensor(special).expand(len(words), -1) for special in (before, after)]
        features = {"input_ids": torch.cat([ids[0], words[:, None], ids[1]], dim=1)}
        features["attention_mask"] = torch.ones_like(features["input_ids"])
        made.append(network(features, "embedding" if rows == "words" else "pooled"))
    return torch.cat(made)


def _levelled(encoder: Encoder) -> Embedder:
    """Return a copy of the network with shared weights, where all positions have the mean position vector."""
    read = encoder.input
    if read.position_table is None:
        whole: Embedder = encoder.embedder
        return whole
    weight = read.position_table.weight
    mean = weight[read.first_position :][:POSITIONS].mean(0, keepdim=True)
    memo = {id(part): part for part in (*encoder.embedder.parameters(), encoder.model.tokenizer)}
    memo[id(weight)] = nn.Parameter(mean.expand_as(weight).clone())
    copied: Embedder = copy.deepcopy(encoder.embedder, memo)
    return copied


def _specials(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens before and behind a text."""
    encoded = tokenizer("a", return_special_tokens_mask=True)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
    first, last = special.index(0), len(special) - special[::-1].index(0)
    return ids[:first], ids[last:]


def count_tokens(tokenise: Tokenise, texts: Iterable[str], size: int) -> Tensor:
    """Return how often each of `size` tokens is in texts, `(V,)`; `DataError` where there are none."""
    counts, rest = torch.zeros(size, dtype=torch.long), iter(texts)
    while batch := list(islice(rest, _TEXTS)):
        numbers = [number for row in tokenise(batch) for number in row]
        counts += torch.bincount(torch.tensor(numbers, dtype=torch.long), minlength=size)
    if not counts.any():
        raise DataError("no texts to count words in")
    return counts
