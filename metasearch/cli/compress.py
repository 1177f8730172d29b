"""`metasearch compress`: make a small student of an encoder, and say what it weighs."""

import json
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _complete, _options
from metasearch.config.run import Device
from metasearch.errors import ConfigError


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
@click.option("--bottleneck", type=click.IntRange(min=1), metavar="K", help="Columns of the factorised word table.")
@click.option(
    "--recurrent", type=click.IntRange(min=1), metavar="M", help="Layers to keep, the first of the encoder's."
)
@click.option(
    "--repeats", type=click.IntRange(min=1), metavar="R", help="How often they run; by default the depth stays."
)
@click.option(
    "--layers",
    type=LayersType(),
    help="Layers to keep: how many, from the first to the last at equal distances, or which, such as 1,4,7.",
)
@click.option(
    "--merge",
    type=LayersType(),
    help="Layers that follow each other become one: into how many, or by the last of each group, such as 2,4,6.",
)
@click.option(
    "--feed-forward",
    type=click.IntRange(min=1),
    metavar="F",
    help="Neurons to keep in the feed-forward block of each layer; their new weights make up for the others.",
)
@click.option(
    "--static",
    type=click.Choice(["words", "tokens"]),
    help="Word vectors without layers: of the embedding block (words), or of the whole encoder for each word (tokens).",
)
@click.option("--dimensions", type=click.IntRange(min=1), metavar="D", help="Columns of these vectors; all by default.")
@click.option(
    "--texts",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Texts that --merge and --feed-forward are fitted on, and that say how frequent the words of --bottleneck and "
    "--static are; in languages that ENCODER knows: files or folders; repeatable.",
)
@click.option(
    "--initial",
    type=click.Choice(["svd", "random"]),
    default="svd",
    show_default=True,
    help="What the bottleneck starts from: the encoder's word table, or fresh weights as in the paper.",
)
@click.option(
    "--trim",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Keep only the vocabulary of these texts: files, or folders of .txt, .tsv and Moses files; repeatable.",
)
@click.option(
    "--vocabulary",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens of --trim to keep at most, the most frequent ones; rare words are cut into smaller tokens.",
)
@_options.seed("Of fresh weights, and of the choice among more texts than are needed.")
@click.option("--sizes-only", is_flag=True, help="Print the table and write nothing; a config.json is enough.")
@_options.options_group(_options.device, _options.trust)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder of the student; new or empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the sizes as one JSON object on stdout.")
def command(
    encoder: str,
    sizes_only: bool,
    device: Device,
    trust_remote_code: bool,
    output: Path | None,
    as_json: bool,
    **plan: Any,
) -> None:
    """Make a student of ENCODER: a word table with a bottleneck, fewer or narrower layers, few that run several times,
    or none.

    ENCODER is a built-in name, a local folder or a hub name; with --sizes-only also a folder or file of a configuration
    alone. The student is as good as its distillation: see `metasearch distill`.

    \b
    Examples:
      metasearch compress runs/assistant/model --bottleneck 128 --recurrent 3 -o student
      metasearch compress minilm --bottleneck 64 --recurrent 3 --trim corpus/ -o student
      metasearch compress e5 --trim corpus/ --vocabulary 32000 -o fewer-words
      metasearch compress e5 --layers 6 -o shallow
      metasearch compress e5 --merge 6 --feed-forward 512 --texts corpus/ -o merged
      metasearch compress mini --static words --texts corpus/ -o static
      metasearch compress xlm-r/config.json --bottleneck 128 --recurrent 3 --sizes-only
    """
    from metasearch.compress.output import claim
    from metasearch.compress.plan import Plan
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
