"""A static student: one vector a word, and the mean of its words' vectors for a text. It has no layers to run.

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

from metasearch.compress.plan import Rows
from metasearch.data.formats.blank import remove_invisible
from metasearch.encoders.encoder import Embedder, Encoder
from metasearch.encoders.inputs import is_static
from metasearch.encoders.layers import check_fewer
from metasearch.errors import DataError, EncoderError

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
    rows: Rows = "words",
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

        counts = count_tokens(tokenise, map(remove_invisible, texts), len(table))
        shares = (counts / counts.sum()).to(table)
    if shares is not None:
        table = table - shares @ table
    if dimensions is not None:
        table = _narrowed(table, dimensions, shares)
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
def _rows(encoder: Encoder, rows: Rows) -> Tensor:
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


def _narrowed(table: Tensor, dimensions: int, shares: Tensor | None) -> Tensor:
    """Project rows `(V, D)` on the D' directions with the largest (weighted) squared lengths: `(V, D')`.

    Uncentred principal components: a rotation changes no dot product, and a shift would.
    """
    rows = table.double()
    gram = rows.T @ (rows if shares is None else shares[:, None] * rows)
    # Eigenvalues come in ascending order.
    basis = torch.linalg.eigh(gram).eigenvectors.flip(1)[:, :dimensions]
    narrowed: Tensor = (rows @ basis).to(table)
    return narrowed
