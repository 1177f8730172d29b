"""What libraries say while they load a checkpoint: no progress bars, and each warning once, as a line of our own."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import BufferingHandler

from transformers.utils import logging as transformers_logging

_LIBRARIES = ("sentence_transformers", "transformers")
_SAID_BY_US = ("Activation function path", "Converting ", "Default prompt name is set")
_REPORT = "LOAD REPORT"
"""A table of weights that do not fit, see `metasearch.encoders.open.require_fit`."""


def quiet() -> None:
    """Stop the libraries from printing progress bars, reports and warnings between a command's own lines."""
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)


@contextmanager
def warnings_as_lines(log: logging.Logger, what: str) -> Iterator[None]:
    """Log the warnings that the libraries give inside the context, unless it fails; `what` begins each line."""
    quiet()
    heard, loggers = BufferingHandler(sys.maxsize), [logging.getLogger(name) for name in _LIBRARIES]
    heard.setLevel(logging.WARNING)
    before = [(each.level, each.handlers, each.propagate) for each in loggers]
    for each in loggers:
        each.setLevel(logging.WARNING)
        each.handlers, each.propagate = [heard], False
    try:
        yield
    finally:
        for each, (level, handlers, propagate) in zip(loggers, before, strict=True):
            each.setLevel(level)
            each.handlers, each.propagate = handlers, propagate
    for line in dict.fromkeys(" ".join(each.getMessage().split()) for each in heard.buffer):
        if not line.startswith(_SAID_BY_US) and _REPORT not in line:
            log.warning("%s: %s", what, line)
