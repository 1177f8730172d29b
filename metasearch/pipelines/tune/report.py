"""The report of a tuning, and the card of its encoder."""

from collections.abc import Mapping, Sequence

from metasearch.config.measure import BALANCED, EXPANDED
from metasearch.encoders.encoder import Encoder
from metasearch.evaluation.report.build import files
from metasearch.evaluation.report.section import SCORES, Chart, Report, Row, Section
from metasearch.evaluation.report.table import Cell, Line, Table
from metasearch.evaluation.statistics.jackknife import Interval
from metasearch.pipelines.cards import Base, Dataset, make_card
from metasearch.pipelines.tune.choice import Choice
from metasearch.version import __version__

RANKINGS: Mapping[str, Mapping[str, bool]] = {BALANCED: {"balance": True}, EXPANDED: {"expand": True}}
"""Pool → the setting of an index that is searched in the same way."""
PLAIN: Mapping[str, bool] = {"balance": False, "expand": False}
_EXPLAINED = (
    "Each line adds something to the base encoder, the simplest first. Scores and differences are means over the "
    "questions of all held-out folds. The 95 % intervals are over groups of questions that are held out together: "
    "Student's, or Clopper and Pearson's where nearly all groups have the best or the worst score. They do not cover "
    "another training: each fold is trained on once. The kept line is the simplest that no other one beats "
    "significantly. p is of one test against all other lines, corrected for their number (max-T over random signs of "
    "groups, one-sided, 5 %). So with no difference in truth, the base encoder is kept in 95 % of tunings. With few "
    "labels, only large differences are significant."
)
_NESTED = (
    "A choice flatters the scores that it was made on. So the sentence above has scores of folds that did not choose: "
    "what the other folds choose is scored on each fold. Without one fold, the same line is chosen {same} of {folds} "
    "times. The table has each line's own scores on all folds."
)


def build_report(
    sentences: Sequence[str], facts: Mapping[str, str], choice: Choice | None, notes: Sequence[str]
) -> Mapping[str, str]:
    """Return name → text of the files of a report, `report.html` and `report.md` among them; `choice` may be None."""
    sections = [_scores(choice)] if choice else []
    sections.append(Section("notes", "Notes", tuple(notes) or ("Nothing was skipped.",)))
    footer = f"Written by metasearch {__version__}."
    return files(Report("Tuning", tuple(sentences), tuple(facts.items()), tuple(sections), footer))


def _scores(choice: Choice) -> Section:
    measure, best, explained = choice.measure, choice.best, [_EXPLAINED]
    if not choice.standings[0].kept:
        explained.append(_NESTED.format(same=choice.folds - len(choice.others), folds=choice.folds))
    lines, rows = [], []
    for each in choice.standings:
        name, mean, shown = str(each), each.mean, each.mean.shown("")
        rows.append(Row(name, mean.mean, (Interval(mean.low, mean.high),), shown))
        value = Cell(mean.mean, place="best" if each == best else "")
        texts = (shown.partition(" ")[2], each.gain.shown(), f"{each.p:.2g}")
        lines.append(Line((name + " (kept)" * each.kept,), (value, *(Cell(text=text) for text in texts))))
    columns = (measure, "95 %", "against base", "p")
    table = Table("steps", f"{measure} by step", ("step",), columns, tuple(lines), unit="× 100", decimals=1)
    chart = Chart("chart", f"{measure} and its interval, × 100", tuple(rows))
    return Section(SCORES, "Scores on held-out folds", tuple(explained), (chart,), (table,))


def build_card(encoder: Encoder, source: Base, result: str, languages: Sequence[str], facts: Mapping[str, str]) -> str:
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
