"""Writes an encoder as a folder that onnxruntime, and programs such as transformers.js, read without torch.

| file | what it is |
|---|---|
| `onnx/model.onnx` | the graph |
| `tokenizer.json`, `tokenizer_config.json` | the tokenizer, with the longest input and padding |
| `config.json` | kind and sizes of the network, which transformers.js asks for |
| `config_sentence_transformers.json` | prompts, under the names of sentence-transformers |
| `metasearch.json` | lengths and prompts by role, dimension, where the graph comes from, scores |
"""

import json
import logging
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from metasearch.compress.onnx_encoder import FILE, TOKENIZER, Facts, OnnxEncoder
from metasearch.compress.onnx_graph import build_graph, save
from metasearch.config.roles import MaxLength, Role
from metasearch.encoders.compressed import native_config
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.lengths import UNLIMITED
from metasearch.encoders.prompts import written_out
from metasearch.errors import EncoderError
from metasearch.runs.versions import installed, versions

log = logging.getLogger(__name__)

GRAPH = "onnx/model.onnx"
_PACKAGES = ("onnx", "onnxscript", "onnxruntime", "tokenizers")
EXAMPLE = """import json
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

FOLDER = "{folder}"
facts = json.load(open(f"{{FOLDER}}/metasearch.json", encoding="utf-8"))
tokenizer = Tokenizer.from_file(f"{{FOLDER}}/tokenizer.json")
session = onnxruntime.InferenceSession(f"{{FOLDER}}/{{facts['model']}}")

def encode(texts, role):  # role: question, candidate or text
    tokenizer.enable_truncation(**{{**tokenizer.truncation, "max_length": facts["lengths"][role]}})
    rows = tokenizer.encode_batch([facts["prompts"][role] + text for text in texts])
    columns = {{"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}}
    read = [each.name for each in session.get_inputs()]
    inputs = {{name: np.array([getattr(row, columns[name]) for row in rows], np.int64) for name in read}}
    return session.run(None, inputs)[0]

answers = ["Der Schlüssel liegt unter der Matte.", "Το ψωμί ψήνεται στον φούρνο."]
print(encode(["Where is the key?"], "question") @ encode(answers, "candidate").T)
"""
"""What uses a folder by onnxruntime and tokenizers alone; `folder` is where it is."""


def write_onnx(encoder: Encoder, folder: Path) -> Facts:
    """Write an encoder as an ONNX graph to an empty folder; returns the content of `metasearch.json`.

    The graph is compared with the encoder. `EncoderError` if the network or tokenizer cannot be written, or the
    embeddings differ.
    """
    encoder.embedder.eval()
    log.info("exporting %s to ONNX: about 15 seconds", encoder.name)
    save(build_graph(encoder), folder / GRAPH)
    roles: tuple[Role, ...] = get_args(Role)
    lengths = {role: encoder.limit(role) for role in roles}
    _write_tokenizer(encoder, folder, max(lengths.values()))
    # Of a compressed encoder, the standard model that computes the same.
    config = native_config(encoder.model[0].auto_model).to_dict()
    _set(folder / "config.json", {key: value for key, value in config.items() if key != "_name_or_path"})
    prompts = {
        "model_type": "SentenceTransformer",
        "prompts": written_out(encoder.model),
        "default_prompt_name": encoder.model.default_prompt_name,
        "similarity_fn_name": encoder.model.similarity_fn_name,
    }
    _set(folder / "config_sentence_transformers.json", prompts)
    facts = Facts(
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        precision="fp32",
        model=GRAPH,
        dimension=encoder.dimension(),
        longest=None if encoder.input.longest >= UNLIMITED else encoder.input.longest,
        lengths=MaxLength(**lengths),
        prompts={role: encoder.prompt(role) for role in roles},
        difference=0,
        versions={**versions(), **{name: installed(name) or "" for name in _PACKAGES}},
    )
    write_facts(folder, facts)
    log.info("comparing the graph with %s", encoder.name)
    facts = facts.model_copy(update={"difference": difference(encoder, OnnxEncoder(folder))})
    write_facts(folder, facts)
    return facts


def write_facts(folder: Path, facts: Facts) -> None:
    """Write `metasearch.json`."""
    (folder / FILE).write_text(json.dumps(facts.model_dump(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _write_tokenizer(encoder: Encoder, folder: Path, longest: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`, with truncation at `longest` tokens and padding.

    `EncoderError` if the tokenizer is written in Python.
    """
    tokenizer = encoder.model.tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise EncoderError(
            f"{encoder.name}: its tokenizer is written in Python; ONNX needs a fast tokenizer (tokenizer.json)"
        )
    tokenizer.save_pretrained(folder)
    made = Tokenizer.from_str(backend.to_str())
    made.enable_truncation(longest, direction=tokenizer.truncation_side)
    made.enable_padding(
        direction=tokenizer.padding_side,
        pad_id=tokenizer.pad_token_id,
        pad_type_id=tokenizer.pad_token_type_id,
        pad_token=tokenizer.pad_token,
    )
    made.save(str(folder / TOKENIZER))
    _set(folder / "tokenizer_config.json", {"model_max_length": longest})


def _set(path: Path, values: dict[str, Any]) -> None:
    """Set keys in a JSON file; new keys are added."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**before, **values}, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


# Compare an exported graph with its encoder: every embedding must be equal up to rounding.

TOLERANCE = 1e-5
"""Largest absolute difference that two numbers of a vector may have."""
_LONG = 512
"""Tokens of the longest text that is checked, if the encoder can take as many; lengths of roles may be shorter."""
_BATCHES = ((1, _LONG), (7, 64), (64, 32))
"""Texts in a batch of random tokens, and tokens of its longest text."""
TEXTS = (
    "", " ", "a", "Where is the key?", "Der Schlüssel liegt unter der Fußmatte.", "أين المفتاح؟ تحت السجادة",
    "กุญแจอยู่ใต้พรม", "चाबी कहाँ है?", "钥匙在垫子下面", "🗝️ e\u0301 \u200b\t\n x",
    "[CLS] [SEP] [MASK] <s> </s> <mask> <pad>", "A text that is longer than any encoder reads, " * 200,
)  # fmt: skip


def difference(encoder: Encoder, exported: OnnxEncoder) -> float:
    """Return the largest difference between the embeddings of an encoder in evaluation mode and its graph.

    Compared are texts of many scripts in each role, alone and in one batch, and random tokens in batches of 1, 7 and 64
    texts. `EncoderError` if the difference is above 1e-5, or not a number.
    """
    found: dict[str, float] = {}
    roles: tuple[Role, ...] = get_args(Role)
    for role in roles:
        # Attention to a text takes memory for each pair of its tokens. Without a limit there is no truncation to check.
        read = TEXTS if encoder.limit(role) < UNLIMITED else tuple(text[:_LONG] for text in TEXTS)
        for texts in (*([text] for text in read), read):
            what = f"{role} {texts[0][:40]!r}" if len(texts) == 1 else f"texts as {role} in one batch"
            found[what] = _largest(encoder.encode(texts, role), exported.encode(texts, role))
    for count, longest in _BATCHES:
        features = encoder.padded(_random_rows(encoder, count, min(longest, encoder.input.longest)))
        with torch.no_grad():
            expected = encoder.embedder(features).float().cpu().numpy()
        columns = {name: column.cpu().numpy() for name, column in features.items()}
        found[f"{count} texts of up to {longest} tokens"] = _largest(expected, exported.run(columns))
    where, largest = max(found.items(), key=lambda item: np.inf if np.isnan(item[1]) else item[1])
    if not largest <= TOLERANCE:
        raise EncoderError(
            f"{encoder.name}: the ONNX graph differs from the encoder by {largest:.1e}, "
            f"of which {TOLERANCE:.0e} is allowed ({where})"
        )
    return largest


def _random_rows(encoder: Encoder, count: int, longest: int) -> list[NDArray[np.int32]]:
    """Return the tokens of random texts, `(columns, T)` each, the longest last: ids, a mask of ones and type 0."""
    drawn = np.random.default_rng(0)
    rows = []
    for length in (*drawn.integers(2, longest + 1, count - 1), longest):
        words = drawn.integers(0, len(encoder.input.words.weight), length)
        fill = {"input_ids": words, "attention_mask": np.ones(length), "token_type_ids": np.zeros(length)}
        rows.append(np.array([fill[name] for name in encoder.columns], np.int32))
    return rows


def _largest(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")
