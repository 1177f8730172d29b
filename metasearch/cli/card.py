"""`metasearch card` and `metasearch push`: the card and the licence of a model, and its way to a model hub."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metasearch.cli import _options
from metasearch.cli._settings import print_result
from metasearch.errors import RunFolderError, quoted


@_options.command("card")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN_OR_MODEL")
@click.option("--licence", "--license", metavar="ID", help="Licence of the model as a whole, such as apache-2.0.")
@click.option("--write", is_flag=True, help="Write the card to the model's folder instead of printing it.")
def command(folder: Path, licence: str | None, write: bool) -> None:
    """Print the model card of RUN_OR_MODEL, optionally with another licence.

    `metasearch train`, `distill`, `compress` and `neutralise` write a card beside each model, as README.md. Its licence
    is `unknown` until you set one. The card lists the licences of the data and of the base encoder; you decide which
    one follows from them.

    \b
    Examples:
      metasearch card runs/shop
      metasearch card runs/shop --licence cc-by-sa-4.0 --write
    """
    from metasearch.io import atomic_write
    from metasearch.pipelines.publish import CARD, find_model, load_card, missing_card, require_identifier

    model = find_model(folder)
    path = model / CARD
    if not path.is_file():
        raise RunFolderError(missing_card(model) if model.is_dir() else f"{model} does not exist")
    card = load_card(path)
    if licence is not None:
        require_identifier(licence)
        card.data["license"] = licence
    if write:
        atomic_write(path, str(card))
        click.echo(f"card: {path}")
    else:
        click.echo(str(card), nl=False)


@_options.command("push")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--private", is_flag=True, help="Create a private repository.")
@click.option("--revision", metavar="BRANCH", default="main", show_default=True, help="Branch; created if it is new.")
@click.option("--yes", is_flag=True, help="Send the files. Without --yes nothing is sent, and no network is used.")
@_options.as_json("the plan and its result")
def push(model: Path, name: str, yes: bool, as_json: bool, **asked: Any) -> None:
    """Show the files of MODEL for NAME on a model hub, their sizes and who could read them. With --yes, send them.

    MODEL is the folder of a model, or a run with one; NAME is OWNER/NAME. All files go in one commit, or none. The
    token comes from HF_TOKEN or `hf auth login`, the hub from HF_ENDPOINT. Files that are no part of a model, such as
    checkpoints, logs, code or .env, are listed and not sent.

    \b
    Examples:
      metasearch push runs/shop myname/shop-search
      metasearch push runs/shop myname/shop-search --private --yes
    """
    from metasearch.pipelines import publish as hub

    planned = hub.plan_push(model, name, **asked)
    if not as_json:
        click.echo(planned.shown())
    if planned.skipped:
        names = ", ".join(planned.skipped)
        click.echo(f"metasearch: files not sent: {names}", err=True)
    if planned.licence == hub.UNKNOWN:
        say = f"metasearch card {quoted(model)} --licence ID --write"
        click.echo(f"metasearch: the card states no licence; set one with: {say}", err=True)
    if not yes:
        tree = {"plan": planned.tree(), "pushed": None}
        print_result(as_json, tree, "\nNothing was sent. Add --yes to send it.")
        return
    done = hub.push(planned)
    if done.others:
        click.echo(f"metasearch: other files in the repository stay: {', '.join(done.others)}", err=True)
    text = f"\n{'pushed' if done.changed else 'nothing is new'}: {done.address}, commit {done.commit[:12]}"
    print_result(as_json, {"plan": planned.tree(), "pushed": asdict(done)}, text)
