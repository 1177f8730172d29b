"""Students: small encoders that distillation trains, made from an encoder's weights.

The word table is factorised and layers are recurrent: multi-stage distillation paper, section 3.1.3.

Notation used for tensor shapes: V words.
"""

import copy
from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from metasearch.config.compress import check_initial
from metasearch.config.seeding import seed_of
from metasearch.data.formats.given import each_text
from metasearch.encoders.compressed import CompressedConfig, CompressedModel, FactorisedEmbedding
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.prompts import prompt_of
from metasearch.encoders.random_state import seeded
from metasearch.errors import ConfigError, DataError


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
    source = assistant.model[0].auto_model
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


_TEXTS = 4096
"""Texts that are tokenised at a time."""


def _counts(encoder: Encoder, texts: Iterable[str], size: int) -> torch.Tensor:
    """Return how often an encoder reads each word `(V,)` in texts, special tokens and prompts included, and 1 more.

    `DataError` where there are none.
    """
    prompt, limit = prompt_of(encoder.model, "text"), encoder.limit("text")
    counts, rest = torch.zeros(size, dtype=torch.long), (prompt + text for text in each_text(texts))
    while batch := list(islice(rest, _TEXTS)):
        numbers = [number for row in encoder.input.tokenise(batch, limit)["input_ids"] for number in row]
        counts += torch.bincount(torch.tensor(numbers, dtype=torch.long), minlength=size)
    if not counts.any():
        raise DataError("no texts to count words in")
    return 1 + counts


def with_transformer(model: SentenceTransformer, transformer: Any) -> SentenceTransformer:
    """Return a copy of a model around another transformer; the model's own is not copied."""
    return copy.deepcopy(model, {id(model[0].auto_model): transformer})
