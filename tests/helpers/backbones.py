"""Tiny untrained encoders of every kind that can be compressed, around the tokenizer of the built-in one."""

import copy
import tempfile
from functools import cache

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from transformers import (
    AutoModel,
    BertConfig,
    CamembertConfig,
    DistilBertConfig,
    ElectraConfig,
    GPT2Config,
    ModernBertConfig,
    MPNetConfig,
    RobertaConfig,
    T5Config,
    XLMRobertaConfig,
)

from metasearch.compress.student import make_student
from metasearch.config.roles import MaxLength
from metasearch.encoders.builtin import tiny
from metasearch.encoders.compressed import describe
from metasearch.encoders.encoder import Encoder

HIDDEN, LAYERS, POSITIONS = 16, 6, 40
LENGTHS = MaxLength(question=30, candidate=30, text=30)
TEXTS = ["Where is the key?", "", "أين المفتاح؟", "กุญแจ 🗝️ κλειδί", "the key " * 20, "x"]

LOCAL_AND_GLOBAL = ("sliding_attention", "full_attention")

_COMMON = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": POSITIONS,
}
CONFIGS = {
    "xlm-roberta": lambda words: XLMRobertaConfig(vocab_size=words, type_vocab_size=1, pad_token_id=0, **_COMMON),
    "roberta": lambda words: RobertaConfig(vocab_size=words, type_vocab_size=1, pad_token_id=0, **_COMMON),
    "bert": lambda words: BertConfig(vocab_size=words, pad_token_id=0, **_COMMON),
    "distilbert": lambda words: DistilBertConfig(
        vocab_size=words, dim=HIDDEN, n_layers=LAYERS, n_heads=2, hidden_dim=24, max_position_embeddings=POSITIONS
    ),
    "mpnet": lambda words: MPNetConfig(vocab_size=words, **_COMMON),
    "camembert": lambda words: CamembertConfig(vocab_size=words, type_vocab_size=1, pad_token_id=0, **_COMMON),
    "electra": lambda words: ElectraConfig(vocab_size=words, embedding_size=HIDDEN, **_COMMON),
    "electra-narrow": lambda words: ElectraConfig(vocab_size=words, embedding_size=8, **_COMMON),
    # Every other layer sees 3 tokens on each side, fewer than most texts have.
    "modernbert": lambda words: ModernBertConfig(
        vocab_size=words, pad_token_id=0, local_attention=6, layer_types=[*LOCAL_AND_GLOBAL] * 3, **_COMMON
    ),
}


OTHERS = {
    # Heads that add to a score by the distance of two tokens, and heads that see no later token.
    "t5": lambda words: T5Config(
        vocab_size=words, d_model=HIDDEN, d_kv=8, d_ff=24, num_heads=2, num_layers=LAYERS, pad_token_id=0
    ),
    "gpt2": lambda words: GPT2Config(
        vocab_size=words, n_embd=HIDDEN, n_head=2, n_inner=24, n_layer=LAYERS, n_positions=POSITIONS
    ),
}
"""Kinds that cannot be compressed."""

RECURRENT = [kind for kind in CONFIGS if kind != "modernbert"]
"""Kinds whose layers can run more than once."""


def make(kind, dense=False, seed=0, layers=LAYERS):
    """Return an encoder of a kind, with 6 layers or others; every weight is drawn, biases and LayerNorm included."""
    return copy.deepcopy(_made(kind, dense, seed, layers))


def shrunk(encoder, bottleneck=4):
    """Return a student of an encoder: a narrow word table, and three layers, which run twice where its kind can."""
    return make_student(encoder, bottleneck, 3, None if encoder.input.kind in RECURRENT else 1)


@cache
def _tokenizer():
    return tiny.build().model.tokenizer


@cache
def _made(kind, dense, seed, layers):
    """Make an encoder by way of a folder, which takes so long that it is done once."""
    with torch.random.fork_rng(devices=[]), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(seed)
        config = {**CONFIGS, **OTHERS}[kind](len(_tokenizer()))
        if kind in CONFIGS:
            describe(config, range(1, layers + 1))
        model = AutoModel.from_config(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, mean=float(parameter.ndim == 1), std=0.3)
        model.save_pretrained(folder)
        _tokenizer().save_pretrained(folder)
        transformer = Transformer(folder, max_seq_length=25)
        further = [Dense(HIDDEN, 5)] if dense else []
    modules = [transformer, Pooling(HIDDEN, pooling_mode="mean"), *further]
    model = SentenceTransformer(modules=modules, device="cpu", prompts={"query": "query: ", "document": "passage: "})
    return Encoder(model, kind, LENGTHS)
