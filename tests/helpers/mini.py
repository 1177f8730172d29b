"""Small files for the scripts that rebuild metasearch-mini."""

from pathlib import Path

from benchmarks.mini.corpus_lines import Line

MINI = Path(__file__).resolve().parents[2] / "benchmarks" / "mini"


def line(source, target, language="de", corpus="ntrex", number=1):
    return Line(Path(f"en-{language}.tsv"), number, language, source, target, corpus)


def written(folder, **files):
    """Write corpora, `de=["a\\tb\\tntrex"]` to en-de.tsv."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, lines in files.items():
        (folder / f"en-{language}.tsv").write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    return folder
