"""What `throughput.py` measures on: encoders of the shapes in question, and meta-batches of real text for them.

- `A1`: the word table of XLM-R (250,002 rows) 128 wide, three layers, random weights. Its tokens are 64,000 pieces that
  are learned from the paragraphs of XQuAD-R, spread over the table.
- `B`: all-MiniLM-L6-v2. It has few pieces for Greek or Hindi, so that nearly all candidates reach the limit.
- `B-de`: the same on German alone, which it cuts into pieces almost as well as English.
- `XLMR`: the layers of XLM-R base, random weights; 278 million parameters.
- `mini`: the built-in encoder.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

from metasearch.config.arrangement import Arrangement
from metasearch.config.library import load_recipe
from metasearch.config.recipe import Recipe
from metasearch.data.benchmark import load_benchmark
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.load import load_encoder
from metasearch.encoders.loader_log import quiet
from metasearch.episodes.episode import Episode
from metasearch.episodes.samplers import samplers
from metasearch.pipelines.factory import resolved

SPECIAL = 4
"""The first ids, `<s>`, `<pad>`, `</s>` and `<unk>`, stay where they are."""
STRIDE = 7919
"""A prime that does not divide the number of ids to spread over, so that no two meet."""


@dataclass(frozen=True)
class Random:
    """An encoder like XLM-R with random weights: rows of its word table, learned pieces, width, layers, heads."""

    words: int
    learned: int
    hidden: int
    layers: int
    heads: int


@dataclass(frozen=True)
class Shape:
    """An encoder and its text.

    Attributes:
        encoder: a built-in name, or a random encoder.
        language: the only language of the episodes, in place of the mode's arrangements.
        alone: measure only our step, because the others do not fit.
        second_order_steps: inner steps in second order; by default the recipe's.
    """

    encoder: str | Random
    language: str | None = None
    alone: bool = False
    second_order_steps: int | None = None


@dataclass(frozen=True)
class Scale:
    """Sizes of a run.

    Attributes:
        batch: episodes in a meta-batch.
        second_order_batch: the same in second order, where the peer is slow.
        assignments: settings of the recipes.
        apart: run each way in its own process.
    """

    task: str
    shapes: dict[str, Shape]
    batch: int
    second_order_batch: int
    assignments: tuple[str, ...] = ()
    apart: bool = True


SCALES = {
    "full": Scale(
        "lareqa",
        {
            "A1": Shape(Random(250_002, 64_000, 128, 3, 4)),
            "B": Shape("minilm", second_order_steps=2),
            "B-de": Shape("minilm", "de", second_order_steps=2),
            "XLMR": Shape(Random(250_002, 64_000, 768, 12, 12), alone=True),
            "mini": Shape("mini", alone=True),
        },
        batch=4,
        second_order_batch=2,
    ),
    "small": Scale(
        "demo",
        {
            "A1": Shape(Random(3000, 1200, 16, 1, 2)),
            "B": Shape("tiny"),
            "B-de": Shape("tiny", "de"),
            "XLMR": Shape(Random(3000, 1200, 24, 2, 2), alone=True),
            "mini": Shape("mini", alone=True),
        },
        batch=2,
        second_order_batch=1,
        assignments=("episodes.k=3", "episodes.q=2", "episodes.n_neg=2", "options.inner_steps=2"),
        apart=False,
    ),
}


@dataclass(frozen=True)
class Setting:
    """Settings of a step; they can be sent to another process.

    Attributes:
        encoder: a built-in name or a folder, from `encoder_of`.
        batch: episodes in a meta-batch.
        batches: number of meta-batches; the first is not timed.
    """

    scale: str
    shape: str
    encoder: str
    mode: str
    recipe: Recipe
    batch: int
    batches: int
    data: str | None = None
    device: Literal["cpu", "cuda"] = "cpu"

    @classmethod
    def of(cls, scale: str, shape: str, encoder: str, learner: str, rounds: int, **changes: Any) -> "Setting":
        """Return the setting of a learner; `changes` are fields, or `assignments` over those of the scale."""
        size = SCALES[scale]
        # Fine-tuning has no options.
        own = [each for each in size.assignments if learner != "fine-tune" or not each.startswith("options.")]
        recipe = resolved(load_recipe(learner, [*own, *changes.pop("assignments", ())]))
        mode = "mono-bi-multi" if learner == "maml-align" else "mono-bi"
        return replace(cls(scale, shape, encoder, mode, recipe, size.batch, rounds + 1), **changes)

    def make_encoder(self) -> Encoder:
        """Return a fresh encoder; each has the same weights."""
        limits = load_benchmark(SCALES[self.scale].task, data=self.data).task.max_length
        return load_encoder(self.encoder, limits, device=self.device)

    def episodes(self) -> list[list[Episode]]:
        """Return all meta-batches."""
        benchmark = load_benchmark(SCALES[self.scale].task, self.mode, data=self.data)
        language = SCALES[self.scale].shapes[self.shape].language
        if language:
            sets = len(benchmark.arrangements["meta-train"][0].variants)
            alone = Arrangement.parse(" -> ".join([f"{language}_{language}"] * sets))
            benchmark = replace(benchmark, arrangements={phase: [alone] for phase in benchmark.arrangements})
        sampler = samplers(benchmark, self.recipe, seed=0)["meta-train"]
        return [sampler.batch(number, self.batch) for number in range(self.batches)]


def encoder_of(scale: str, shape: str, folder: Path, data: str | None) -> str:
    """Return the name of the shape's encoder for `load_encoder`; one that has to be made is written to the folder."""
    wanted = SCALES[scale].shapes[shape].encoder
    if isinstance(wanted, str):
        return wanted
    quiet()
    candidates = load_benchmark(SCALES[scale].task, data=data).data.candidates
    paragraphs = list(dict.fromkeys(c.text.removeprefix(c.shown) or c.text for c in candidates))
    tokenizer = spread(learn_tokenizer(paragraphs, wanted.learned), wanted.words)
    config = XLMRobertaConfig(
        vocab_size=wanted.words,
        hidden_size=wanted.hidden,
        num_hidden_layers=wanted.layers,
        num_attention_heads=wanted.heads,
        intermediate_size=4 * wanted.hidden,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        XLMRobertaModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def learn_tokenizer(texts: Sequence[str], size: int) -> PreTrainedTokenizerFast:
    """Return a BPE tokenizer learned from texts, with the special tokens and the template of XLM-R."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    special = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special.values()), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{role}_token": token for role, token in {**special, "cls": "<s>", "sep": "</s>"}.items()},
    )


def spread(tokenizer: PreTrainedTokenizerFast, words: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer that cuts texts into the same pieces, whose ids lie anywhere below `words`."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    pieces = {piece: _place(number, words) for piece, number in state["model"]["vocab"].items()}
    taken = set(pieces.values())
    state["model"]["vocab"] = pieces | {f"<unused {i}>": i for i in range(words) if i not in taken}
    for token in state["added_tokens"]:
        token["id"] = _place(token["id"], words)
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)),
        model_max_length=tokenizer.model_max_length,
        model_input_names=tokenizer.model_input_names,
        **tokenizer.special_tokens_map,
    )


def texts_of(batches: Sequence[Sequence[Episode]]) -> dict[str, list[str]]:
    """Return the texts of all questions and of all candidates."""
    triplets = [t for batch in batches for episode in batch for examples in episode.sets for t in examples.examples]
    return {
        "question": [t.question.text for t in triplets],
        "candidate": [text for t in triplets for text in (t.positive.text, t.negative.text)],
    }


def _place(number: int, words: int) -> int:
    return number if number < SPECIAL else SPECIAL + (number - SPECIAL) * STRIDE % (words - SPECIAL)
