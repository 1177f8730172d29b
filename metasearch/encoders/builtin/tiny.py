"""A small untrained encoder made from a seed, for the embedded benchmark and for tests; needs no download.

One BERT layer over a byte-fallback BPE vocabulary of the embedded benchmark's languages. Fresh token vectors make texts
that share words look alike, but its positions are twice as loud as its words. To read past them is what a learner can
find out from a few examples, in any language, and what makes it better in all of them.
"""

import tempfile
from contextlib import ExitStack
from importlib.resources import as_file, files

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from metasearch.config.roles import MaxLength
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.loader_log import quiet
from metasearch.encoders.random_state import seeded
from metasearch.errors import EncoderError

LICENCE = "apache-2.0"
DIMENSIONS = 128
POSITIONS = 512
_POSITION_STD = 0.04


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return a fresh encoder, the same for a seed; `EncoderError` where the folder of temporary files is read-only."""
    quiet()
    with as_file(files("metasearch.encoders.builtin") / "tiny_tokenizer.json") as path:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(path),
            model_max_length=POSITIONS,
            unk_token="[UNK]",
            pad_token="[PAD]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            mask_token="[MASK]",
        )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=DIMENSIONS,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=2 * DIMENSIONS,
        max_position_embeddings=POSITIONS,
    )
    with seeded(seed % 2**63):
        bert = BertModel(config, add_pooling_layer=False)
        torch.nn.init.normal_(bert.embeddings.position_embeddings.weight, std=_POSITION_STD)
        # Its pooler, which nothing uses, is drawn when it is opened.
        transformer = _transformer(bert, tokenizer)
    pooling = Pooling(DIMENSIONS, pooling_mode="mean")
    model = SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu")
    encoder = Encoder(model, "tiny", max_length)
    encoder.seeded = True
    return encoder


def _transformer(bert: BertModel, tokenizer: PreTrainedTokenizerFast) -> Transformer:
    """Return the module of sentence-transformers around a model; it takes one from a folder only."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            bert.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        except Exception as error:  # safetensors and tokenizers raise errors of their own for a full disk
            place = tempfile.tempdir or "the folder for temporary files"
            reason = getattr(error, "strerror", None) or error
            raise EncoderError(
                f"encoder 'tiny' needs to write to {place}: {reason}; free space or set TMPDIR"
            ) from error
        transformer = Transformer(folder, max_seq_length=POSITIONS)
    # The folder has another name each time, which would be saved with the encoder.
    transformer.auto_model.config._name_or_path = ""
    return transformer
