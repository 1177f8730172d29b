"""Puts a model on a hub, by `huggingface_hub`: all of its files in one commit, or none."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from huggingface_hub import CommitOperationAdd, HfApi, get_token
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from metasearch import signals
from metasearch.errors import HubError, interrupted
from metasearch.publish.header import load_card
from metasearch.publish.hub import Asked, told
from metasearch.publish.licence import CARD
from metasearch.publish.plan import MAIN, Plan

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pushed:
    """What came of it.

    Attributes:
        address: of the model.
        commit: its hash.
        changed: whether anything was new there.
        others: files of the branch that are not the model's, and stay.
    """

    address: str
    commit: str
    changed: bool
    others: tuple[str, ...]

    def tree(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        return {"address": self.address, "commit": self.commit, "changed": self.changed, "others": list(self.others)}


def push(plan: Plan) -> Pushed:
    """Publish a model as planned.

    The token is that of `HF_TOKEN` or of the hub's own login, and the hub that of `HF_ENDPOINT`, as in all programs of
    the hub.

    Raises:
        ConfigError: the card is not one that the hub takes.
        HubError: the hub cannot be reached, or refuses; the message says what is there, and how to go on.
        Interrupted: by Ctrl-C or SIGTERM; likewise.
    """
    token = get_token()
    if token is None:
        raise HubError(
            f"no token for {plan.endpoint}: set HF_TOKEN to one that may write, or log in with: hf auth login"
        )
    asked = Asked(plan, token)
    with signals.AtWork(), _quiet(), told(asked):
        try:
            return _push(HfApi(endpoint=plan.endpoint, token=token), plan, asked)
        except KeyboardInterrupt:
            raise interrupted(f"stopped{asked.reached()}") from None


def _push(api: HfApi, plan: Plan, asked: Asked) -> Pushed:
    card = load_card(plan.folder / CARD)
    asked.now("card")
    card.validate()
    asked.now("look")
    _make(api, plan, asked)
    before = _branch(api, plan, asked)
    asked.now("upload")
    additions = [CommitOperationAdd(file.name, file.path) for file in plan.files]
    api.preupload_lfs_files(plan.name, additions, revision=plan.revision, free_memory=False)
    asked.now("commit")
    made = api.create_commit(
        plan.name,
        additions,
        commit_message=f"{plan.title or plan.name}, by metasearch push",
        revision=plan.revision,
        parent_commit=before.sha,
    )
    asked.now("done")
    _require_all(api, plan, made.oid)
    others = _others([each.rfilename for each in before.siblings or ()], plan)
    return Pushed(plan.address, made.oid, made.oid != before.sha, others)


def _make(api: HfApi, plan: Plan, asked: Asked) -> None:
    """Make the repository where there is none; refuse one that more people see than was asked for."""
    try:
        there = api.model_info(plan.name)
    except RepositoryNotFoundError:
        asked.now("make")
        api.create_repo(plan.name, private=plan.private)
        asked.now("look", new=True)
        return
    if plan.private and not there.private:
        raise HubError(
            f"{plan.address} is public, and --private was asked for; nothing was sent. Make it private on the hub, or "
            "choose another name"
        )
    if there.private and not plan.private:
        log.warning("%s is private, and stays so", plan.address)


def _branch(api: HfApi, plan: Plan, asked: Asked) -> Any:
    """Return what the branch holds, which is made where there is none."""
    try:
        return api.model_info(plan.name, revision=plan.revision)
    except RevisionNotFoundError:
        if plan.revision == MAIN:
            raise
        api.create_branch(plan.name, branch=plan.revision)
        return api.model_info(plan.name, revision=plan.revision)


def _require_all(api: HfApi, plan: Plan, commit: str) -> None:
    """Raise `HubError` where a file did not come into the commit, as one that a `.gitignore` there passes over."""
    there = {each.rfilename for each in api.model_info(plan.name, revision=commit).siblings or ()}
    if missing := [file.name for file in plan.files if file.name not in there]:
        raise HubError(
            f"{plan.address} has the model without {', '.join(missing)}: does a .gitignore there pass it over? Delete "
            "that, then push again"
        )


def _others(there: Sequence[str], plan: Plan) -> tuple[str, ...]:
    own = {file.name for file in plan.files} | {".gitattributes"}
    return tuple(name for name in there if name not in own)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let the hub's library draw its bars on a terminal only, and keep its advice to itself."""
    logger, before = logging.getLogger("huggingface_hub"), are_progress_bars_disabled()
    level = logger.level
    logger.setLevel(logging.ERROR)
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        yield
    finally:
        logger.setLevel(level)
        if not before:
            enable_progress_bars()
