"""Errors of a model hub as one line each: what it refused, what is there already, and how to go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from httpx2 import HTTPError, TimeoutException
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from metasearch.errors import ConfigError, HubError, MetasearchError, first_line
from metasearch.publish.plan import Plan

Step = Literal["card", "look", "make", "upload", "commit", "done"]

_AGAIN = "the same command goes on"


class Asked:
    """How far a push is, so that an error can say what is there.

    Args:
        plan: what is pushed.
        token: that must stand in no message.
    """

    def __init__(self, plan: Plan, token: str) -> None:
        self.plan = plan
        self.token = token
        self.step: Step = "card"
        self.new = False

    def now(self, step: Step, new: bool = False) -> None:
        """Begin a step; `new` where the repository was made by this push."""
        self.step = step
        self.new = self.new or new

    def reached(self) -> str:
        """Return what is there, to follow a message, such as `; nothing was sent`."""
        address = self.plan.address
        if self.step == "commit":
            return (
                f". The answer is missing, so that nobody knows whether {address} has the model. Look there; {_AGAIN}, "
                "and sends what is missing alone"
            )
        if self.step == "done":
            return f"; {address} has the model"
        there = f"; {address} is made and empty" if self.new else ""
        if self.step == "upload":
            there = there or f"; {address} is as it was"
            return f"{there}: files show when all are there. {_AGAIN.capitalize()}; what arrived is not sent again"
        return f"{there or '; nothing was sent'}"


@contextmanager
def told(asked: Asked) -> Iterator[None]:
    """Turn errors of the hub's library into one line each, without the token.

    Raises:
        ConfigError: the hub does not take the card.
        HubError: everything else.
    """
    try:
        yield
    except MetasearchError:
        raise
    except HfHubHTTPError as error:
        raise HubError(_clean(f"{_refused(error, asked)}", asked)) from None
    except OfflineModeIsEnabled:
        raise HubError(f"HF_HUB_OFFLINE is set: {asked.plan.endpoint} is not asked{asked.reached()}") from None
    except ValueError as error:
        # Of the card's check alone; what else is no number or name is a bug.
        if asked.step != "card":
            raise
        why = " ".join(str(error).split())
        raise ConfigError(_clean(f"{asked.plan.endpoint} does not take the card: {why}", asked)) from None
    except (HTTPError, OSError, RuntimeError) as error:
        cause = _cause(error)
        if cause is None:
            raise
        if isinstance(cause, HfHubHTTPError):
            raise HubError(_clean(_refused(cause, asked), asked)) from None
        what = "does not answer in time" if isinstance(cause, TimeoutException) else "cannot be reached"
        raise HubError(_clean(f"{asked.plan.endpoint} {what} ({first_line(cause)}){asked.reached()}", asked)) from None


def _refused(error: HfHubHTTPError, asked: Asked) -> str:
    """Return what a hub answered, by its code."""
    plan, code = asked.plan, error.response.status_code
    said = f" (it says: {' '.join(error.server_message.split())})" if error.server_message else ""
    reached = asked.reached()
    if asked.step == "commit":  # it did answer
        reached = f"; no commit was made. {_AGAIN.capitalize()}; what arrived is not sent again"
    if code == 401:
        return f"{plan.endpoint} does not know the token{said}{reached}. Set HF_TOKEN, or: hf auth login"
    if code == 403:
        return f"the token may not write to {plan.address}{said}{reached}. It needs the right to write"
    if code == 404:
        return f"{plan.address}: no such repository, owner or branch {plan.revision}{said}{reached}"
    if code in (409, 412):
        if asked.step == "commit":
            return f"{plan.address} was changed meanwhile{said}; no commit was made. Look at it, then push again"
        return f"{plan.address}: a conflict on the hub{said}{reached}"
    if code == 429:
        return f"{plan.endpoint} is asked too often{said}{reached}. Wait, then push again"
    return f"{plan.endpoint} answers {code}{said}{reached}"


def _cause(error: BaseException | None) -> Exception | None:
    """Return the first error of the network in a chain of causes, as an upload wraps its errors; None for none."""
    while error is not None and not isinstance(error, HTTPError | OSError):
        error = error.__cause__
    return error


def _clean(text: str, asked: Asked) -> str:
    """Return a message in one line, without the token."""
    return " ".join(text.replace(asked.token, "***").split())
