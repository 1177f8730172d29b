"""The model card of metasearch-mini and metasearch-mini-e5: every number in it is read from the build."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.mini.corpus_lines import read_lines
from metasearch.config import yaml
from metasearch.encoders.load import load_encoder
from metasearch.errors import DataError, nearest
from metasearch.runs.markdown import DIRECTIONS, by_direction, by_language, markdown
from metasearch.runs.rows import MEAN

HERE = Path(__file__).parent
LICENCE = "cc-by-sa-4.0"
Row = dict[str, Any]


@dataclass(frozen=True)
class Teacher:
    """The encoder that taught, and the built-in name of its student.

    Attributes:
        base: name on the model hub.
        knows: its languages, in words.
        lowercase: whether the student lowercases texts.
        spells: whether its tokenizer writes unknown characters as bytes.
    """

    student: str
    name: str
    base: str
    knows: str
    credit: str
    lowercase: bool
    spells: bool

    @property
    def title(self) -> str:
        """What the student is called in its card and in rows."""
        return f"metasearch-{self.student}"


TEACHERS = {
    "minilm": Teacher(
        "mini",
        "all-MiniLM-L6-v2",
        "sentence-transformers/all-MiniLM-L6-v2",
        "English only",
        "sentence-transformers, Apache 2.0",
        lowercase=True,
        spells=True,
    ),
    "e5": Teacher(
        "mini-e5",
        "multilingual-e5-small",
        "intfloat/multilingual-e5-small",
        "a hundred languages",
        "Wang et al. 2024, MIT",
        lowercase=False,
        spells=False,
    ),
}
"""Built-in name → what the card says of it."""


def sources() -> dict[str, dict[str, str]]:
    """Return name, address, licence and attribution of each corpus that may be trained on."""
    return yaml.tree(HERE / "corpora" / "sources.yaml")


def require_licensed(corpora: Iterable[str], where: Path) -> None:
    """Raise `DataError` for a corpus that `sources.yaml` does not list."""
    known = sources()
    for name in corpora:
        if name not in known:
            raise DataError(
                f"{where}: corpus '{name}' is not in sources.yaml: no licence is known.{nearest(name, known)}"
            )


def render(
    corpus: Path, joined: Path, model: Path, scores: Sequence[Path], teacher: Teacher, made: Mapping[str, Any]
) -> str:
    """Return the card in Markdown, with front matter as model hubs read it.

    `scores` are JSON-lines files of `metasearch evaluate`; `made` is `command`, `seed`, `steps` and `recipe`.
    """
    lines = list(read_lines(corpus))
    counts = Counter((line.corpus, line.language) for line in lines)
    used = sorted({name for name, _ in counts})
    require_licensed(used, corpus)
    languages = sorted({"en", *(line.language for line in lines)})
    rows = [json.loads(line) for path in scores for line in path.read_text(encoding="utf-8").splitlines()]
    encoder = load_encoder(str(model), device="cpu")
    others = sorted({row["learner"] for row in rows} - {teacher.title})
    template = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, autoescape=False)
    return (
        template.get_template("card.md.j2").render(
            front=yaml.dump(_front(languages, teacher)),
            teacher=teacher,
            languages=languages,
            parameters=encoder.parameter_count,
            megabytes=sum(path.stat().st_size for path in model.rglob("*") if path.name != "README.md") / 1e6,
            dimension=len(encoder.encode(["one"], "text")[0]),
            max_length=encoder.model.max_seq_length,
            english=len({line.source for line in lines}),
            pairs=len(lines),
            joins=sum(1 for _ in read_lines(joined)),
            sizes=sizes(counts),
            corpora=[{"key": name, **sources()[name]} for name in used],
            means=means(rows),
            details="\n\n".join(_details(rows, teacher.title)),
            compared=f", beside {' and '.join(others)}" if others else "",
            versions=_versions(rows),
            **made,
        )
        + "\n"
    )


def sizes(counts: Mapping[tuple[str, str], int]) -> str:
    """Return a table of pairs by corpus and language."""
    corpora, languages = ({key[side]: None for key in sorted(counts)} for side in (0, 1))
    names = sorted(languages)
    cells = [[name, *(f"{counts.get((name, code), 0):,}" for code in names)] for name in corpora]
    totals = [f"{sum(counts.get((name, code), 0) for name in corpora):,}" for code in names]
    return markdown(["pairs of English with", *names], [*cells, ["all", *totals]])


def means(rows: Sequence[Row]) -> str:
    """Return a table of tasks and encoders: the mean over languages of each task's measures, times 100."""
    encoders = list(dict.fromkeys(row["learner"] for row in rows))
    cells = {}
    for row in rows:
        # The first pool is the one whose mean counts; translation has one for each direction.
        if row["language"] == MEAN and row["pool"] not in DIRECTIONS[:2]:
            cells.setdefault((row["task"], row["measure"], row["learner"]), f"{100 * row['value']:.2f}")
    asked = list(dict.fromkeys((task, measure) for task, measure, _ in cells))
    lines = [
        [f"{task}, {measure}", *(cells.get((task, measure, name), "") for name in encoders)] for task, measure in asked
    ]
    return markdown(["task and measure", *encoders], lines)


def _details(rows: Sequence[Row], title: str) -> Iterable[str]:
    own = [row for row in rows if row["learner"] == title]
    for task in dict.fromkeys(row["task"] for row in own):
        of_task = [row for row in own if row["task"] == task]
        translation = {row["pool"] for row in of_task} == set(DIRECTIONS)
        yield f"### {task}\n\n{by_direction(of_task, 'test') if translation else by_language(of_task, 'test')}"


def _versions(rows: Sequence[Row]) -> str:
    versions = rows[0]["versions"] if rows else {}
    return ", ".join(f"{library} {version}" for library, version in versions.items())


def _front(languages: Sequence[str], teacher: Teacher) -> dict[str, Any]:
    return {
        "language": list(languages),
        "license": LICENCE,
        "library_name": "metasearch",
        "pipeline_tag": "sentence-similarity",
        "base_model": teacher.base,
        "tags": ["sentence-transformers", "multilingual", "semantic-search", "distillation"],
    }
