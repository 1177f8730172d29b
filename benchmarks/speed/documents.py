"""How fast documents become passages, and how often their language is detected rightly.

    python -m benchmarks.speed.documents --megabytes 5 --rounds 5 --corpus ~/data/parallel

The same sentences are written as a document of each kind; the readers take turns, the other way round in every other
round. `thai` is plain text of phrases whose words have no spaces between them. With `--corpus`, a folder of
`en-LL.tsv`, the language of 500 sentences of each language is detected, one by one and four at a time.
"""

import html
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np

from benchmarks.common.clock import Seconds, clock
from metasearch.data.documents.detect import detector
from metasearch.data.documents.read import passages
from metasearch.data.documents.settings import Settings
from metasearch.data.documents.source import sources
from metasearch.data.formats.text_files import text_lines

TEXT = "the key under mat where open nine Schlüssel liegt unter der Matte κλειδί χαλί गुरु Ключ anahtar halı"
THAI = "กุญแจอยู่ใต้พรมและประตูเปิดเวลาเก้าโมง"
SENTENCES = 500


def paragraphs(size: int) -> list[str]:
    """Return paragraphs of five sentences, of so many bytes in all."""
    draw = random.Random(0)
    made: list[str] = []
    while size > 0:
        made.append(" ".join(" ".join(draw.choices(TEXT.split(), k=12)) + "." for _ in range(5)))
        size -= len(made[-1].encode())
    return made


def documents(size: int) -> dict[str, str]:
    """Return name → content of the documents."""
    texts = paragraphs(size)
    return {
        "a.txt": "\n\n".join(texts),
        "a.md": "\n\n".join(f"## Part {i}\n\n{text}" for i, text in enumerate(texts)),
        "a.html": "<body>\n" + "\n".join(f"<h2>Part {i}</h2>\n<p>{html.escape(t)}</p>" for i, t in enumerate(texts)),
        "a.jsonl": "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in texts),
        "a.csv": "text\n" + "\n".join(f'"{text}"' for text in texts),
        "thai.txt": " ".join([THAI] * (size // len(THAI.encode()))),
    }


def rates(folder: Path, rounds: int) -> dict[str, Seconds]:
    """Return megabytes per second of each document of a folder, `(rounds, 2)`."""
    found = sources([folder])
    taken: dict[str, list[Seconds]] = {source.path.name: [] for source in found}
    for number in range(rounds):
        for source in found[:: -1 if number % 2 else 1]:
            began = clock()
            assert sum(1 for _ in passages(source, Settings()))
            taken[source.path.name].append(source.size / 1e6 / (clock() - began))
    return {name: np.array(each) for name, each in taken.items()}


def sentences(corpus: Path) -> dict[str, list[str]]:
    """Return sentences by language, drawn from files `en-LL.tsv`."""
    drawn: dict[str, list[str]] = {"en": []}
    for path in sorted(corpus.glob("en-*.tsv")):
        rows = [line.rstrip("\n").split("\t") for _, line in text_lines(path)]
        random.Random(0).shuffle(rows)
        drawn[path.stem.removeprefix("en-")] = [row[1] for row in rows[:SENTENCES]]
        drawn["en"] += [row[0] for row in rows[:SENTENCES]]
    drawn["en"] = random.Random(0).sample(drawn["en"], SENTENCES)
    return drawn


def accuracy(tell: Callable[[str], str], texts: Mapping[str, Sequence[str]], joined: int) -> dict[str, float]:
    """Return by language how often it is told rightly, in per cent, of so many sentences at a time."""
    shares = {}
    for language, own in texts.items():
        parts = [" ".join(own[i : i + joined]) for i in range(0, len(own), joined)]
        shares[language] = 100 * float(np.mean([tell(part) == language for part in parts]))
    return shares


@click.command()
@click.option("--megabytes", type=click.FloatRange(min=0, min_open=True), default=5, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--corpus", type=click.Path(exists=True, path_type=Path), help="Folder of en-LL.tsv; needs py3langid.")
def main(megabytes: float, rounds: int, corpus: Path | None) -> None:
    """Measure how fast documents become passages, and with a corpus how often a language is detected rightly."""
    with TemporaryDirectory() as folder:
        for name, content in documents(int(megabytes * 1e6)).items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        measured = rates(Path(folder), rounds)
    plain = measured["a.txt"][:, 0]
    for name, each in measured.items():
        wall = each[:, 0]
        click.echo(f"{name}: {np.median(wall):.2f} MB/s, {np.median(wall / plain):.2f} of a.txt")
    if corpus:
        texts = sentences(corpus)
        for choice, tell in (("97", detector()), (str(len(texts)), detector(sorted(texts)))):
            for joined in (1, 4):
                shares = accuracy(tell, texts, joined)
                shown = ", ".join(f"{language} {share:.1f}" for language, share in shares.items())
                mean = np.mean(list(shares.values()))
                click.echo(f"of {choice} languages, {joined} at a time: {mean:.1f} % ({shown})")


if __name__ == "__main__":
    main()
