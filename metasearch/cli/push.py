"""`metasearch push`: put a model on a model hub."""

import json
from pathlib import Path
from typing import Any

import click

from metasearch.errors import quoted


@click.command("push", short_help="Put a model on a model hub; shows what would go first.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--private", is_flag=True, help="Make a new repository for its owner's eyes alone.")
@click.option("--revision", metavar="BRANCH", default="main", show_default=True, help="Branch; made where it is new.")
@click.option("--allow", multiple=True, metavar="PATTERN", help="Send further files, such as eval/*.png; repeatable.")
@click.option("--yes", is_flag=True, help="Do it. Without this nothing is sent, and no network is used.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the plan and what came of it as one JSON object on stdout."
)
def command(model: Path, name: str, yes: bool, as_json: bool, **asked: Any) -> None:
    """Show which files of MODEL would go to NAME on a model hub, how large they are and who could read them; with --yes
    send them.

    MODEL is the folder of a model, or a run with one; NAME is OWNER/NAME. All files go in one commit, or none. The
    token comes from HF_TOKEN or `hf auth login`, the hub from HF_ENDPOINT. Files that are no part of a model, such as
    checkpoints, logs, code or .env, are listed and not sent.

    \b
    Examples:
      metasearch push runs/shop myname/shop-search
      metasearch push runs/shop myname/shop-search --private --yes
    """
    from metasearch.pipelines.publish.card import UNKNOWN
    from metasearch.pipelines.publish.push import plan, push

    planned = plan(model, name, **asked)
    if not as_json:
        click.echo(planned.shown())
    if planned.skipped:
        names = ", ".join(planned.skipped)
        click.echo(f"metasearch: these files are not sent; allow one with --allow: {names}", err=True)
    if planned.licence == UNKNOWN:
        say = f"metasearch card {quoted(model)} --licence ID --write"
        click.echo(f"metasearch: the card states no licence; say one with: {say}", err=True)
    if not yes:
        if as_json:
            click.echo(json.dumps({"plan": planned.tree(), "pushed": None}, ensure_ascii=False))
        else:
            click.echo("\nNothing was sent. Add --yes to send it.")
        return
    done = push(planned)
    if done.others:
        click.echo(f"metasearch: files there that are not the model's stay: {', '.join(done.others)}", err=True)
    if as_json:
        click.echo(json.dumps({"plan": planned.tree(), "pushed": done.tree()}, ensure_ascii=False))
    else:
        click.echo(f"\n{'pushed' if done.changed else 'nothing is new'}: {done.address}, commit {done.commit[:12]}")
