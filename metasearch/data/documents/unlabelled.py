"""Unlabelled passages, which a search ranks together with the labelled documents."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from metasearch.data.documents.chunking import Settings
from metasearch.data.documents.read import read
from metasearch.data.overlap import Index, TestSet, key
from metasearch.data.records import Candidate


def read_unlabelled(
    paths: Sequence[str | Path], how: Settings, labelled: Iterable[Candidate], most: int
) -> tuple[list[Candidate], int]:
    """Return evenly spaced passages that hold no labelled document, at most `most`, and how many there are."""
    texts = tuple((each.text, each.id) for each in labelled)
    known = Index(TestSet("labels", texts, texts))
    found = [each for each in read(paths, how) if not known.find(key(each.text))]
    taken = found[:: max(1, -(-len(found) // most))]
    names = [f"passage {number}" for number in range(len(taken))]
    extra = [Candidate(name, each.language, each.text, name) for name, each in zip(names, taken, strict=True)]
    return extra, len(found)
