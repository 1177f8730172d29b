"""Averages the weights of two encoders with the same architecture, such as one before and after a training.

    python -m benchmarks.mini.averaging mini runs/maml/model --share 0.5 -o half-way

The mean keeps old knowledge and new: (1 − share) · first + share · second (Wortsman et al. 2022, "Robust fine-tuning of
zero-shot models", equation 1). Tokenizer, prompts and lengths come from the first encoder.
"""

from collections.abc import Mapping
from pathlib import Path

import click
from torch import Tensor

from benchmarks.common.command import Command
from metasearch.encoders.load import load_encoder
from metasearch.errors import EncoderError
from metasearch.io.output import whole

State = Mapping[str, Tensor]
"""Name → tensor, as in `state_dict`."""


def average_encoders(first: str, second: str, share: float, output: Path) -> None:
    """Write the mean of two encoders to a new folder; `EncoderError` if they differ in more than weights."""
    made, other = (load_encoder(name, plain_for="averaging", device="cpu") for name in (first, second))
    states = made.model.state_dict(), other.model.state_dict()
    mean = average(*states, share) if _shapes(states[0]) == _shapes(states[1]) else None
    if mean is not None:
        for encoder in (made, other):
            encoder.model.load_state_dict(mean)
    # With the same weights, both have the same fingerprint unless tokenizer, modules or prompts differ.
    if mean is None or made.fingerprint != other.fingerprint:
        raise EncoderError(f"{first} and {second} differ in architecture, tokenizer or prompts: they have no mean")
    with whole(output) as folder:
        made.write(folder)


def average(first: State, second: State, share: float) -> dict[str, Tensor]:
    """Return (1 − share) · first + share · second, in float64 and then rounded once.

    A share of 0 or 1 changes no bit. Integers come from the first.
    """

    def mean(one: Tensor, other: Tensor) -> Tensor:
        if share == 0 or not one.is_floating_point():
            return one
        if share == 1:
            return other
        return ((1 - share) * one.detach().double() + share * other.detach().double()).to(one.dtype)

    return {name: mean(weight, second[name]) for name, weight in first.items()}


def _shapes(state: State) -> dict[str, tuple[object, ...]]:
    return {name: (weight.shape, weight.dtype) for name, weight in state.items()}


@click.command(cls=Command)
@click.argument("first")
@click.argument("second")
@click.option("--share", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Share of SECOND.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="New folder of the encoder.")
def main(first: str, second: str, share: float, output: Path) -> None:
    """Average the weights of the encoders FIRST and SECOND."""
    average_encoders(first, second, share, output)


if __name__ == "__main__":
    main()
