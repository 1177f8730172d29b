"""`metasearch card`: the card of a run made again from its own files, and a card under another licence."""

from pathlib import Path

from metasearch.errors import RunFolderError, to_resume
from metasearch.files import write_whole
from metasearch.jobs import compose
from metasearch.jobs.cards.runs import card_of
from metasearch.jobs.distill.checks import resolved
from metasearch.jobs.resume import CONFIGS, kind_of
from metasearch.publish.contents import MODULES, without_card
from metasearch.publish.header import load_card, with_licence
from metasearch.publish.licence import CARD, licence_in, require_identifier
from metasearch.runs import sums
from metasearch.runs.folder import CONFIG, RunFolder
from metasearch.spec.declared import Declared
from metasearch.spec.distill_run import DistillConfig
from metasearch.spec.run import RunConfig

_IN_RUN = f"model/{CARD}"


def card_again(folder: Path, licence: str | None = None, trust_remote_code: bool = False) -> str:
    """Return the card of a finished run, made of its files; or that of a model's folder as it is.

    Args:
        folder: of the run, or of the model.
        licence: of the model as a whole; None keeps what the card there states.
        trust_remote_code: run code that comes with the model.

    Raises:
        ConfigError: the licence is none.
        DataError: the card that is there cannot be read.
        EncoderError: the model cannot be loaded.
        RunFolderError: there is no card and no finished run with a model, or a file of the run was changed.
    """
    if licence is not None:
        require_identifier(licence)
    if not (folder / CONFIG).is_file():
        card = _card_in(folder)
        if run := _run_of(card):
            sums.require_unchanged(run, _IN_RUN)
        return with_licence(card, licence) if licence is not None else str(load_card(card))
    kind = kind_of(folder)
    if kind in ("study", "score"):
        raise RunFolderError(f"{folder} is a {kind}, which has no model of its own; name a run that was trained")
    files, begun = RunFolder.open(folder, CONFIGS[kind])
    if not files.finished:
        raise RunFolderError(f"{folder} is not finished; go on with: {to_resume(folder)}")
    if not files.model.is_dir():
        raise RunFolderError(f"{files.model} is missing: there is no model to write a card of")
    files.require_unchanged()
    config = _resolved(begun.config)
    encoder = compose.load_encoder(str(files.model), device="cpu", trust_remote_code=trust_remote_code)
    return card_of(files, config, encoder, licence or licence_in(files.model / CARD))


def _resolved(config: Declared) -> RunConfig | DistillConfig:
    """Return a configuration with the types of all options, which its file has as text."""
    if isinstance(config, DistillConfig):
        return resolved(config)
    assert isinstance(config, RunConfig)
    return config.model_copy(update={"recipe": compose.resolved(config.recipe)})


def write_again(folder: Path, card: str) -> Path:
    """Write a card in the place of the one of a run, whose `SHA256SUMS` then has its hash, or of a model's folder.

    Raises:
        RunFolderError: it cannot be written.
    """
    if not (folder / CONFIG).is_file():
        path = _card_in(folder)
        run = _run_of(path)
    else:
        path, run = folder / _IN_RUN, folder
    if run is None:
        write_whole(path, card)
        return path
    with sums.replacing(run, _IN_RUN, card):
        write_whole(path, card)
    return path


def _run_of(card: Path) -> Path | None:
    """Return the run whose model a card is of; None where it is of a model without one."""
    # A model may be named as `.` or by a link.
    run = card.parent.resolve().parent
    own = run / _IN_RUN
    return run if (run / CONFIG).is_file() and own.is_file() and own.samefile(card) else None


def _card_in(folder: Path) -> Path:
    if (folder / CARD).is_file():
        return folder / CARD
    if not folder.is_dir():
        raise RunFolderError(f"{folder} does not exist")
    if not (folder / MODULES).is_file():
        raise RunFolderError(f"{folder} has no {CARD}, and is neither a model nor a run, of which one could be made")
    raise RunFolderError(without_card(folder))
