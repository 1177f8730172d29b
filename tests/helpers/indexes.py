"""Small indexes of made vectors, and what a search of them has to find by plain arithmetic."""

import hashlib
from dataclasses import dataclass

import numpy as np

from metasearch.search.documents.languages import path_without_language
from metasearch.search.documents.passage import Passage
from metasearch.search.index.base import FilePlaces, Hit, Kind, SourceFile
from metasearch.search.index.exact_search import to_int8
from metasearch.search.index.postgresql import PostgresStore
from metasearch.search.index.writer import writing

DIMENSION = 24
LANGUAGES = ("de", "el", "tr")


@dataclass(frozen=True)
class Made:
    """Passages with their vectors and keys, in the order of their places."""

    vectors: np.ndarray
    passages: list
    keys: np.ndarray

    def part(self, chosen):
        return Made(self.vectors[chosen], [self.passages[i] for i in chosen], self.keys[chosen])

    def files(self):
        """Return the places of each file, files in the order in which they first come."""
        found = []
        for name in dict.fromkeys(passage.file for passage in self.passages):
            own = [i for i, passage in enumerate(self.passages) if passage.file == name]
            lines = np.array([self.passages[i].line for i in own], np.int32)
            found.append(
                FilePlaces(SourceFile(name, 10, "0" * 64, group=path_without_language(name)), self.keys[own], lines)
            )
        return found


def key_of(passage):
    return np.frombuffer(hashlib.sha256(f"{passage.language} {passage.text}".encode()).digest()[:16], np.uint8)


def made(count=120, seed=0, dimension=DIMENSION, per_file=30):
    """Return passages of files of so many each; the languages take turns."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    passages = [
        Passage(f"passage {seed}.{i}", f"docs/{i // per_file}.txt", i % per_file + 1, LANGUAGES[i % 3])
        for i in range(count)
    ]
    return Made(vectors, passages, np.array([key_of(passage) for passage in passages]).reshape(count, 16))


def kind(dimension=DIMENSION, **settings):
    return Kind("mini", "fingerprint-1", dimension, settings)


def write_index(folder, content, portions=1):
    """Write an index of some content, added in so many portions."""
    with writing(folder, kind(content.vectors.shape[1])) as store:
        for chosen in np.array_split(np.arange(len(content.passages)), portions):
            part = content.part(chosen)
            store.upsert(part.vectors, part.passages, part.keys)
        store.finish(content.files())
    return folder


def queries(count=4, dimension=DIMENSION, seed=7):
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


def expected(content, asked, top, languages=()):
    """Return the texts that are nearest by float64 products with the rounded vectors, and these products."""
    codes, steps = to_int8(content.vectors)
    scores = asked.astype(np.float64) @ (codes.astype(np.float64) * steps[:, None].astype(np.float64)).T
    found = []
    for row in scores:
        inside = [not languages or passage.language in languages for passage in content.passages]
        order = [i for i in np.argsort(-row, kind="stable") if inside[i]]
        found.append([(content.passages[i].text, row[i]) for i in order[:top]])
    return found


def hits_of(store, rows, scores):
    """Return rows and their scores as hits."""
    return [
        Hit(float(score), passage, places)
        for score, (passage, places) in zip(scores, store.passages(rows), strict=True)
    ]


def found_by(store, asked, top, languages=(), **how):
    """Return the texts that a search finds, and their scores."""
    ((rows, scores),) = store.search(asked, top, [languages], **how)
    return [
        [(hit.passage.text, hit.score) for hit in hits_of(store, own, of)] for own, of in zip(rows, scores, strict=True)
    ]


def texts_of(found):
    return [[text for text, _ in ranking] for ranking in found]


def cut_words(texts):
    """Cut texts at white space; a word's number is the sum of its bytes."""
    return [[sum(word.encode()) for word in text.split()] for text in texts]


def in_postgresql(index, server, words=cut_words):
    """Return a copy of an index in a server (`helpers.postgres`)."""
    address = server.address("help")
    PostgresStore.copy(index, address, words, lambda done, total: None)
    return PostgresStore.open(address)


class Given:
    """An encoder that has the vectors of queries already: a query is its number."""

    name, fingerprint = "mini", "fingerprint-1"

    def __init__(self, vectors):
        self.vectors = vectors

    def dimension(self):
        return self.vectors.shape[1]

    def forget(self):
        pass

    def encode(self, texts, role):
        return self.vectors[[int(text) for text in texts]]
