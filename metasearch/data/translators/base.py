"""What a translator is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from metasearch.config.base import FrozenConfig


@dataclass(frozen=True)
class Places:
    """Base folders for relative paths in a translator's options.

    Attributes:
        data: folder of the task's data files and of files with translations.
        declared: folder of the task's own file.
    """

    data: Path
    declared: Path


class Translator(Protocol):
    """Translate texts; constructed from options (class `Options`) and places: `TRANSLATOR(options, places)`.

    Attributes:
        Options: options that a task's block `translate` may have for it.
    """

    Options: ClassVar[type[FrozenConfig]]

    def __init__(self, options: Any, places: Places) -> None: ...

    def fingerprint(self, source: str, target: str) -> str:
        """Return a hash of everything known to affect translations between two languages."""

    def translate(self, texts: Sequence[str], source: str, target: str) -> Sequence[str]:
        """Return the translation of each text, in order.

        Args:
            texts: distinct ones, in language `source`.
            source: code of the language, as the task has it.
            target: code of the language to translate into, likewise.

        Raises:
            DataError: it fails, or has no translation of a text.
            ConfigError: it does not know a language, or what it needs is not installed.
        """
