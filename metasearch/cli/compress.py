"""`metasearch compress`: build a small student from an encoder, and print the sizes of both."""

import json
from pathlib import Path
from typing import Any, get_args

import click

from metasearch.cli import _complete, _options
from metasearch.compress.plan import Initial, Plan, Rows
from metasearch.config.run import Device
from metasearch.errors import ConfigError

_ONE = click.IntRange(min=1)


class LayersType(click.ParamType):  # type: ignore[type-arg]  # generic in some releases of click only
    """A number of layers, or the numbers of some."""

    name = "N|LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | tuple[int, ...]:
        """Return the number or the numbers; a usage error for anything else."""
        words = str(value).split(",")
        if not all(word.strip().isdecimal() for word in words):
            self.fail(f"'{value}' is neither a number nor numbers such as 1,4,7", param, ctx)
        numbers = tuple(map(int, words))
        return numbers if len(numbers) > 1 else numbers[0]


@_options.command("compress")
@click.argument("encoder", shell_complete=_complete.encoders)
@click.option("--bottleneck", type=_ONE, metavar="K", help="Columns of the factorised embedding matrix.")
@click.option("--recurrent", type=_ONE, metavar="M", help="Layers to keep, the first of the encoder's.")
@click.option("--repeats", type=_ONE, metavar="R", help="Passes through the recurrent layers; by default depth stays.")
@click.option(
    "--layers", type=LayersType(),
    help="Layers to keep: how many, from the first to the last at equal distances, or which, such as 1,4,7.",
)  # fmt: skip
@click.option(
    "--merge", type=LayersType(),
    help="Layers after merging neighbours: how many, or the last of each group, such as 2,4,6.",
)  # fmt: skip
@click.option(
    "--feed-forward", type=_ONE, metavar="F",
    help="Neurons to keep in the feed-forward block of each layer; their new weights make up for the others.",
)  # fmt: skip
@click.option(
    "--static", type=click.Choice(get_args(Rows)),
    help="Static embeddings without layers: outputs of the embedding block (words), or of the whole encoder (tokens).",
)  # fmt: skip
@click.option("--dimensions", type=_ONE, metavar="D", help="Dimensions of the static embeddings; all by default.")
@_options.texts(
    "Texts that fit --merge and --feed-forward and count words for --bottleneck and --static, in languages that "
    "ENCODER knows: files or folders; repeatable."
)
@click.option(
    "--init", "initial", type=click.Choice(get_args(Initial)), default="svd", show_default=True,
    help="Initial bottleneck: the encoder's embedding matrix, or fresh weights as in the paper.",
)  # fmt: skip
@_options.texts(
    "Texts whose vocabulary is kept: files, or folders of .txt, .tsv and Moses files; repeatable.",
    "--trim-vocab",
    "trim",
)
@click.option(
    "--vocabulary", type=_ONE, metavar="N",
    help="Most frequent tokens of --trim-vocab to keep; rare words are split into smaller tokens.",
)  # fmt: skip
@_options.seed("Random seed of fresh weights, and of the choice among more texts than are needed.")
@click.option("--sizes-only", is_flag=True, help="Print the table and write nothing; a config.json is enough.")
@_options.options_group(_options.device, _options.trust, _options.output("Folder of the student; new or empty."))
@_options.as_json("the sizes")
def command(
    encoder: str,
    sizes_only: bool,
    device: Device,
    trust_remote_code: bool,
    output: Path | None,
    as_json: bool,
    **plan: Any,
) -> None:
    """Build a small student from ENCODER: an embedding matrix with a bottleneck, fewer, narrower or recurrent layers,
    or no layers.

    ENCODER is a built-in name, a local folder or a hub name; with --sizes-only also the folder or file of a
    configuration. The student is as good as its distillation: see `metasearch distill`.

    \b
    Examples:
      metasearch compress runs/assistant/model --bottleneck 128 --recurrent 3 -o student
      metasearch compress minilm --bottleneck 64 --recurrent 3 --trim-vocab corpus/ -o student
      metasearch compress e5 --trim-vocab corpus/ --vocabulary 32000 -o fewer-words
      metasearch compress e5 --layers 6 -o shallow
      metasearch compress e5 --merge 6 --feed-forward 512 --texts corpus/ -o merged
      metasearch compress mini --static words --texts corpus/ -o static
      metasearch compress xlm-r/config.json --bottleneck 128 --recurrent 3 --sizes-only
    """
    from metasearch.compress.output import claim
    from metasearch.compress.texts import text_files

    if sizes_only == (output is not None):
        raise ConfigError("say where the student goes with -o DIR, or --sizes-only to write nothing; one of them")
    Plan(**plan).check(writes=not sizes_only)
    if output is not None:
        claim(output)
    chosen = Plan(**{**plan, **{name: tuple(text_files(plan[name])) for name in ("trim", "texts")}})

    from metasearch.compress.sizes import RULE
    from metasearch.pipelines import compress, factory

    source = compress.bare_config(encoder) if sizes_only else None
    if source is None:
        source = factory.load_encoder(encoder, device=device, seed=chosen.seed, trust_remote_code=trust_remote_code)
    sizes = compress.forecast(source, chosen) if output is None else compress.compress(source, chosen, output)
    if as_json:
        before, after = (each.rows() for each in sizes)
        shown = {"student": output and str(output), "before": before, "after": after, "rule": RULE}
        click.echo(json.dumps(shown, ensure_ascii=False))
    else:
        click.echo(_table(*sizes, output))


def _table(before: Any, after: Any, output: Path | None) -> str:
    from metasearch.compress.sizes import RULE, mebibytes
    from metasearch.runs.markdown import markdown

    header = ["", *(f"{what} {when}" for what in ("weights", "MiB fp32", "MiB fp16") for when in ("before", "after"))]
    lines = []
    for part, old in before.rows().items():
        new = after.rows()[part]
        if old or new:
            memory = [f"{mebibytes(count, size):,.1f}" for size in (4, 2) for count in (old, new)]
            lines.append([part, f"{old:,}", f"{new:,}", *memory])
    end = [f"student: {output}"] if output else []
    return "\n\n".join([markdown(header, lines), RULE, *end])
