"""A small parallel corpus, an assistant, and whole distillations that take a second.

The texts are those of the embedded benchmark, which says the same in eight languages.
"""

import json
import tempfile
from functools import partial
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel

from helpers.commands import metasearch
from metasearch.config.library import shipped
from metasearch.encoders.builtin import tiny
from metasearch.runs.rows import read_rows

STAGES = ("assistant", "embedding", "student", "contrast")
FOLDERS = ("1-assistant", "2-embedding", "3-student", "4-contrast")
LAYERS, PAIRS, DEV, BATCH = 4, 64, 5, 8


def texts(code):
    """Return the sentences and questions of the embedded benchmark in a language; the same number says the same."""
    lines = (shipped() / "demo" / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()
    articles = [json.loads(line) for line in lines]
    return [t for a in articles for t in (*a["sentences"], *(asked["question"] for asked in a["questions"]))]


def write_corpus(folder, names=("en-de", "en-tr"), count=PAIRS):
    """Write one file for each name, which ends in `en-<code>`; of languages that there are none of, German is taken."""
    folder.mkdir(parents=True)
    for name in names:
        code = name.rpartition("-")[2]
        known = code if (shipped() / "demo" / f"{code}.jsonl").is_file() else "de"
        rows = list(zip(texts("en"), texts(known), strict=True))[:count]
        (folder / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return folder


def save_assistant(folder, layers=LAYERS, dimensions=tiny.DIMENSIONS, extra=(), positions=64, longest=None):
    """Write an untrained encoder that plain sentence-transformers loads.

    Args:
        folder: to be made.
        layers: of the encoder.
        dimensions: of its vectors.
        extra: tokens beside those of the built-in encoder.
        positions: tokens that it can take.
        longest: tokens that it was published with; by default all that it can take.
    """
    tokenizer = tiny.build().model.tokenizer
    tokenizer.add_tokens(list(extra))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=dimensions,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=dimensions,
        max_position_embeddings=positions,
    )
    with torch.random.fork_rng(devices=[]), tempfile.TemporaryDirectory() as below:
        torch.manual_seed(1)
        BertModel(config, add_pooling_layer=False).save_pretrained(below)
        tokenizer.save_pretrained(below)
        modules = [Transformer(below, max_seq_length=longest or positions), Pooling(dimensions, pooling_mode="mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def small(*stages, **more):
    """Return flags that make stages of these names small, with further values such as `budget__eval_every=2`."""
    values = {"corpus__dev": DEV, "budget__batch": BATCH, **more}
    return [
        f"--set=stages.{stage}.{key.replace('__', '.')}={value}" for stage in stages for key, value in values.items()
    ]


def flags(place, *more, steps=3):
    """Return flags of `metasearch distill` for recipe `compress` with the corpus and the assistant in a folder."""
    made = ["--set=student.bottleneck=16", "--set=student.recurrent=2", f"--max-steps={steps}"]
    given = [f"--assistant={place / 'assistant'}", f"--corpus={place / 'corpus'}", "--teacher=tiny"]
    return [*given, *made, *small(*STAGES), *more]


distill = partial(metasearch, "distill")
"""Runs `metasearch distill`, as `metasearch` does."""


def weights(folder: Path) -> bytes:
    """Return the bytes of the weights in a run, or in a stage of one."""
    first, *_ = sorted((folder / "model").glob("model.safetensors")) or sorted(
        (folder / "model").glob("0_*/*.safetensors")
    )
    return first.read_bytes()


def events(folder: Path):
    """Return the lines of the log of a stage."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def results(run: Path):
    """Return the scores of a run."""
    return read_rows(run / "results.jsonl")
