"""Small files for the scripts that rebuild metasearch-mini."""

from pathlib import Path

from benchmarks.mini.corpus_lines import Line
from helpers.formats import FOLDER

MINI = Path(__file__).resolve().parents[2] / "benchmarks" / "mini"


def line(source, target, language="de", corpus="ntrex", number=1):
    return Line(Path(f"en-{language}.tsv"), number, language, source, target, corpus)


def written(folder, **files):
    """Write corpora, `de=["a\\tb\\tntrex"]` to en-de.tsv."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, lines in files.items():
        (folder / f"en-{language}.tsv").write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    return folder


def small_data(folder):
    """Make a small file of each test set in a folder, and training texts of which two overlap; returns it."""
    for name in ("xquad-r", "semeval2017"):
        (folder / name).mkdir(parents=True)
    for code in ("ar", "de", "el", "hi", "ru", "th", "tr"):
        text = (FOLDER / "xquad-r" / "el.json").read_text(encoding="utf-8")
        (folder / "xquad-r" / f"{code}.json").write_text(text, encoding="utf-8")
    for path in (FOLDER / "semeval2017").iterdir():
        (folder / "semeval2017" / path.name).write_bytes(path.read_bytes())
    (folder / "stsb").mkdir()
    for code in ("en", "de", "es", "fr", "it", "nl", "ru"):
        for part in ("train", "dev", "test"):
            (folder / "stsb" / f"stsb-{code}-{part}.csv").write_text(f"{part} one,{part} two,5\n", encoding="utf-8")
    (folder / "tatoeba").mkdir()
    for code, text in (("deu", "Guten Tag!"), ("eng", "Good day!")):
        (folder / "tatoeba" / f"tatoeba.deu-eng.{code}").write_text(f"{text}\n", encoding="utf-8")
    own = [f"sentence {i}\tSatz {i}\tntrex" for i in range(30)]
    overlapping = ["Hello, good\tguten Tag\ttatoeba", "DEV two\tzwei\tntrex", "train one\tdrei\tntrex"]
    written(folder / "parallel", de=[*own, *overlapping])
    return folder
