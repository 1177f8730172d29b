"""`metasearch export`: write an encoder for use without metasearch, or smaller."""

from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result, reject_unused_options
from metasearch.config.compress import Form


@_options.command("export")
@click.argument("encoder")
@_options.settings(Form)
@_options.task("Score on the test part of a task before and after.")
@_options.options_group(_options.one_fold, _options.trust)
@_options.output("Folder to write; new or empty.", required=True)
@_options.as_json("all figures")
def command(encoder: str, task: str | None, trust_remote_code: bool, output: Path, as_json: bool, **form: Any) -> None:
    """Write ENCODER in another form.

    ENCODER may be an index: its encoder is written as searches use it, with the projection and the adapter in use. A
    compressed encoder is written at full size as a standard model; a standard encoder is copied. A graph is checked
    against the encoder, and needs the extra `onnx`. sentence-transformers loads --int8 where metasearch is installed,
    with trust_remote_code=True.

    \b
    Examples:
      metasearch export runs/student/model --sentence-transformers -o stock
      metasearch export runs/student/model --int8 -o small
      metasearch export mini --onnx -o graph
      metasearch export e5 --sentence-transformers --dimensions 128 --texts corpus/ -o short
      metasearch export help.index --sentence-transformers -o help-encoder
    """
    from metasearch.io.output import claim

    where = {name: form.pop(name) for name in _options.FOLD}
    asked = Form.model_validate(_options.tree(Form, form))
    asked.check()
    if task is None:
        reject_unused_options(*where, why="no task is read; pass --task")
    claim(output)

    from metasearch.data.benchmark import load_benchmark
    from metasearch.encoders.load import load_encoder
    from metasearch.pipelines.export import export
    from metasearch.pipelines.folders import load_index_encoder
    from metasearch.runs.progress import ProgressBar

    benchmark = load_benchmark(task, **where) if task else None
    opened = load_index_encoder(encoder, trust_remote_code)
    loaded, *made = opened or (load_encoder(encoder, device="cpu", trust_remote_code=trust_remote_code), "")
    with ProgressBar("export") as bar:
        done = export(loaded, asked, output, benchmark, bar, *made)
    print_result(as_json, done.tree(), done.report())
