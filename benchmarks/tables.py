"""Fills the tables in the documents from `benchmarks/results/`: every figure in them comes from a row.

    python -m benchmarks.tables            # write them
    python -m benchmarks.tables --check    # exit code 1 where a document says something else than the rows

A table stands between two comments, `<!-- table: NAME -->` and `<!-- end of table -->`, in `README.md`, in `docs/` or
in `benchmarks/`; `--list` shows the names.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from benchmarks.common.command import Command
from benchmarks.common.rows import RESULTS, Row, read_rows
from benchmarks.pages import adapt, claims, fine_tuning, memory, questions
from benchmarks.pages import rivals as page_rivals
from benchmarks.pages import tables as pages
from benchmarks.paper import adapter_tables as adapter
from benchmarks.paper import alignment_tables as alignment
from benchmarks.paper import answers, expansion, labels, rivals, study_tables, tune
from benchmarks.paper.ablation_tables import ablation_table
from benchmarks.paper.cells import BEST
from benchmarks.paper.small_study_tables import changes_table, losses, of_encoder, rates_table
from benchmarks.speed import index, large_index, precision, precision_quality, training_precision
from benchmarks.speed.exports import score_table, speed_table
from benchmarks.speed.first_search import table as first_search_table
from benchmarks.speed.index_recall import recall_table
from benchmarks.speed.serving import table as serving_table
from benchmarks.speed.speed_tables import checkpointing_table, comparison_table
from benchmarks.statistics.behind import behind_table
from benchmarks.statistics.calibration import calibration_table
from benchmarks.statistics.coverage import MISSED, coverage_table
from benchmarks.statistics.tuning import choice_table, interval_table
from benchmarks.statistics.unseen_losses import losses_table
from metasearch.errors import ConfigError, nearest
from metasearch.runs.markdown import markdown

ROOT = Path(__file__).resolve().parents[1]
TABLE = re.compile(r"(<!-- table: (\S+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)


def study(task: str, file: str = "main_table") -> list[Row]:
    """Return the rows of the last study of a task with the encoder `mini`."""
    return study_tables.rows_of_study(rows_of(file), task, "mini")


def strong_study(task: str, file: str = "main_table") -> list[Row]:
    """Return the rows of the last study of a task with the encoder `e5`."""
    return study_tables.rows_of_study(rows_of(file), task, "e5")


def small_study(learner: str | None = None, encoder: str = "mini", loss: str | None = None) -> list[Row]:
    """Return the points of the small studies with today's `mini` or another encoder, of one learner or loss or all."""
    rows = of_encoder(rows_of("small_studies"), "lareqa-sentences", encoder)
    return [row for row in rows if learner in (None, row["learner"]) and loss in (None, *losses(row))]


def taught_by(teacher: str) -> list[Row]:
    """Return the rows of the ablations from one teacher; the first ones do not name it."""
    return [row for row in rows_of("mini_ablations") if row.get("teacher", "minilm") == teacher]


def recommended(row: Row) -> bool:
    """Say whether a row is of an untrained encoder, or of the recipe that the documents recommend."""
    return row["mode"] is None or row.get("recipe") == BEST


def rows_of(name: str) -> list[Row]:
    """Return the rows of a results file."""
    return read_rows(RESULTS / f"{name}.jsonl")


def short(table: str, *heads: str, rows: Sequence[str] = (), left: int = 2) -> str:
    """Return some columns of a table, and of its rows those whose first cell is named, or all."""
    head, _, *body = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines() if line[:1] == "|"
    )
    places = [head.index(name) for name in heads]
    return markdown([*heads], [[row[i] for i in places] for row in body if not rows or row[0] in rows], left=left)


def only(table: str, **cells: Sequence[str]) -> str:
    """Return the rows of a table that have one of these texts in each of these columns."""
    head, line, *body = table.splitlines()
    places = {[cell.strip() for cell in head.split("|")].index(name): texts for name, texts in cells.items()}
    kept = [row for row in body if all(row.split("|")[i].strip() in texts for i, texts in places.items())]
    return "\n".join((head, line, *kept))


def summary(task: str, file: str = "main_table", rows: Sequence[str] = ()) -> str:
    """Return arm, mode, mean, difference from zero-shot and language bias of a study with `e5`."""
    table = study_tables.summary_table(strong_study(task, file))
    heads = table.splitlines()[0][1:-1].split("|")
    bias = [head.strip() for head in heads if "bias" in head]
    return short(table, *(heads[i].strip() for i in (0, 1, 2, 3)), *bias, rows=rows)


def learners() -> str:
    """Return what three learners gain on the encoder before training, by encoder and loss, beside the paper."""
    e5 = [("fine-tune", "trans"), ("maml", "trans"), ("maml-align", "mono-bi-multi")]
    mini = [("fine-tune", "mono-mono"), *e5[1:]]
    studies = {
        "`e5`, triplet loss, margin 1.0": (strong_study(LAREQA, "e5_margin_arms"), e5),
        "`e5`, triplet loss, margin 0.2": (strong_study(LAREQA, "e5_low_margin_arms"), e5),
        "`e5`, InfoNCE": (strong_study(LAREQA), e5),
        "`mini`, triplet loss, margin 1.0": (study(LAREQA, "paper_margin"), mini),
        "`mini`, triplet loss, margin 0.2": (study(LAREQA), mini),
    }
    return study_tables.learners_table(studies)


def similarity() -> str:
    """Return what three learners gain on the similarity tasks, a column for each task."""
    tasks = {
        "STSB_Multi, five folds [95 % CI]": STSB,
        "STS benchmark, seven languages": "stsb-mt",
        "T-Train": "stsb-mt-translated",
    }
    columns = [study_tables.gains(strong_study(task)) for task in tasks.values()]
    lines = [[arm, *(column[arm] for column in columns)] for arm in columns[0]]
    return markdown(["learner", *tasks], lines)


def adapters(table: str, task: str) -> str:
    """Return a table of learners that trained an adapter: `learners` or `modes`."""
    make = {"learners": adapter.learners_table, "modes": adapter.modes_table}[table]
    return make(rows_of("adapter_learners"), task)


def shots(name: str, starts: bool = False) -> str:
    """Return gains by shots on a set, or differences of learned starts; `-unseen` of languages not trained on."""
    make = adapter.starts_table if starts else adapter.shots_table
    return make(rows_of("adapter_shots"), name.removesuffix(UNSEEN), name.endswith(UNSEEN))


UNSEEN = "-unseen"
SHOT_SETS = tuple(f"{name}{end}" for name in ("pages", "lareqa-sentences") for end in ("", UNSEEN))
LAREQA, STSB = "lareqa-sentences", "stsb"
THROUGH = ("neutral+fine-tune", "neutral+maml", "neutral+maml-align", "neutral+reptile")
NULLS = "true nulls rejected at 5 %, in %"
DESIGNS = (
    "5 folds × 1 seed", "5 folds × 3 seeds",
    "1 fold × 3 seeds, of other seeds and questions on it", "5 folds × 3 seeds, fold effects correlate with 0.3",
)  # fmt: skip
UNEQUAL = (
    "5 articles of 10 questions", "10 articles of 10 questions", "12 articles, one has 60 % of the questions",
    "5 articles, both models near 1", "5 articles, one near 1, the other at 1",
    "48 articles, one near 1, the other at 1",
)  # fmt: skip
SHOWN = ("0 shots", "1 shots", "8 shots", "32 shots")
BIAS = ("zero-shot", "fine-tune", "fine-tune+neutral", "neutral", "neutral+fine-tune", "aligned", "aligned+best")
SMALL = (
    "three-stages", "without-mcl", "bool", "ce-hard", "without-both", "same-start", "pre-distilled", "similarity",
    "ema-fast", "ema-paper",
)  # fmt: skip
LARGER = [f"align {form} share=0.3 fall=0.3" for form in ("gap", "scores", "embeddings")]
TABLES: dict[str, Callable[[], str]] = {
    "lareqa-summary": lambda: study_tables.summary_table(study(LAREQA)),
    "lareqa-against": lambda: study_tables.against_table(study(LAREQA)),
    "e5-summary": lambda: study_tables.summary_table(strong_study(LAREQA)),
    "e5-against": lambda: study_tables.against_table(strong_study(LAREQA)),
    "e5-expanded": lambda: study_tables.summary_table(strong_study(LAREQA, "expanded")),
    "e5-paragraphs-summary": lambda: study_tables.summary_table(strong_study("lareqa")),
    "e5-paragraphs-against": lambda: study_tables.against_table(strong_study("lareqa")),
    "e5-margin-summary": lambda: study_tables.summary_table(strong_study(LAREQA, "e5_margin_arms")),
    "e5-margin-against": lambda: study_tables.against_table(strong_study(LAREQA, "e5_margin_arms")),
    "e5-low-margin-summary": lambda: study_tables.summary_table(strong_study(LAREQA, "e5_low_margin_arms")),
    "e5-low-margin-against": lambda: study_tables.against_table(strong_study(LAREQA, "e5_low_margin_arms")),
    "e5-low-rate-summary": lambda: study_tables.summary_table(strong_study(LAREQA, "e5_low_rate_arms")),
    "e5-low-rate-against": lambda: study_tables.against_table(strong_study(LAREQA, "e5_low_rate_arms")),
    "e5-triplet-rates": lambda: rates_table(small_study(encoder="e5", loss="triplet")),
    "e5-inner-rates": lambda: changes_table(small_study("maml", "e5", "infonce")),
    "rivals": lambda: rivals.table(rows_of("rivals"), rows_of("strong_encoder")),
    "labels": lambda: labels.table(rows_of("labels"), rows_of("strong_encoder"), LAREQA),
    "tune": lambda: tune.table(rows_of("tune")),
    "claims": lambda: claims.table(rows_of("claims")),
    "fine-tuning": lambda: fine_tuning.table(rows_of("fine_tuning")),
    "adaptation": lambda: adapt.table(rows_of("adaptation"), "GNOME help, first paragraphs"),
    "adaptation-pages": lambda: adapt.table(rows_of("adaptation"), "GNOME help, 60 pages"),
    "adaptation-debian": lambda: adapt.table(rows_of("adaptation"), "debian-reference-60"),
    "adaptation-faq": lambda: adapt.table(rows_of("adaptation"), "debian-faq-60"),
    "adaptation-labelled": lambda: memory.table(rows_of("memory"), "faq"),
    "adaptation-labelled-apart": lambda: memory.table(rows_of("memory"), "gnome60-no-titles"),
    "adaptation-developers": lambda: adapt.table(rows_of("adaptation"), "developers-reference-60"),
    **{f"adapter-learners-{task}": partial(adapters, "learners", task) for task in ("lareqa-sentences", "stsb")},
    **{f"adapter-modes-{task}": partial(adapters, "modes", task) for task in ("lareqa-sentences", "stsb")},
    "adapter-rates": lambda: adapter.rates_table(rows_of("adapter_learners")),
    **{f"adapter-shots-{name}": partial(shots, name) for name in SHOT_SETS},
    **{f"adapter-starts-{name}": partial(shots, name, starts=True) for name in SHOT_SETS},
    "answers": lambda: answers.table(rows_of("answers")),
    "expansion": lambda: expansion.table(rows_of("expansion")),
    "alignment-curves": lambda: alignment.curves_table(rows_of("alignment")),
    "alignment-variants": lambda: alignment.variants_table(rows_of("alignment")),
    "alignment-main": lambda: alignment.main_table(rows_of("alignment")),
    "alignment-grid": lambda: alignment.grid_table(rows_of("alignment"), "mini"),
    "alignment-fair": lambda: alignment.fair_table(rows_of("alignment"), "mini"),
    "alignment-labels": lambda: alignment.labels_table(rows_of("alignment"), "mini"),
    "alignment-episodes": lambda: alignment.episodes_table(rows_of("alignment"), "mini"),
    "alignment-forms": lambda: alignment.forms_table(rows_of("alignment"), "mini"),
    "margin-summary": lambda: study_tables.summary_table(study(LAREQA, "paper_margin")),
    "margin-against": lambda: study_tables.against_table(study(LAREQA, "paper_margin")),
    "stsb-summary": lambda: study_tables.summary_table(study(STSB)),
    "stsb-against": lambda: study_tables.against_table(study(STSB)),
    "stsb-e5-summary": lambda: study_tables.summary_table(strong_study(STSB)),
    "stsb-e5-against": lambda: study_tables.against_table(strong_study(STSB)),
    "stsb-mt-e5-summary": lambda: study_tables.summary_table(strong_study("stsb-mt")),
    "stsb-mt-e5-against": lambda: study_tables.against_table(strong_study("stsb-mt")),
    "translated-summary": lambda: study_tables.summary_table(strong_study("stsb-mt-translated")),
    "rates": lambda: rates_table(small_study()),
    "maml-changes": lambda: changes_table(small_study("maml")),
    "calibration": lambda: calibration_table(rows_of("calibration")),
    "tuning": lambda: choice_table(rows_of("tuning")),
    "tuning-intervals": lambda: interval_table(rows_of("tuning")),
    "training-precision": lambda: training_precision.table(rows_of("training_precision")),
    "behind": lambda: behind_table(rows_of("behind")),
    "unseen-losses": lambda: losses_table(rows_of("unseen_losses")),
    "short-calibration": lambda: short(
        calibration_table(rows_of("calibration")), NULLS, "main", "these models", "t-test over fold × language",
        rows=DESIGNS, left=1,
    ),
    "coverage": lambda: coverage_table(rows_of("coverage")),
    "short-coverage": lambda: short(
        coverage_table(rows_of("coverage")), MISSED, "fixed models", "percentiles of a bootstrap", rows=UNEQUAL, left=1
    ),
    "ablation-minilm": lambda: ablation_table(taught_by("minilm"), "minilm"),
    "ablation-e5": lambda: ablation_table(taught_by("e5"), "e5"),
    "ablation-mini": lambda: ablation_table(taught_by("mini"), "mini"),
    "speed-peers": lambda: comparison_table(rows_of("throughput")),
    "checkpointing": lambda: checkpointing_table(rows_of("checkpointing")),
    "pages": lambda: pages.main_table(rows_of("pages")),
    "pages-languages": lambda: pages.languages_table(rows_of("pages")),
    "pages-balance": lambda: pages.balance_table(rows_of("pages")),
    "pages-translations": lambda: pages.translations_table(rows_of("pages")),
    "questions": lambda: questions.table(rows_of("questions")),
    "questions-sets": lambda: questions.sets_table(rows_of("questions")),
    "page-variants": lambda: questions.titles_table(rows_of("questions")),
    "page-rivals": lambda: page_rivals.table(rows_of("page_rivals")),
    "index-speed": lambda: index.table(rows_of("index")),
    "short-index-speed": lambda: short(index.table(rows_of("index")), "", "now", left=1),
    "large-index": lambda: large_index.table(rows_of("large_index")),
    "short-large-index": lambda: short(
        large_index.table(rows_of("large_index")),
        "passages", "index", "recall@20", "build, s", "1 query, ms", "memory, MB",
    ),
    "copy-recall": lambda: only(
        short(large_index.table(rows_of("large_index")), "passages", "index", "recall@20", "1 query, ms"),
        index=[large_index.NAMES[name] for name in ("folder", "postgresql")], passages=["100,000"],
    ),
    "first-search": lambda: first_search_table(rows_of("first_search")),
    "tuning-speed": lambda: first_search_table(rows_of("tuning_speed")),
    "serving": lambda: serving_table(rows_of("serving")),
    "index-recall": lambda: recall_table(rows_of("index_recall")),
    "encoding-precision": lambda: precision.table(rows_of("precision"), "encoding"),
    "precision-quality": lambda: precision_quality.table(rows_of("precision_quality")),
    "index-precision": lambda: precision.table(rows_of("precision"), "index"),
    "exports": lambda: speed_table(rows_of("exports")),
    "export-scores": lambda: score_table(rows_of("exports")),
    "short-learners": learners,
    "short-e5-learners": lambda: short(
        study_tables.against_table(strong_study(LAREQA)),
        "Δ vs column [95 % CI]", "mode", "neutral", "neutral+fine-tune trans", rows=THROUGH,
    ),
    "short-e5-bias": lambda: summary(LAREQA, rows=BIAS),
    "short-e5-paragraphs": lambda: summary("lareqa"),
    "short-sts": similarity,
    "short-reranked": lambda: short(
        study_tables.summary_table(list(filter(recommended, strong_study(LAREQA, "expanded")))),
        "map@20, five folds", "mean", "Δ vs zero-shot [95 % CI]", left=1,
    ),
    "short-rivals": lambda: short(
        rivals.table(rows_of("rivals"), rows_of("strong_encoder")),
        "rival", "description", "baseline", "Δ vs baseline [95 % CI]",
    ),
    "short-labels": lambda: short(
        labels.table(rows_of("labels"), rows_of("strong_encoder"), LAREQA),
        "labels", "mAP@20", "Δ vs no labels [95 % CI]", "expanded", left=0,
    ),
    "short-alignment-curves": lambda: only(
        alignment.curves_table(rows_of("alignment")), rate=["2e-05"], steps=["0", "4", "16", "64"],
    ),
    "short-alignment-fair": lambda: only(
        alignment.fair_table(rows_of("alignment"), "mini"),
        loss=["InfoNCE", "margin 1.0"], **{"test, five folds, three seeds": ["fine-tune", "maml", "align"]},
    ),
    "short-alignment-variants": lambda: only(
        alignment.variants_table(rows_of("alignment")), variant=["maml", "align", *LARGER],
    ),
    **{
        f"short-adapter-learners-{task}": partial(
            lambda task: short(
                adapters("learners", task), "test, five folds", "λ L_kd / L_task", "score", "Δ vs untouched",
                "Δ vs fine-tune", left=1,
            ),
            task,
        )
        for task in (LAREQA, STSB)
    },
    **{
        f"short-adapter-shots-{name}": partial(
            lambda name: short(shots(name), shots(name).splitlines()[0].split("|")[1].strip(), *SHOWN, left=1), name
        )
        for name in SHOT_SETS[::2]
    },
    "short-answers": lambda: short(
        answers.table(rows_of("answers")),
        "encoder", "against bias", "own nDCG@20", "recall@20 of others", "best answer is own", "worst rank, median",
    ),
    "short-answers-first": lambda: short(
        answers.table(rows_of("answers")),
        "encoder", "against bias", "first: answer, own", "answer, other", "no answer, own", "no answer, other",
    ),
    "short-expansion": lambda: short(
        expansion.table(rows_of("expansion")),
        "map@20", "pool", "plain", "balanced", "α = 3", "α = 3, balanced", rows=("mini", "e5 neutral"),
    ),
    "short-ablations": lambda: short(
        ablation_table(taught_by("e5"), "e5"),
        "arm", "description, baseline", "Δ STS 2017", "Δ Tatoeba", "Δ LAReQA", "sentences/s",
        rows=("full", "three-stages", "without-mcl", "without-recurrence"),
    ),
    "short-ablation-mini": lambda: short(
        ablation_table(taught_by("mini"), "mini"),
        "arm", "description, baseline", "Δ STS 2017", "Δ Tatoeba", rows=SMALL,
    ),
    "short-pages-balance": lambda: short(
        pages.balance_table(rows_of("pages")), "set", "system", "all", "own", "another",
    ),
    "short-export-scores": lambda: short(
        only(score_table(rows_of("exports")), task=[LAREQA]), "encoder", "form", "map@20 before", "after",
    ),
    "short-checkpointing": lambda: short(
        only(checkpointing_table(rows_of("checkpointing")), k=["64", "2"]),
        "encoder", "k", "recomputed", "precision", "tensors, MiB", "CPU time",
    ),
    "short-speed": lambda: only(
        comparison_table(rows_of("throughput")), peer=["learn2learn", "authors", "plain", "st-live"],
    ),
    "short-exports": lambda: short(
        speed_table(rows_of("exports")), "encoder", "form", "MB", "largest difference", "torch takes, 1 thread",
    ),
}  # fmt: skip


def documents() -> list[Path]:
    """Return the documents that may hold tables."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted((ROOT / "benchmarks").glob("*.md"))]


def filled(text: str, where: str) -> str:
    """Return a document with its tables as the rows give them.

    Raises:
        ConfigError: a name is of no table.
    """

    def table(block: re.Match[str]) -> str:
        begin, name, _, end = block.groups()
        if name not in TABLES:
            raise ConfigError(f"{where}: there is no table '{name}'.{nearest(name, TABLES)}")
        return f"{begin}{TABLES[name]()}\n{end}"

    return TABLE.sub(table, text)


def differing(text: str, now: str) -> Iterator[str]:
    """Yield the names of the tables in which two versions of a document differ."""
    for before, after in zip(TABLE.finditer(text), TABLE.finditer(now), strict=True):
        if before[0] != after[0]:
            yield before[2]


@click.command(cls=Command)
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 where a table differs.")
@click.option("--list", "listed", is_flag=True, help="Print the names of all tables, and do nothing else.")
def main(check: bool, listed: bool) -> None:
    """Fill the tables of all documents."""
    if listed:
        click.echo("\n".join(TABLES))
        return
    stale = []
    for path in documents():
        where, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        now = filled(text, where)
        stale += [f"{where}: table '{name}'" for name in differing(text, now)]
        if not check:
            path.write_text(now, encoding="utf-8")
    click.echo("\n".join(stale) or "all tables are what the rows give")
    if check and stale:
        click.echo("benchmarks/results/ gives others: run python -m benchmarks.tables", err=True)
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    main()
