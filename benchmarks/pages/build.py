"""Builds the pages of `benchmarks.pages` from packages of Debian, with `apt-get download` and `dpkg-deb -x`.

    python -m benchmarks.pages.build -o ~/data/pages

Each set is a folder of HTML pages, `LANGUAGE/NAME.html`, and `queries/SET.jsonl` beside them: a page's title in each of
its languages. `whole` has whole manuals, and `SET-no-titles`, `SET-joined` and `SET-half` are variants of three sets.
Nothing is installed.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from benchmarks.common.command import Command
from benchmarks.pages.mallard import read_help
from benchmarks.pages.manuals import read_manual
from benchmarks.pages.page import ENGLISH, Page, sample, translated
from benchmarks.pages.variants import write_variants
from benchmarks.pages.whole import FOLDER, GUIDE, write_manuals
from benchmarks.pages.whole import PACKAGES as WHOLE
from metasearch.errors import DataError

GNOME = ("en", "cs", "de", "es", "fr", "hu", "id", "ko", "pl", "ru", "sv")
"""Languages in which GNOME's help is nearly complete, at most one of a family that is easily confused."""
GUIDES = ("gnome-help", "system-admin-guide")
QUICK = 60
VARIED = ("gnome60", "developers-reference", "debian-reference")
REFERENCE = ("en", "de", "es", "fr", "id", "it", "ja", "pt", "pt-br", "zh-cn", "zh-tw")
DEVELOPERS = ("de", "fr", "it", "ja", "ru")
FAQ = ("de", "fr", "it", "ja", "ko", "nl", "pt", "ru", "zh-cn")
PACKAGES = (
    "gnome-user-docs", "yelp-xsl", "xsltproc", "libxslt1.1",
    *(f"debian-reference-{tag}" for tag in REFERENCE),
    "developers-reference", *(f"developers-reference-{tag}" for tag in DEVELOPERS),
    "debian-faq", *(f"debian-faq-{tag}" for tag in FAQ),
    *WHOLE,
)  # fmt: skip

Pages = Mapping[str, Mapping[str, Page]]
"""Name → language → page."""


def unpack(folder: Path) -> dict[str, str]:
    """Download the packages and unpack them into a folder; return their versions.

    Raises:
        DataError: a package cannot be downloaded or unpacked.
    """
    with tempfile.TemporaryDirectory() as place:
        _run("apt-get", "download", *PACKAGES, folder=place)
        for package in sorted(Path(place).glob("*.deb")):
            _run("dpkg-deb", "-x", package.name, str(folder), folder=place)
        return dict(package.name.split("_")[:2] for package in sorted(Path(place).glob("*.deb")))


def _run(*command: str, folder: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise DataError(f"there is no {command[0]} on this machine; build the pages on Debian or Ubuntu") from None
    if done.returncode:
        raise DataError(f"{command[0]}: {done.stderr.strip().splitlines()[-1]}")


def gnome(root: Path) -> dict[str, dict[str, Page]]:
    """Return the pages of GNOME's help for users and for administrators."""
    pages: dict[str, dict[str, Page]] = {}
    for language in GNOME:
        for guide in GUIDES:
            for name, page in read_help(root, guide, "C" if language == ENGLISH else language).items():
                pages.setdefault(name, {})[language] = page
    return pages


def reference(root: Path) -> dict[str, dict[str, Page]]:
    """Return the sections of the Debian Reference."""
    folder = root / "usr/share/debian-reference"
    return read_manual({tag: sorted(folder.glob(f"ch*.{tag}.html")) for tag in REFERENCE})


def developers(root: Path) -> dict[str, dict[str, Page]]:
    """Return the sections of the Debian Developer's Reference."""
    folder = root / "usr/share/developers-reference"
    places = {ENGLISH: folder, **{tag: folder / tag for tag in DEVELOPERS}}
    # One file has the whole manual.
    return read_manual(
        {
            tag: [path for path in sorted(place.glob("*.html")) if path.stem != "developers-reference"]
            for tag, place in places.items()
        }
    )


def faq(root: Path) -> dict[str, dict[str, Page]]:
    """Return the answers of the Debian FAQ; their titles are the questions, which the pages do not contain."""
    folder = root / "usr/share/doc/debian/FAQ"
    places = {ENGLISH: folder, **{tag: folder / tag for tag in FAQ}}
    pages = read_manual({tag: sorted(place.glob(f"*.{tag}.html")) for tag, place in places.items()}, titles=False)
    return {name: found for name, found in pages.items() if ENGLISH in found and found[ENGLISH].title.endswith("?")}


def guide(output: Path) -> dict[str, dict[str, Page]]:
    """Return the sections of the guide for new maintainers without their titles, from the whole manual."""
    folder = output / FOLDER / "maint-guide"
    return read_manual({tag: sorted((folder / tag).glob("*.html")) for tag in (ENGLISH, *GUIDE)}, titles=False)


def write(name: str, pages: Pages, output: Path) -> None:
    """Write a set: its pages, and the queries that ask for them."""
    queries = output / "queries" / f"{name}.jsonl"
    queries.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for page, translations in pages.items():
        for language, found in translations.items():
            path = output / name / language / f"{page}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found.source, encoding="utf-8")
            lines.append(json.dumps({"page": page, "language": language, "query": found.title}, ensure_ascii=False))
    queries.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    languages = {language for translations in pages.values() for language in translations}
    click.echo(f"{name}: {len(pages)} pages, {len(languages)} languages, {len(lines)} documents")


@click.command(cls=Command)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="A new folder.")
def main(output: Path) -> None:
    """Download the packages and write all sets."""
    if output.exists() and any(output.iterdir()):
        raise DataError(f"{output}: the folder is not empty; choose a new one with -o")
    with tempfile.TemporaryDirectory() as place:
        versions = unpack(Path(place))
        root = Path(place)
        help_pages = translated(gnome(root), GNOME)
        write("gnome60", sample(help_pages, GNOME, QUICK), output)
        write("gnome", help_pages, output)
        write("debian-reference", translated(reference(root), REFERENCE), output)
        write("developers-reference", translated(developers(root), DEVELOPERS), output)
        write("debian-faq", translated(faq(root), FAQ), output)
        write_manuals(root, output)
        write("maint-guide", translated(guide(output), GUIDE), output)
    for name in VARIED:
        write_variants(output, name, QUICK)
    (output / "packages.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
