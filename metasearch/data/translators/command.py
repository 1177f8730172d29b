"""Translations by a user's program: JSON lines in, JSON lines out."""

import json
import logging
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, ClassVar

from pydantic import Field

from metasearch.config.base import FrozenConfig, Rate
from metasearch.data.formats.text_files import parse_json
from metasearch.data.translators.base import Places
from metasearch.errors import DataError
from metasearch.io import digest, fingerprint_of

log = logging.getLogger(__name__)


class Command:
    """Run a program, without a shell, in the folder of the task's file.

    It reads a line `{"text": "...", "source": "en", "target": "de"}` per text from standard input, and writes a line
    `{"text": "..."}` to standard output, in the same order. An error shows the last line of standard error.
    """

    class Options(FrozenConfig):
        """Which program.

        Attributes:
            command: the program and its arguments.
            timeout: seconds for a call with at most 1,000 texts.
            version: any word; change it to translate anew. The fingerprint has it, the command, and the content of the
                files in it, except for a program outside the task's folder.
        """

        command: Annotated[tuple[str, ...], Field(min_length=1)]
        timeout: Rate = 3600.0
        version: str = ""

    kept: ClassVar[bool] = True

    def __init__(self, options: Options, places: Places) -> None:
        self._options, self._folder = options, places.declared
        self._said = shlex.join(options.command)

    def fingerprint(self, source: str, target: str) -> str:
        """Return a hash of the command, files among its arguments, and version."""
        # A program elsewhere may be an interpreter, which is another file on each machine.
        program, *words = (self._folder / word for word in self._options.command)
        own = os.path.isfile(program) and program.resolve().is_relative_to(self._folder.resolve())
        files = [program] * own + words
        found = [digest(file) if os.path.isfile(file) else "" for file in files]
        return fingerprint_of([["command", *self._options.command], found, [self._options.version]])

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """Return what the program writes; `DataError` where it fails, is too slow, or writes anything else."""
        lines = [json.dumps({"text": text, "source": source, "target": target}, ensure_ascii=False) for text in texts]
        log.info("translate: running %s for %d texts from %s into %s", self._said, len(texts), source, target)
        written = self._run("".join(f"{line}\n" for line in lines)).removesuffix("\n")
        found = written.split("\n") if written else []
        if len(found) != len(texts):
            raise self._error(f"expected {len(texts)} lines, one for each text, got {len(found)}")
        return [self._text(line, number) for number, line in enumerate(found, 1)]

    def _run(self, sent: str) -> str:
        try:
            program = subprocess.Popen(
                self._options.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            raise self._error(f"cannot be run: {error.strerror or error}") from None
        try:
            output, errors = program.communicate(sent.encode(), timeout=self._options.timeout)
        except subprocess.TimeoutExpired:
            raise self._error(f"took more than {self._options.timeout:g} s; raise options.timeout") from None
        finally:
            _end(program)
        if program.returncode:
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise self._error(f"ended with code {program.returncode}{f': {last[:200]}' if last else ''}")
        try:
            return output.decode()
        except UnicodeDecodeError as error:
            raise self._error(f"output is not UTF-8: byte {error.object[error.start]:#04x}") from None

    def _text(self, line: str, number: int) -> str:
        try:
            value = parse_json(line)
        except ValueError:
            raise self._error(f"line {number} is not JSON: {line[:80]}") from None
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            raise self._error(f'line {number}: expected {{"text": "..."}}, got {line[:80]}')
        text: str = value["text"]
        return text

    def _error(self, what: str) -> DataError:
        return DataError(f"translate: {self._said}: {what}")


def _end(program: "subprocess.Popen[bytes]") -> None:
    """Stop a program that still runs, with its children, which may hold its output open."""
    if program.poll() is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.communicate()


TRANSLATOR = Command
