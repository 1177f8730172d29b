"""`metasearch export`: write an encoder for use without metasearch, or smaller."""

import json
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _complete, _options
from metasearch.cli._settings import reject_unused_options
from metasearch.errors import ConfigError


@_options.command("export")
@click.argument("encoder", shell_complete=_complete.encoders)
@click.option("--plain", is_flag=True, help="As a stock model of sentence-transformers, at full size.")
@click.option("--onnx", is_flag=True, help="As an ONNX graph, for onnxruntime and transformers.js; no torch needed.")
@click.option(
    "--int8", is_flag=True, help="In eight bits a weight: a quarter of the size; with --onnx, --task shows the loss."
)
@click.option("--static", is_flag=True, help="Its word vectors alone, a text being the mean of its words'.")
@click.option(
    "--dimensions", type=click.IntRange(min=1), metavar="N", help="Keep the first N numbers of a vector, normalised."
)
@click.option(
    "--texts", type=click.Path(path_type=Path), multiple=True, metavar="PATH",
    help="With --dimensions, keep the N directions that matter most to these texts: files or folders; repeatable.",
)  # fmt: skip
@click.option(
    "--task", shell_complete=_complete.declared("task"),
    help="Score on the test part of a task before and after; --onnx --int8 asks for it.",
)  # fmt: skip
@_options.options_group(
    _options.fold, _options.fold_seed, _options.data, _options.include, _options.trust
)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder to write; new or empty.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one JSON object on stdout.")
def command(
    encoder: str,
    task: str | None,
    trust_remote_code: bool,
    output: Path | None,
    as_json: bool,
    fold: int,
    fold_seed: int | None,
    data: str | None,
    include: tuple[str, ...],
    **form: Any,
) -> None:
    """Write ENCODER in another form.

    \b
    --plain   what plain sentence-transformers loads, without metasearch. A
              compressed encoder is written at full size: its word table
              multiplied out, each layer as often as it runs. It computes the
              same and saves nothing. A stock encoder is written as it is.
    --onnx    a graph from tokens to unit vectors, held against the encoder
              before it is kept, with tokenizer, lengths and prompts. Needs
              pip install onnx onnxscript onnxruntime.
    --int8    alone: each matrix as eight-bit integers and a step for each row
              or column. Plain sentence-transformers loads it after
              `import metasearch.encoders`, in float32; trained and saved it
              is an ordinary encoder again. With --onnx: a graph with its
              weights in eight bits, and its scores on --task.
    --static  a table of word vectors, which plain sentence-transformers
              loads: much faster, and it knows no order of words.

    \b
    Examples:
      metasearch export runs/student/model --plain -o stock
      metasearch export runs/student/model --int8 -o small
      metasearch export mini --onnx -o graph
      metasearch export mini --onnx --int8 --task demo -o graph8
      metasearch export mini --static --task demo -o words
      metasearch export e5 --plain --dimensions 128 --texts corpus/ -o short
    """
    from metasearch.compress.export.form import Form
    from metasearch.compress.output import claim

    asked = Form(**form)
    asked.check(scored=task is not None)
    if task is None:
        reject_unused_options("fold", "fold_seed", "data", "include", why="no task is read; say --task, too")
    if output is None:
        raise ConfigError("say where to write with -o DIR")
    # Before torch is imported: a folder that is not empty is told at once.
    claim(output)

    from metasearch.cli._progress import ProgressBar
    from metasearch.data.benchmark import load_benchmark
    from metasearch.pipelines import factory
    from metasearch.pipelines.export import export

    benchmark = load_benchmark(task, fold=fold, fold_seed=fold_seed, data=data, include=include) if task else None
    loaded = factory.load_encoder(encoder, device="cpu", trust_remote_code=trust_remote_code)
    with ProgressBar("export") as bar:
        done = export(loaded, asked, output, benchmark, bar)
    click.echo(json.dumps(done.tree(), ensure_ascii=False) if as_json else done.report())
