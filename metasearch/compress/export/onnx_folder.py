"""Writes an encoder as a folder that onnxruntime, and programs such as transformers.js, read without torch.

| file | what it is |
|---|---|
| `onnx/model.onnx` | the graph in float32; in eight bits it is `onnx/model_quantized.onnx` |
| `tokenizer.json`, `tokenizer_config.json` | the tokenizer, with the longest input and padding |
| `config.json` | kind and sizes of the network, which transformers.js asks for |
| `config_sentence_transformers.json` | prompts, under the names of sentence-transformers |
| `metasearch.json` | lengths and prompts by role, dimension, where the graph comes from, scores |
"""

import json
import logging
from pathlib import Path
from typing import Any, get_args

from metasearch.compress.export.check import difference
from metasearch.compress.export.facts import FILE, Facts
from metasearch.compress.export.graph import build_graph, save
from metasearch.compress.export.onnx_encoder import OnnxEncoder
from metasearch.compress.export.quantise import quantise
from metasearch.compress.export.tokenizer_files import write_tokenizer
from metasearch.config.recipe import MaxLength, Role
from metasearch.encoders.compressed import native_config
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.inputs import is_static, transformer_of
from metasearch.encoders.lengths import UNLIMITED
from metasearch.encoders.prompts import written_out
from metasearch.encoders.static import STATIC
from metasearch.runs.versions import installed, versions

log = logging.getLogger(__name__)

GRAPH, QUANTISED = "onnx/model.onnx", "onnx/model_quantized.onnx"
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


def write_onnx(encoder: Encoder, folder: Path, int8: bool = False) -> Facts:
    """Write an encoder as an ONNX graph to an empty folder; returns what `metasearch.json` says.

    The graph is held against the encoder before it is kept, with `int8` before it is rounded.

    Args:
        encoder: the encoder.
        folder: gets the files.
        int8: whether to store weights in eight bits.

    Raises:
        EncoderError: the network cannot be written as a graph, the tokenizer not as a file, or the vectors differ.
    """
    log.info("exporting %s to ONNX: about 15 seconds", encoder.name)
    graph = build_graph(encoder)
    save(graph, folder / GRAPH)
    roles: tuple[Role, ...] = get_args(Role)
    lengths = {role: encoder.limit(role) for role in roles}
    write_tokenizer(encoder, folder, max(lengths.values()))
    _write(folder / "config.json", _config(encoder, max(lengths.values())))
    _write(folder / "config_sentence_transformers.json", _prompts(encoder))
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
    if int8:
        for path in (folder / GRAPH).parent.iterdir():
            path.unlink()
        quantise(graph)
        save(graph, folder / QUANTISED)
        facts = facts.model_copy(update={"precision": "int8", "model": QUANTISED})
    write_facts(folder, facts)
    return facts


def write_facts(folder: Path, facts: Facts) -> None:
    """Write `metasearch.json`."""
    (folder / FILE).write_text(facts.text(), encoding="utf-8")


def _config(encoder: Encoder, longest: int) -> dict[str, Any]:
    """Return the configuration of the equivalent standard model, or the facts about static embeddings."""
    if is_static(encoder.model):
        words = encoder.input.words
        sizes = {"vocab_size": words.num_embeddings, "hidden_size": words.embedding_dim}
        return {"model_type": STATIC, **sizes, "max_position_embeddings": longest}
    config: dict[str, Any] = native_config(transformer_of(encoder.model)).to_dict()
    return {key: value for key, value in config.items() if key != "_name_or_path"}


def _prompts(encoder: Encoder) -> dict[str, Any]:
    return {
        "model_type": "SentenceTransformer",
        "prompts": written_out(encoder.model),
        "default_prompt_name": encoder.model.default_prompt_name,
        "similarity_fn_name": encoder.model.similarity_fn_name,
    }


def _write(path: Path, tree: dict[str, Any]) -> None:
    path.write_text(json.dumps(tree, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
