"""Writes multilingual-e5-small as a folder that plain sentence-transformers loads, from its packed file."""

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer
from transformers import BertConfig

from metasearch.encoders.e5.packed import Packed, read
from metasearch.encoders.e5.tokenizer import BOS, EOS, PAD, UNK, tokenizer
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
    """Write the encoder of a packed file into an empty folder: means of tokens, normalised, with E5's prompt.

    Raises:
        EncoderError: the file is damaged, or not that of multilingual-e5-small.
    """
    quiet()
    packed = read(source)
    if packed.special != (BOS, EOS, PAD, UNK):
        raise EncoderError(f"{source}: its special tokens have the numbers {packed.special}, not those of XLM-R")
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
    """Return the weights under the names and in the shapes of a BERT model.

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
    """Return the file's name of every weight → name and shape in a BERT model."""
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
