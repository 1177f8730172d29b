"""Which encoders can be trained in how much memory of a GPU, by what a training says before its first step.

    python -m benchmarks.speed.fits

First-order MAML with the sets of the paper (k 8, q 4, 3 negatives), every text as long as LAReQA allows (96 and 256
tokens). What autograd keeps is measured on a CPU, on layers of these shapes with random weights; a word table of the
real size is added to weights and optimiser. No row is kept: the figures follow from shapes.
"""

import tempfile
from dataclasses import dataclass

import click
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import XLMRobertaConfig, XLMRobertaModel

from benchmarks.common.command import Command
from metasearch.data.records import Candidate, Question
from metasearch.encoders.builtin import tiny
from metasearch.encoders.encoder import Encoder
from metasearch.encoders.open import quiet
from metasearch.episodes.episode import Episode, LabelledSet, Triplet
from metasearch.fast import FastGradients
from metasearch.jobs.compose import make_learner, resolved
from metasearch.runs.markdown import markdown
from metasearch.spec.arrangement import Arrangement
from metasearch.spec.library import load_recipe
from metasearch.spec.recipe import MaxLength
from metasearch.training.memory import step_memory

LENGTHS = MaxLength(question=96, candidate=256, text=256)
GIB = 2**30
CARDS = (8, 16, 24, 80)


@dataclass(frozen=True)
class Shape:
    """Layers, their width and heads, and rows of the word table."""

    layers: int
    width: int
    heads: int
    words: int


SHAPES = {
    "all-MiniLM-L6": Shape(6, 384, 12, 30_522),
    "multilingual-e5-small": Shape(12, 384, 12, 250_037),
    "XLM-R base": Shape(12, 768, 12, 250_002),
    "XLM-R large": Shape(24, 1024, 16, 250_002),
}


@click.command(cls=Command)
@click.option("--only", type=click.Choice(list(SHAPES)), multiple=True, help="Only these encoders; repeatable.")
def main(only: tuple[str, ...]) -> None:
    """Print what a step takes in GiB, and the smallest of the cards in which it fits."""
    quiet()
    lines = []
    for name in only or SHAPES:
        shape, encoder = SHAPES[name], encoder_of(SHAPES[name])
        table = (shape.words - encoder.input.words.num_embeddings) * shape.width
        parameters = encoder.parameter_count + table
        needs = [needed(encoder, table, bf16, again) / GIB for bf16 in (False, True) for again in (False, True)]
        cells = [f"{need:.1f} ({smallest(need)})" for need in needs]
        lines.append([name, f"{parameters / 1e6:.0f} M", *cells])
    heads = ["fp32", "fp32, computed again", "bf16", "bf16, computed again"]
    click.echo(markdown(["encoder", "parameters", *heads], lines, left=1))


def needed(encoder: Encoder, table: int, bf16: bool, again: bool) -> float:
    """Return the bytes of a step on a GPU, with so many more weights in the word table."""
    recipe = resolved(load_recipe("maml", ["options.first_order=true"]))
    learner = make_learner(recipe, encoder)
    gradients = FastGradients(encoder, workers=1, checkpointing="on" if again else "off")
    found = step_memory(learner, gradients, [episode(recipe.episodes.k, recipe.episodes.q)], recipe.outer, bf16)
    # The best weights lie on the CPU; the table is a weight with two moments of four bytes each.
    return found.needed - encoder.size + 3 * 4 * table


def smallest(need: float) -> str:
    """Return the smallest card with a tenth to spare."""
    return next((f"{card} GB" for card in CARDS if need * GIB <= 0.9 * card * 1e9), "more")


def encoder_of(shape: Shape) -> Encoder:
    """Return an encoder of a shape, with random weights and the small word table of `tiny`."""
    tokenizer = tiny.build().model.tokenizer
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.width,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        transformer = Transformer(folder)
    model = SentenceTransformer(modules=[transformer, Pooling(shape.width, pooling_mode="mean")], device="cpu")
    return Encoder(model, "random", LENGTHS)


def episode(k: int, q: int) -> Episode:
    """Return an episode whose texts are all longer than the limits; each is another one."""
    variant = Arrangement.parse("el_el -> el_el").variants[0]
    count = iter(range(1000))

    def text() -> str:
        return f"{next(count)} " + "the old key " * 200

    def triplet() -> Triplet:
        number = str(next(count))
        question = Question(number, "el", text(), "article")
        positive, negative = (Candidate(f"{number}{side}", "el", text(), "article") for side in "pn")
        return Triplet(question, positive, negative)

    # Three negatives of a question are three triplets that share question and positive.
    def labelled(size: int) -> LabelledSet:
        firsts = [triplet() for _ in range(size)]
        others = [Triplet(t.question, t.positive, triplet().negative) for t in firsts for _ in range(2)]
        return LabelledSet(variant, tuple([*firsts, *others]))

    return Episode(Arrangement((variant, variant)), (labelled(k), labelled(q)))


if __name__ == "__main__":
    main()
