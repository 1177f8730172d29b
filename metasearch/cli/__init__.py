"""The command line: commands by what one wants to do, each imported when it is run.

`metasearch.errors` defines the exit codes.
"""

import io
import logging
import os
import re
import sys
import traceback
from contextlib import nullcontext
from importlib import import_module
from itertools import pairwise
from typing import Any, TextIO

import click
from click.shell_completion import CompletionItem

from metasearch.errors import ConfigError, MetasearchError, RunFolderError, nearest
from metasearch.runs import signals
from metasearch.runs.signals import interrupted
from metasearch.runs.torchrun_env import Rank, rank, require_alone
from metasearch.version import __version__

SECTIONS = {
    "Train": {
        "tune": "Adapt an encoder to your labels, and index your documents.",
        "demo": "Compare the learners on embedded data.",
        "train": "Meta-train an encoder and compare it with zero-shot.",
        "crossval": "Cross-validate learners over folds and seeds.",
        "distill": "Distil an encoder into a small one, or align languages.",
        "resume": "Continue a run, a distillation or a study.",
    },
    "Adapt, compress and export": {
        "neutralise": "Remove language bias from an encoder, without labels.",
        "compress": "Build a small student from an encoder.",
        "export": "Export to sentence-transformers, ONNX or int8.",
    },
    "Evaluate and compare": {
        "evaluate": "Score an encoder on a task.",
        "compare": "Compare learners, with confidence intervals and tests.",
        "report": "Write a page and tables for papers.",
    },
    "Search and serve": {
        "index": "Index documents, or update an index.",
        "search": "Search an index in any language.",
        "adapt": "Improve the search of an index with few labels.",
        "serve": "Serve an index as a web page and an HTTP API.",
    },
    "Project": {
        "ls": "List tasks, modes, recipes, learners and encoders.",
        "show": "Print a task, mode or recipe; check a task.",
        "doctor": "Check the environment and indexes.",
    },
}
"""Heading of `--help` → its commands and what each does. A command is `command` of the module beside this file that has
its name; the commands in `_SHARED` are in another module, under their own names, and `_SEARCH` is in `search`."""
_SHARED = {"demo": "train", "report": "compare", "show": "ls"}
_SEARCH = ("adapt", "index", "search", "serve", "tune")
_SUMMARIES = {name: summary for commands in SECTIONS.values() for name, summary in commands.items()}

_IN_PROCESSES = ("distill", "resume", "train")
"""Commands that torchrun may start in several processes."""
_stderr: TextIO | None = None
"""Where a process that is to be silent says an error of its own."""

_GONE = dict.fromkeys(
    ("--shots", "--shot-language", "--adapt-steps", "--adapt-lr"),
    "metasearch adapt learns from few labels in closed form, which is better at every number of labels",
) | {
    "--epochs": "use --set budget.epochs=N",
    "--format": "metasearch report writes tables as LaTeX and CSV",
    "--evaluate": "use metasearch evaluate --task TASK on the encoder before and after",
    "validate": "use metasearch show TASK --check",
    "prepare": "OpusFilter cleans translations, and datasets saves them for --corpus (docs/corpora.md)",
    "card": "the card is model/README.md; set its licence in the line license: of its header",
}
"""Options and commands of earlier versions, and what does their work."""

_NUMBER = re.compile(r"(?<!\S)\d[\d.,]*(?!\S)")
"""A number that stands alone, and is no part of a file's name."""


class _Failure(click.ClickException):
    """An error that ends a command: one line on stderr and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click declares it per class

    def show(self, file: Any = None) -> None:
        own = own_rank()
        if own.count > 1:
            from metasearch.training.distributed import ended_before

            if (code := ended_before(self.exit_code)) is not None:
                self.exit_code = code  # type: ignore[misc]  # as above
                return
        who = f"process {own.number}: " if own.number else ""
        click.echo(f"metasearch: error: {who}{self.message}", file=_stderr or sys.stderr)


class _Echo(logging.Handler):
    """Writes log messages to stderr: errors each time, other messages once, warnings whatever their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[tuple[str, str]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record above the bars, on the current stderr."""
        said = record.getMessage()
        key = (record.name, _NUMBER.sub("N", said) if record.levelno >= logging.WARNING else said)
        if record.levelno >= logging.ERROR or key not in self._said:
            self._said.add(key)
            # Bars are drawn again below the line; tqdm is imported once there is one.
            bars = sys.modules.get("tqdm")
            with bars.tqdm.external_write_mode(sys.stderr) if bars else nullcontext():
                click.echo(f"metasearch: {said}", err=True)


class _Commands(click.Group):
    """A group whose commands are imported when they are run; its help lists them by section."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_SUMMARIES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _SUMMARIES:
            return None
        folder = "search.commands" if name in _SEARCH else "cli"
        found = vars(import_module(f"metasearch.{folder}.{_SHARED.get(name, name)}"))
        command: click.Command = found[name if name in _SHARED else "command"]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _SUMMARIES))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and flags that begin so, without importing a command."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        names = [name for name in sorted(_SUMMARIES) if name.startswith(incomplete)]
        return [CompletionItem(name, help=_SUMMARIES[name]) for name in names]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is asked for; a wrong name answers with the nearest one."""
        if ctx.resilient_parsing:  # a shell completes a word, and wants no error
            return super().resolve_command(ctx, args)
        command = args[0]
        if command in _GONE:
            raise click.UsageError(f"{command} went; {_GONE[command]}", ctx)
        if command not in _SUMMARIES and not command.startswith("-"):
            raise click.UsageError(f"no command '{command}'.{nearest(command, _SUMMARIES)}", ctx)
        # To take the default instead of an empty value, such as an unset variable, would be a guess.
        for before, arg in pairwise(args):
            if arg == "" or re.fullmatch("--[a-z-]+=", arg):
                name = arg.rstrip("=") or (before if before.startswith("-") else "an argument")
                raise click.UsageError(f"{name} is empty; omit it or give it a value", ctx)
        if command in _IN_PROCESSES:
            rank()
        elif own_rank().count > 1:
            require_alone(f"metasearch {command}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **keys: Any) -> Any:
        global _stderr
        _let_print_everything()
        # Of several processes the first one shows what happens; any of them may have an error of its own.
        if own_rank().number and "--debug" not in sys.argv:
            _stderr = be_silent()
        return super().main(*args, **keys)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options before the command; a wrong one becomes one line and an exit code."""
        wants_help = not args  # parsing empties the list
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if wants_help:
                raise
            raise _failure(error, "metasearch") from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors become one line and an exit code."""
        signals.note(0)  # a process may run several commands
        try:
            return super().invoke(ctx)
        # Click ends these by itself; it is silent about an output that its reader, such as `head`, has closed.
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise _failure(error, f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip()) from error


def _let_print_everything() -> None:
    """Let the output streams take every character: files and pipes as UTF-8, terminals with escapes for what they lack.

    On Windows and in older locales streams have another encoding. A lone surrogate, which stands for a byte of a file
    name that is no UTF-8, is in no encoding.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def own_rank() -> Rank:
    """Return the rank of this process; an incomplete environment raises later, when the rank matters."""
    try:
        return rank()
    except ConfigError:
        return Rank()


def _failure(error: BaseException, command: str) -> click.ClickException:
    """Return the exit for an error of `command`; print the traceback with `--debug`, and of a bug in a study's log."""
    if isinstance(error, click.UsageError):  # click would print three lines
        says = " ".join(error.format_message().split()).rstrip(".")
        if isinstance(error, click.NoSuchOption) and error.option_name in _GONE:
            says = f"{error.option_name} went; {_GONE[error.option_name]}"
        return _Failure(f"{says}; see {error.ctx.command_path if error.ctx else command} --help", error.exit_code)
    if isinstance(error, click.ClickException):
        return error
    traced = "--debug" in sys.argv
    if not isinstance(error, MetasearchError):
        traced = not {"--debug", "--cell", "--until-eof"}.isdisjoint(sys.argv)
        # Libraries may turn a `KeyboardInterrupt` into an error of their own.
        if isinstance(error, KeyboardInterrupt) or signals.received():
            error, traced = interrupted("stopped"), False
        elif isinstance(error, OSError) and error.strerror:
            error = RunFolderError(f"{error.filename or 'the output'}: {error.strerror}")
        else:
            hint = "" if traced else "; --debug shows where"
            error = MetasearchError(f"a bug in metasearch: {type(error).__name__}: {error}{hint}")
    if traced:
        traceback.print_exc()
    return _Failure(str(error), error.exit_code)


@click.group("metasearch", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="metasearch")
def main() -> None:
    """A meta-learning toolkit that teaches multilingual encoders to search across languages from a few labels.

    \b
    First steps:
      metasearch tune labels.csv --documents help-pages/ -o shop     adapt an encoder to labels; index documents
      metasearch index help-pages/ -o help.index                     index documents without labels
      metasearch search shop/index "Where is my parcel?"             search in any language
      metasearch demo                                                compare the learners on embedded data
    """
    # Threads that wait busily on cores which something else uses make small tensors many times slower. Torch reads this
    # when it is first imported, which is later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # By default oneDNN keeps 1,024 kernels, in bfloat16 of up to 16 MB each. A batch needs some twenty. Requests to a
    # server differ in length, and each length has kernels of its own.
    kernels = "128" if click.get_current_context().invoked_subcommand == "serve" else "32"
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", kernels)
    logger = logging.getLogger("metasearch")
    # Assigned, not added: a process that runs several commands would say everything several times.
    logger.handlers = [_Echo()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def be_silent() -> TextIO:
    """Discard all output of this process and its libraries; return the previous stderr."""
    kept = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    return kept
