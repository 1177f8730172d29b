"""From a built-in encoder to the teacher of metasearch-mini, and to the assistant that the student is made of."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.common.command import metasearch, module
from benchmarks.mini.corpus_lines import read_lines
from benchmarks.mini.distilled import distil
from benchmarks.mini.settings import Settings, Step

RECIPES = {"minilm": "mini", "e5": "mini-e5"}
"""Teacher → the recipe of its distillation."""
STATES = "mini-e5-states"
"""Recipe of the distillation before it, of e5."""


def of_minilm(settings: Settings, out: Path) -> Iterator[Step]:
    """Yield the steps to an assistant that has the layers of minilm, which learns every other language from nothing."""
    english, narrow, assistant = out / "english.txt", out / "narrow", out / "assistant"
    yield Step(english, lambda: _english(out / "corpus", english))
    yield Step(narrow, lambda: module(
        "benchmarks.mini.merging", settings.teacher, "--feed-forward", settings.feed_forward, "--texts", english,
        "--seed", settings.seed, "--device", settings.device, "-o", narrow))  # fmt: skip
    yield Step(assistant, lambda: module(
        "benchmarks.mini.vocabulary", out / "corpus", "--size", settings.vocabulary, "--lowercase", "--encoder", narrow,
        "--seed", settings.seed, "-o", assistant))  # fmt: skip


def of_e5(settings: Settings, out: Path) -> Iterator[Step]:
    """Yield the steps to a teacher without language in its vectors, and to a student that is cut out of it.

    The most frequent words stay with their vectors; what layers that follow each other did, and the word table, are
    fitted by least squares on the corpus. Then the student learns what the last layer of the encoder that it was cut
    out of gives at every token, with the same words.
    """
    corpus, assistant = out / "corpus", out / "assistant"
    fewer, merged, narrow, states = (out / name for name in ("vocabulary", "merged", "narrow", "states"))
    texts, device = ("--texts", corpus), ("--seed", settings.seed, "--device", settings.device)
    yield from words_of_e5(settings, corpus, out)
    yield Step(merged, lambda: module(
        "benchmarks.mini.merging", fewer, "--layers", settings.layers,
        "--feed-forward", settings.feed_forward, *texts, *device, "-o", merged))  # fmt: skip
    yield Step(narrow, lambda: metasearch(
        "compress", merged, "--bottleneck", settings.bottleneck, *texts, *device, "-o", narrow))  # fmt: skip
    yield Step(states / "report.md", lambda: distil(settings, out, states, STATES, fewer, student=narrow))
    yield Step(assistant, lambda: neutralise(settings, states / "model", corpus, assistant))


def words_of_e5(settings: Settings, corpus: Path, out: Path) -> Iterator[Step]:
    """Yield the steps to e5 with the words of a corpus, the same without language, and the first with fewer words."""
    trimmed, teacher, fewer = (out / name for name in ("trimmed", "teacher", "vocabulary"))
    yield Step(trimmed, lambda: metasearch("compress", settings.teacher, "--trim-vocab", corpus, "-o", trimmed))
    yield Step(teacher, lambda: neutralise(settings, trimmed, corpus, teacher))
    yield Step(fewer, lambda: metasearch(
        "compress", trimmed, "--trim-vocab", corpus, "--vocabulary", settings.vocabulary, "-o", fewer))  # fmt: skip


def neutralise(settings: Settings, encoder: Path, corpus: Path, output: Path) -> None:
    """Take the language out of the vectors of an encoder, by sentences of a corpus."""
    how = ("--max-texts-per-language", settings.sentences, "--device", settings.device)
    metasearch("neutralise", encoder, "--texts", corpus, *how, "-o", output)


def teacher_of(settings: Settings, out: Path) -> str:
    """Return the encoder that teaches: a built-in name, or a folder that the build makes."""
    return settings.teacher if settings.teacher == "minilm" else str(out / "teacher")


def _english(corpus: Path, path: Path) -> None:
    """Write the distinct English sentences of a corpus to a file, one a line."""
    texts = dict.fromkeys(line.source for line in read_lines(corpus))
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    partial.rename(path)
