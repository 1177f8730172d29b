"""SemEval-2017 task 1: two tab-separated sentences a line, and one gold score from 0 to 5 a line beside it.

The order of the two languages differs between tracks. Track 6 (tr-en) has 500 pairs and 250 scores, which belong to
the first 250 pairs (MAML-Align paper, Table 3).
"""

from pathlib import Path

from metasearch.config.task import Task
from metasearch.data.formats.text_files import lines_of, strip_text
from metasearch.data.records import ScoredPair, SimilarityData
from metasearch.data.scored import score_of
from metasearch.errors import DataError, nearest

TRACKS = {
    "ar-ar": ("track1.ar-ar", ("ar", "ar")),
    "ar-en": ("track2.ar-en", ("en", "ar")),
    "es-es": ("track3.es-es", ("es", "es")),
    "es-en": ("track4a.es-en", ("es", "en")),
    "en-en": ("track5.en-en", ("en", "en")),
    "tr-en": ("track6.tr-en", ("en", "tr")),
}
"""Pair → file suffix and the languages of the two columns."""


def files(task: Task) -> list[str]:
    """Return input and gold file for each pair."""
    return [f"STS.{part}.{_track(task, pair)[0]}.txt" for pair in task.pairs for part in ("input", "gs")]


def read(folder: Path, task: Task) -> SimilarityData:
    """Read all pairs of a task; rows with the same number form one group."""
    pairs: list[ScoredPair] = []
    for pair in task.pairs:
        suffix, languages = _track(task, pair)
        inputs, scores = folder / f"STS.input.{suffix}.txt", folder / f"STS.gs.{suffix}.txt"
        lines, golds = lines_of(inputs), lines_of(scores)
        if len(lines) != len(golds) and not (pair == "tr-en" and len(lines) == 2 * len(golds)):
            raise DataError(
                f"{scores}: expected {len(lines)} scores, one for each line of {inputs.name}; got {len(golds)}"
            )
        for number, (line, score) in enumerate(zip(lines, golds, strict=False), 1):
            text1, text2 = _sentences(line, f"{inputs}:{number}")
            gold = score_of(score, f"{scores}:{number}")
            pairs.append(ScoredPair(pair, languages, text1, text2, gold, f"row-{number}"))
    return SimilarityData(tuple(pairs))


def _track(task: Task, pair: str) -> tuple[str, tuple[str, str]]:
    if pair not in TRACKS:
        raise DataError(f"task '{task.name}': pairs: SemEval-2017 has no pair '{pair}'.{nearest(pair, TRACKS)}")
    return TRACKS[pair]


def _sentences(line: str, place: str) -> tuple[str, str]:
    columns = line.split("\t")
    if len(columns) < 2:
        raise DataError(f"{place}: expected two tab-separated sentences, got '{line[:60]}'")
    return strip_text(columns[0], place), strip_text(columns[1], place)
