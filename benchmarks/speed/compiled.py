"""What `torch.compile` brings to forward and backward passes on a CPU, and what it costs before.

    python -m benchmarks.speed.compiled

An encoder of the shape of multilingual-e5-small with fewer layers and random weights, float32. Every meta-batch has
texts of other lengths, so passes of many sizes take turns, as they come and compiled with dynamic sizes
(`torch.compile(dynamic=True)`). Times are those of the processor; compilers that run as processes of their own are
counted. A compiler for C++ is needed.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import click
import torch
from torch import Tensor

from benchmarks.common.command import Command
from benchmarks.speed.fits import SHAPES, encoder_of

SIZES = ((8, 24), (16, 96), (12, 60), (4, 256), (24, 40), (6, 130))
"""Texts and tokens of each."""


@click.command(cls=Command)
@click.option("--layers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
def main(layers: int, rounds: int, threads: int) -> None:
    """Print what compiling takes, and how long passes take over those that are not compiled."""
    torch.set_num_threads(threads)
    model = encoder_of(replace(SHAPES["multilingual-e5-small"], layers=layers)).model[0].auto_model
    passes: dict[str, Callable[..., Tensor]] = {
        "plain": lambda ids: model(input_ids=ids, attention_mask=torch.ones_like(ids))[0],
    }
    passes["compiled"] = torch.compile(passes["plain"], dynamic=True)
    inputs = [torch.randint(5, 1000, size) for size in SIZES]
    first = {way: sum(seconds(run, ids) for ids in inputs) for way, run in passes.items()}
    ratios = []
    for number in range(rounds):
        taken = {}
        for way in sorted(passes, reverse=bool(number % 2)):
            taken[way] = sum(seconds(passes[way], ids) for ids in inputs)
        ratios.append(taken["compiled"] / taken["plain"])
    click.echo(f"the first {len(SIZES)} sizes: plain {first['plain']:.1f} s, compiled {first['compiled']:.1f} s")
    click.echo(f"then compiled over plain: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    click.echo(f"that is made up for after {made_up(first, taken['plain'], median(ratios))}")


def seconds(run: Callable[..., Tensor], ids: Tensor) -> float:
    """Return the processor time of a forward and a backward pass, that of finished child processes included."""
    before = os.times()
    torch.autograd.backward(run(ids).square().mean())
    after = os.times()
    return sum(after[:4]) - sum(before[:4])


def made_up(first: dict[str, float], plain: float, ratio: float) -> str:
    """Return after how many rounds of all sizes the time of compiling is gained."""
    if ratio >= 1:
        return "never"
    return f"{(first['compiled'] - first['plain']) / ((1 - ratio) * plain):.0f} rounds of {len(SIZES)} sizes"


if __name__ == "__main__":
    main()
