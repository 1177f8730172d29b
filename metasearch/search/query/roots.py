"""The root of documents, and their names relative to it, when an index is made or updated."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from metasearch.errors import ConfigError
from metasearch.search.documents.read import Source
from metasearch.search.index.places import roots, shown
from metasearch.search.index.writer import IndexWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Root:
    """The folder to which names of documents are relative.

    `named` are the files and folders as the user named them, and their real paths.
    """

    folder: Path
    named: Mapping[Path, Path]

    @classmethod
    def choose(
        cls,
        store: IndexWriter,
        paths: Sequence[str | Path],
        documents: Sequence[Source],
        asked: Path | None,
        drop: bool,
    ) -> "Root":
        """Return the root of an index for some named files and folders; known documents get their names below it.

        A new index has as its root the folder that was named, or the common parent of all. It stays while it holds all
        that is named; else it becomes the common parent. Where it is gone, the documents have moved: a document with a
        known name tells where.

        Raises:
            ConfigError: something named is not below the root that was asked for, or the root is gone and no document
                that is named has a known name.
        """
        resolved = {Path(path): _real(Path(path)) for path in paths}
        named = {path: _named(path, resolved) for path in resolved}
        common = Path(os.path.commonpath([real if path.is_dir() else real.parent for path, real in named.items()]))
        if asked is not None:
            return cls(_asked(common, asked), named)
        if not store.files:
            return cls(common, named)
        for root in roots(store.state, store.folder):
            for places in (named, resolved):
                if all(each.is_relative_to(root) for each in places.values()):
                    return cls(root, places)
        before = store.root
        if before.is_dir():
            wider = Path(os.path.commonpath([before, common]))
            store.rename(lambda name: (before / name).relative_to(wider).as_posix())
            log.info("%s: paths of documents are relative to %s, before to %s", store.folder, wider, before)
            return cls(wider, named)
        return _moved(store, before, cls(common, named), documents, drop)

    def name(self, path: Path) -> str:
        """Return the name of a document or folder that was found, relative to the root, with no link in it."""
        named = next(each for each in (path, *path.parents) if each in self.named)
        return (self.named[named] / path.relative_to(named)).relative_to(self.folder).as_posix()

    def rename(self, documents: Iterable[Source]) -> list[Source]:
        """Return documents by their names relative to the root, each of them once."""
        found: dict[str, Source] = {}
        for source in documents:
            found.setdefault(name := self.name(source.path), replace(source, file=name))
        return list(found.values())


def _real(path: Path) -> Path:
    """Return the real path of a named file or folder; a file keeps its name where it is a link."""
    return Path(os.path.realpath(path)) if path.is_dir() else Path(os.path.realpath(path.parent)) / path.name


def _named(path: Path, resolved: Mapping[Path, Path]) -> Path:
    """Return the path of a link to a folder, which may lead elsewhere tomorrow, unless its folder is named, too."""
    others = [real for other, real in resolved.items() if other != path]
    if not path.is_symlink() or any(resolved[path].is_relative_to(real) for real in others):
        return resolved[path]
    return Path(os.path.realpath(path.parent)) / path.name


def _asked(common: Path, asked: Path) -> Path:
    root = _require_folder(asked)
    if not common.is_relative_to(root):
        raise ConfigError(f"--root {asked}: {shown(common)} is not below it; choose a folder that holds all documents")
    return root


def known_root(store: IndexWriter, asked: Path) -> Path:
    """Return the folder to which the documents of an index have moved; `ConfigError` if none of them is there."""
    root = _require_folder(asked)
    if not any((root / name).is_file() for name in store.files):
        first = next(iter(store.files))
        raise ConfigError(f"--root {asked}: none of the documents is below it, such as {shown(root / first)}")
    return root


def _require_folder(asked: Path) -> Path:
    if not asked.is_dir():
        raise ConfigError(f"--root {asked}: expected a folder")
    return Path(os.path.realpath(asked))


def _moved(store: IndexWriter, before: Path, now: Root, documents: Sequence[Source], drop: bool) -> Root:
    """Return the root of documents that have moved: the deepest folder below which one has a known name."""
    for root in (Root(folder, now.named) for folder in (now.folder, *now.folder.parents)):
        if any(root.name(each.path) in store.files for each in documents):
            log.warning("%s: its documents moved from %s to %s", store.folder, before, root.folder)
            return root
    if not drop:
        raise ConfigError(
            f"{store.folder}: its {len(store.files):,} documents were in {before}, which is gone, and none of them is "
            f"in {shown(now.folder)}; pass --root with their folder if they moved, or --prune to remove them"
        )
    return now
