"""`metasearch compress`: build a small student from an encoder, and print the sizes of both."""

from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result
from metasearch.config.compress import CompressSettings
from metasearch.config.run import Device
from metasearch.errors import ConfigError

_RULE = (
    "Counting rule of the papers: embedding = words + projection + positions (+ types + LayerNorm), encoder = layers "
    "that exist; pooler and other modules are in neither. A weight that is used several times counts once."
)


@_options.command("compress")
@click.argument("encoder")
@_options.settings(CompressSettings)
@click.option("--sizes-only", is_flag=True, help="Print the table and write nothing; a config.json is enough.")
@_options.options_group(_options.device, _options.trust, _options.output("Folder of the student; new or empty."))
@_options.as_json("the sizes")
def command(
    encoder: str, sizes_only: bool, device: Device, trust_remote_code: bool, output: Path | None, as_json: bool,
    **plan: Any,
) -> None:  # fmt: skip
    """Build a small student from ENCODER: an embedding matrix with a bottleneck, fewer or recurrent layers.

    ENCODER is a built-in name, a local folder or a hub name; with --sizes-only also the folder or file of a
    configuration. The student is as good as its distillation: see `metasearch distill`.

    \b
    Examples:
      metasearch compress runs/assistant/model --bottleneck 128 --recurrent 3 -o student
      metasearch compress minilm --bottleneck 64 --recurrent 3 --trim-vocab corpus/ -o student
      metasearch compress e5 --trim-vocab corpus/ --vocabulary 32000 -o fewer-words
      metasearch compress e5 --layers 6 -o shallow
      metasearch compress xlm-r/config.json --bottleneck 128 --recurrent 3 --sizes-only
    """
    from metasearch.data.texts import text_files
    from metasearch.io.output import claim

    if sizes_only == (output is not None):
        raise ConfigError("pass either -o DIR for the student or --sizes-only")
    asked = CompressSettings.model_validate(_options.tree(CompressSettings, plan))
    asked.check(writes=not sizes_only)
    if output is not None:
        claim(output)
    chosen = asked.model_copy(update={"trim": tuple(text_files(asked.trim)), "texts": tuple(text_files(asked.texts))})

    from metasearch.encoders.load import load_encoder
    from metasearch.pipelines import compress

    sizes = compress.forecast(encoder, chosen) if sizes_only else None
    if sizes is None:
        loaded = load_encoder(encoder, device=device, seed=chosen.seed, trust_remote_code=trust_remote_code)
        sizes = compress.compress(loaded, chosen, output)
    before, after = (each.rows() for each in sizes)
    tree = {"student": output and str(output), "before": before, "after": after, "rule": _RULE}
    print_result(as_json, tree, _table(*sizes, output))


def _table(before: Any, after: Any, output: Path | None) -> str:
    from metasearch.runs.markdown import markdown

    header = ["", *(f"{what} {when}" for what in ("weights", "MiB fp32", "MiB fp16") for when in ("before", "after"))]
    lines = []
    for part, old in before.rows().items():
        new = after.rows()[part]
        if old or new:
            memory = [f"{count * size / 2**20:,.1f}" for size in (4, 2) for count in (old, new)]
            lines.append([part, f"{old:,}", f"{new:,}", *memory])
    end = [f"student: {output}"] if output else []
    return "\n\n".join([markdown(header, lines), _RULE, *end])
