"""Writes multilingual-e5-small as a folder that plain sentence-transformers loads, from its packed file."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram
from transformers import BertConfig, PreTrainedTokenizerFast

from metasearch.encoders.e5.packed import Packed, read
from metasearch.encoders.open import quiet
from metasearch.errors import EncoderError

QUERY = "query: "
"""What the encoder was trained to read before questions, and before texts whose meanings are compared."""

_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


def unpack(source: Path, folder: Path) -> None:
    """Write a packed file's encoder into an empty folder: mean pooling, normalised, with E5's prompt.

    Raises:
        EncoderError: the file is damaged, or not that of multilingual-e5-small.
    """
    quiet()
    packed = read(source)
    if packed.special != (BOS, EOS, PAD, UNK):
        raise EncoderError(f"{source}: its special tokens have the numbers {packed.special}, unlike XLM-R")
    with tempfile.TemporaryDirectory(dir=folder.parent) as plain:
        config = BertConfig(**vars(packed.shape), pad_token_id=PAD, architectures=["BertModel"], dtype="float32")
        config.save_pretrained(plain)
        tokenizer(packed.pieces, packed.shape.max_position_embeddings).save_pretrained(plain)
        save_file(state(packed), Path(plain) / "model.safetensors", metadata={"format": "pt"})
        transformer = Transformer(plain)
        # That folder's name, which is another each time, would be saved with the encoder.
        transformer.auto_model.config._name_or_path = ""
        modules = [transformer, Pooling(packed.shape.hidden_size, pooling_mode="mean"), Normalize()]
        prompts = dict.fromkeys(("query", "document", "passage"), QUERY)
        model = SentenceTransformer(modules=modules, prompts=prompts, default_prompt_name="query", device="cpu")
        model.save_pretrained(str(folder), create_model_card=False)
    # A quarter of a million pieces are read sooner without a line for each.
    path = folder / "tokenizer.json"
    path.write_text(Tokenizer.from_file(str(path)).to_str(pretty=False), encoding="utf-8")


def state(packed: Packed) -> dict[str, NDArray[np.float32]]:
    """Return the weights with a BERT model's names and shapes.

    E5 has no pooler and the file holds none; there is one of zeros, so that nothing draws a random one.

    Raises:
        EncoderError: a weight is missing, has another size than its place, or has no place.
    """
    shapes = _shapes(packed)
    wrong = shapes.keys() ^ packed.tensors.keys()
    wrong |= {name for name in shapes.keys() - wrong if packed.tensors[name].size != np.prod(shapes[name][1])}
    if wrong:
        raise EncoderError(f"the packed file and the encoder differ in {len(wrong)} weights, first '{min(wrong)}'")
    width = packed.shape.hidden_size
    weights = {name: packed.tensors[own].reshape(shape) for own, (name, shape) in shapes.items()}
    weights["pooler.dense.weight"] = np.zeros((width, width), np.float32)
    weights["pooler.dense.bias"] = np.zeros(width, np.float32)
    return weights


def _shapes(packed: Packed) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Map weight names in the file to names and shapes in a BERT model."""
    shape = packed.shape
    width, inner = shape.hidden_size, shape.intermediate_size
    rows = {"emb.word": shape.vocab_size, "emb.pos": shape.max_position_embeddings, "emb.type": shape.type_vocab_size}
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        own: (name, (rows[own], width) if own in rows else (width,)) for own, name in _EMBEDDINGS.items()
    }
    wide = {"fi": (inner, width), "fo": (width, inner)}
    for layer in range(shape.num_hidden_layers):
        for own, name in _LAYER.items():
            matrix = (width,) if name.endswith("LayerNorm") else wide.get(own, (width, width))
            there = f"encoder.layer.{layer}.{name}"
            shapes[f"l{layer}.{own}.w"] = (f"{there}.weight", matrix)
            shapes[f"l{layer}.{own}.b"] = (f"{there}.bias", matrix[:1])
    return shapes


# XLM-R's tokenizer from its pieces, without SentencePiece's table of characters.
#
# SentencePiece normalises with `nmt_nfkc`. That is NFKC but for these characters: some are dropped, some become spaces,
# the full-width tilde stays, and marks are not sorted, so that what a shadda stands before stays behind it. These last
# two are hidden from NFKC behind characters that Unicode leaves unassigned.

BOS, PAD, EOS, UNK = range(4)
"""Numbers of the special pieces in XLM-R."""

_DROPPED = r"[\x{1}-\x{8}\x{b}\x{e}-\x{1f}\x{7f}\x{8f}\x{9f}]"
_SPACES = r"[\t\n\f\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"
_HIDDEN = {"\uff5e": "\ufdd0", "\u0651": "\ufdd1"}
_SPACE = "▁"
_SPECIAL_TOKENS = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>"}


def tokenizer(pieces: Sequence[tuple[str, float]], longest: int) -> PreTrainedTokenizerFast:
    """Return the tokenizer.

    The class of the library for XLM-R would build its own normaliser anew and lose this one.

    Args:
        pieces: pieces with their log-probabilities, the special ones at the numbers of XLM-R.
        longest: longest input in tokens.
    """
    backend = Tokenizer(Unigram(list(pieces), unk_id=UNK, byte_fallback=False))
    backend.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_DROPPED), ""),
            normalizers.Replace(Regex(_SPACES), " "),
            *(normalizers.Replace(kept, stand_in) for kept, stand_in in _HIDDEN.items()),
            normalizers.NFKC(),
            *(normalizers.Replace(stand_in, kept) for kept, stand_in in _HIDDEN.items()),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(left=False, right=True),
        ]
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")
    backend.decoder = decoders.Metaspace(_SPACE, prepend_scheme="always")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", BOS), ("</s>", EOS)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=longest,
        model_input_names=["input_ids", "attention_mask"],
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        **{f"{role}_token": token for role, token in _SPECIAL_TOKENS.items()},
    )
