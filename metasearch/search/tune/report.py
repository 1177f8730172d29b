"""The report of a tuning, and the card of its encoder."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from metasearch.config.run import DEFAULT_ENCODER
from metasearch.encoders.encoder import Encoder
from metasearch.errors import quoted
from metasearch.evaluation.report.build import files
from metasearch.evaluation.report.section import SCORES, Chart, Report, Row, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.io import atomic_write
from metasearch.pipelines.cards import CARD, Base, Dataset, find_base, make_card
from metasearch.pipelines.run import Run
from metasearch.runs.folder import RunFolder
from metasearch.runs.per_query_results import Ranking, load
from metasearch.runs.versions import describe_versions, versions
from metasearch.search.documents.joining import shortened
from metasearch.search.settings import TuneConfig
from metasearch.search.tune.choice import Choice
from metasearch.search.tune.labels import Labels
from metasearch.search.tune.steps import Step
from metasearch.search.tune.table import ALPHA, SIDES, results_path
from metasearch.training.hardware import used
from metasearch.version import __version__

_MOST = 10
"""Questions that gained and questions that lost, which are shown."""
_HITS_SHOWN = 3
_FLATTERS = (
    "Only labelled texts were searched, which flatters: users search all passages. --documents scores what they find."
)
_EXPLAINED = (
    "The first line is the best search without labels; the simplest come first. Scores and differences are means over "
    "the questions of all held-out folds. The 95 % intervals are over groups of questions that are held out together: "
    "Student's, or Clopper and Pearson's where nearly all groups have the best or the worst score. They do not cover "
    "another training: each fold is trained on once. Where lines are significantly better than the first, the best of "
    "them is kept that trains no weights. One that does has to be significantly better than that. p is of one test "
    "against all other lines, corrected for their number (max-T over random signs of groups and over a bootstrap, for "
    "skewed differences; one-sided, 5 %). The gain also has to survive rare losses of 20 points. So with no difference "
    "in truth, the first line is kept in 95 % of tunings or more. With few labels, only large differences are "
    "significant."
)
_BY_LANGUAGE = (
    "Scores of the kept line. Where pages are ranked, those in the "
    "question's language and those in other languages are also scored apart, each among pages that are not relevant."
)
_HITS = f"The questions that changed most, {_MOST} at most in each table. Relevant hits have a check mark."
_NESTED = (
    "A choice flatters the scores that it was made on. So intervals of gains are corrected for the number of lines. "
    "Without one fold, the same line is chosen {same} of {folds} times. Where another one is, the sentence above also "
    "has the gain of folds that did not choose: with fewer labels, it is often smaller."
)


def write_report(
    run: Run[TuneConfig],
    base: Encoder,
    tuned: Encoder,
    labels: Labels,
    choice: Choice | None,
    notes: Sequence[str],
) -> None:
    """Write the report of a tuning, and the card of its saved encoder; `notes` say what was skipped."""
    folder, config = run.files, run.config
    result, languages = str(choice) if choice else notes[-1], sorted(labels.data.languages)
    facts = {"encoder": base.name, "labels": labels.data.describe(), "languages": ", ".join(languages)}
    facts |= {"seed": str(config.seed), "versions": describe_versions(versions())}
    sections: list[Section] = []
    if choice and labels.benchmark:
        sections = [_scores(choice), _by_language(choice), *_questions(folder, labels.benchmark.task.name, choice)]
    sections.append(Section("notes", "Notes", tuple(notes) or ("Nothing was skipped.",)))
    if choice:
        sections.append(Section("next", "Next steps", _next_steps(choice, base.name)))
    sentences, footer = _sentences(run, labels, choice, result), f"Written by metasearch {__version__}."
    texts = files(Report("Tuning", tuple(sentences), tuple(facts.items()), tuple(sections), footer))
    source = find_base("base", config.encoder.name, base.origin)
    atomic_write(folder.model / CARD, _build_card(tuned, source, result, languages, facts))
    atomic_write(folder.path / "report.html", texts["report.html"])
    folder.finish(texts["report.md"], used(run.seconds, tuned.device))


def _sentences(run: Run[TuneConfig], labels: Labels, choice: Choice | None, result: str) -> list[str]:
    model, documents = run.files.model, run.config.documents
    sentences = [_FLATTERS, result] if choice and labels.whole and not documents else [result]
    if choice and choice.kept.step.adapts:
        sentences.append("The adapter is in index/, computed from all labels; the model in model/ has none.")
    elif choice and choice.kept.step.trains:
        sentences.append(f"The model in model/ is trained on all {len(labels.data.questions)} labels.")
    ranking = choice.ranking if choice else {}
    if documents:
        sentences.append(f'Search: metasearch search {quoted(run.files.path)} "..."')
    elif ranking:
        options = " ".join(f"--{name}" for name in ranking)
        how = f"metasearch index DOCUMENTS --encoder {quoted(model)} {options} -o INDEX"
        sentences.append(f"Index documents to be searched so: {how}")
    return sentences


def _scores(choice: Choice) -> Section:
    measure, best, explained = choice.measure, choice.best, [_EXPLAINED]
    if not choice.standings[0].kept:
        explained.append(_NESTED.format(same=choice.folds - len(choice.others), folds=choice.folds))
    lines, rows = [], []
    for each in choice.standings:
        name, mean, shown = str(each), each.mean, each.mean.shown("")
        rows.append(Row(name, mean.mean, (Interval(mean.low, mean.high),), shown))
        value = Cell(mean.mean, place="best" if each == best else "")
        control = each.control.shown() if each.control else ""
        texts = (shown.partition(" ")[2], each.gain.shown(), control, f"{each.p:.2g}")
        lines.append(Line((name + " (kept)" * each.kept,), (value, *(Cell(text=text) for text in texts))))
    columns = (measure, "95 %", "against the first", "against shuffled labels", "p")
    table = Table("steps", f"{measure} by step", ("step",), columns, tuple(lines), unit="× 100", decimals=1)
    chart = Chart("chart", f"{measure} and its interval, × 100", tuple(rows))
    return Section(SCORES, "Scores on held-out folds", tuple(explained), (chart,), (table,))


def _by_language(choice: Choice) -> Section:
    lines = []
    for each in choice.changes:
        cells = (Cell(text=str(each.questions)), Cell(each.base), Cell(each.base + each.gain.mean))
        lines.append(Line((each.language, SIDES[each.side]), (*cells, Cell(text=each.gain.shown()))))
    columns = ("questions", "without labels", "kept", "gain")
    title = f"{choice.measure} by language of the questions"
    table = Table("languages", title, ("language", "relevant"), columns, tuple(lines), unit="× 100", decimals=1)
    return Section("by-language", "By language", (_BY_LANGUAGE,), tables=(table,))


def _questions(run: RunFolder, task: str, choice: Choice) -> list[Section]:
    """Return the questions whose scores changed most, with the first hits before and after."""
    first, kept = choice.standings[0], choice.kept

    @cache
    def ranking(step: Step, fold: int, pool: str) -> Ranking | None:
        return load(results_path(run, task, step, fold, pool))[0].ranking

    tables = []
    for key, title, moved in (
        ("gained", "Questions that gained", [each for each in choice.moved if each.gain > 0]),
        ("lost", "Questions that lost", [each for each in reversed(choice.moved) if each.gain < 0]),
    ):
        lines = []
        for each in moved[:_MOST]:
            fold, language, uid = each.place
            base, own = ranking(first.step, fold, first.pool), ranking(kept.step, fold, kept.pool)
            if base and own:
                row = next(i for i, one in enumerate(own.questions) if (one.language, one.id) == (language, uid))
                hits = (Cell(text=_first_hits(found, row)) for found in (base, own))
                text = f"{shortened(own.questions[row].text)} ({language})"
                lines.append(Line((text,), (Cell(each.base), Cell(each.score), *hits)))
        columns = ("without labels", "kept", "hits without labels", "hits of the kept step")
        if lines:
            tables.append(Table(key, title, ("question",), columns, tuple(lines), unit="× 100", decimals=1))
    return [Section("questions", "Questions", (_HITS,), tables=tuple(tables))] if tables else []


def _first_hits(ranking: Ranking, row: int) -> str:
    relevant = ranking.relevant[ranking.offsets[row] : ranking.offsets[row + 1]]
    top = ranking.top[row, :_HITS_SHOWN]
    texts = (f"{shortened(ranking.candidates[i].text)} ({ranking.candidates[i].language})" for i in top)
    return " / ".join(text + " ✓" * bool(right) for text, right in zip(texts, np.isin(top, relevant), strict=True))


def _next_steps(choice: Choice, encoder: str) -> tuple[str, ...]:
    """Return what may help, by what was found; `encoder` is the name of the base encoder."""
    steps = (
        ["Ask 20 new questions about pages without a label before you rely on a gain."]
        if choice.kept.step.learns
        else []
    )
    if choice.doubtful:
        return (*steps, "Look at some labels: do they name the pages that answer them?")
    if choice.refused:
        steps.append("A step was refused. Labels of more pages help most: each page is one observation.")
    if choice.least_p >= ALPHA:
        steps.append("There are too few groups to leave the first line: add labels of other pages.")
    if choice.standings[0].kept and not choice.refused:
        other = "" if encoder == DEFAULT_ENCODER else f"--encoder {DEFAULT_ENCODER}, or "
        steps.append(f"Nothing was significantly better: try {other}more labels.")
    return tuple(steps) or ("None.",)


def _build_card(encoder: Encoder, source: Base, result: str, languages: Sequence[str], facts: Mapping[str, str]) -> str:
    """Return the card for an encoder of `metasearch tune`, from `source`; `result` says what was kept, and why."""
    return make_card(
        encoder,
        (source,),
        ["One seed: another training may gain less, or lose."],
        command="tune",
        title=f"{source.short}, tuned",
        summary=f"The sentence encoder {source.name}, adapted by metasearch to labelled questions.",
        measured=result,
        data=(Dataset("trained and scored on", "labels", facts["labels"]),),
        languages=languages,
        facts=facts,
        tags=("language-neutral",),
    )
