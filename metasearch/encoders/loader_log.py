"""What libraries say while they load a checkpoint: no progress bars, and each warning once, as a line of our own."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as transformers_logging

_LIBRARIES = ("sentence_transformers", "transformers")
_SAID_BY_US = ("Activation function path", "Converting ", "Default prompt name is set")
_REPORT = "LOAD REPORT"
"""A table of weights that do not fit, see `metasearch.encoders.open.require_fit`."""


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning as one line, once."""
        line = " ".join(record.getMessage().split())
        if not line.startswith(_SAID_BY_US) and _REPORT not in line:
            self.lines[line] = None


def quiet() -> None:
    """Stop the libraries from printing progress bars, reports and warnings between a command's own lines."""
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)


@contextmanager
def warnings_as_lines(log: logging.Logger, what: str) -> Iterator[None]:
    """Log the warnings that the libraries give inside the context, unless it fails; `what` begins each line."""
    quiet()
    heard, loggers = _Warnings(), [logging.getLogger(name) for name in _LIBRARIES]
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
    for line in heard.lines:
        log.warning("%s: %s", what, line)
