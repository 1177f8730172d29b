"""Tables as Markdown, LaTeX and CSV: what they look like, and that no text breaks them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from metasearch.evaluation.report import formats
from metasearch.evaluation.report.table import Cell, Line, Table

SMALL = Table(
    key="main",
    title="demo: map@20",
    heads=("Learner", "Mode"),
    columns=("ar", "mean"),
    lines=(
        Line(("zero-shot", "–"), (Cell(0.563, place="best"), Cell(0.57, 0.029, "second"))),
        Line(("maml_x", "mono-bi"), (Cell(), Cell(-0.1, mark="*†", place="best")), rule=True),
    ),
    notes=("Over 5 folds.", "100 % & more."),
    unit="× 100",
)

ODD = [
    "a|b", "**bold**", "\\", "--", "---", "[x]", "*", "a & b \\\\ c", "$x_1^2$", '"a"', "a\nb", "\x00", "\u202eabc",
    "%", "~", "¿`",
]  # fmt: skip
texts = st.text(st.characters(exclude_categories=())) | st.sampled_from(ODD)
cells = st.builds(
    Cell,
    value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    spread=st.none() | st.floats(0, 1e6),
    place=st.sampled_from(["best", "second", ""]),
    mark=st.sampled_from(["", "*", "*†", "&"]),
    text=texts,
)


@st.composite
def tables(draw):
    heads, columns = draw(st.lists(texts, min_size=1, max_size=2)), draw(st.lists(texts, max_size=3))
    line = st.builds(
        Line, heads=st.tuples(*[texts] * len(heads)), cells=st.tuples(*[cells] * len(columns)), rule=st.booleans()
    )
    lines, notes = draw(st.lists(line, max_size=3)), draw(st.lists(texts, max_size=2))
    return Table("key", draw(texts), tuple(heads), tuple(columns), tuple(lines), tuple(notes))


def test_markdown_sets_the_best_bold_the_second_in_italics_and_pads_columns():
    assert formats.markdown(SMALL).splitlines() == [
        "**demo: map@20, × 100**",
        "",
        "| Learner   | Mode    |        ar |           mean |",
        "| --------- | ------- | --------: | -------------: |",
        "| zero-shot | –       | **56.30** | *57.00 ± 2.90* |",
        r"| maml\_x   | mono-bi |           |  **-10.00**\*† |",
        "",
        "- Over 5 folds.",
        "- 100 % \\& more.",
    ]


def test_latex_is_a_booktabs_table_with_label_caption_and_notes():
    assert formats.latex(SMALL).splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{demo: map@20, $\times$ 100}",
        r"\label{tab:main}",
        r"\begin{tabular}{llrr}",
        r"\toprule",
        r"Learner & Mode & ar & mean \\",
        r"\midrule",
        r"zero-shot & \textendash{} & \textbf{56.30} & \textit{57.00 $\pm$ 2.90} \\",
        r"\midrule",
        r"maml\_x & mono-bi &  & \textbf{$-$10.00}\textsuperscript{{*}$\dagger$} \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip",
        r"{\footnotesize Over 5 folds. 100 \% \& more.\par}",
        r"\end{table}",
    ]


def test_csv_has_full_precision_with_spreads_and_marks_in_columns_of_their_own():
    assert formats.csv(SMALL).split("\r\n") == [
        "Learner,Mode,ar,mean,mean sd,mean mark",
        "zero-shot,–,0.563,0.57,0.029,",
        "maml_x,mono-bi,,-0.1,,*†",
        "",
    ]


@given(tables())
def test_no_text_breaks_the_rows_of_a_markdown_table(table):
    _, shown, *notes = formats.markdown(table).removesuffix("\n").split("\n\n")
    rows = shown.split("\n")
    assert len(rows) == 2 + len(table.lines)
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows} == {len(table.heads) + len(table.columns) + 1}
    assert [note.count("\n") for note in notes] == [len(table.notes) - 1] * bool(table.notes)


def test_a_terminal_shows_no_escapes_and_keeps_columns_in_line():
    table = "| name   | x |\n| ------ | - |\n| a\\[b\\] | 1 |\n\nfine \\_ text"
    assert formats.terminal(table) == "| name   | x |\n| ------ | - |\n| a[b]   | 1 |\n\nfine _ text"
