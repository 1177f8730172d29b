"""Errors of a benchmark as one line and an exit code, as `metasearch` has them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from metasearch.errors import MetasearchError


def legible(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let errors that have a name, an interruption among them, end a command without a traceback."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except MetasearchError as error:
            failure = click.ClickException(str(error))
            failure.exit_code = error.exit_code
            raise failure from error

    return call
