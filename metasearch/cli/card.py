"""`metasearch card`: the model card of a run, printed or written again."""

from pathlib import Path

import click

from metasearch.cli import _complete, _options


@click.command("card", short_help="The model card of a run, printed or written again.")
@click.argument(
    "folder", type=click.Path(path_type=Path), shell_complete=_complete.runs_and_models, metavar="RUN_OR_MODEL"
)
@click.option("--licence", "--license", metavar="ID", help="Of the model as a whole, such as apache-2.0: yours to say.")
@click.option("--write", is_flag=True, help="Put it in the place of the card that is there, in place of printing it.")
@_options.options_group(_options.trust)
def command(folder: Path, licence: str | None, write: bool, trust_remote_code: bool) -> None:
    """Print the model card of RUN, made of its configuration and its scores, or that of MODEL as it is.

    `metasearch train`, `distill`, `compress` and `neutralise` write one beside each model, as README.md. The licence
    in it is `unknown` until you say one: those of the data and of the encoder that a model was made of are listed, and
    which one follows from them is not for a program to guess.

    \b
    Examples:
      metasearch card runs/shop
      metasearch card runs/shop --licence cc-by-sa-4.0 --write
    """
    from metasearch.jobs.cards.again import card_again, write_again

    card = card_again(folder, licence, trust_remote_code)
    if write:
        click.echo(f"card: {write_again(folder, card)}")
    else:
        click.echo(card, nl=False)
