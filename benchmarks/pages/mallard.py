"""GNOME's help as web pages: Mallard, made HTML by the style sheets of `yelp-build html`.

Navigation, credits and licence are on every page, as on a web site.
"""

import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import quote

from benchmarks.pages.page import Page
from metasearch.errors import DataError

_NS = "{http://projectmallard.org/1.0/}"
_SHEETS = Path("usr/share/yelp-xsl/xslt/mallard")
_SHEET = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
  xmlns:mal="http://projectmallard.org/1.0/" xmlns:cache="http://projectmallard.org/cache/1.0/"
  xmlns="http://www.w3.org/1999/xhtml" exclude-result-prefixes="mal cache">
<xsl:import href="{sheet}"/>
<xsl:template name="html.css"/>
<xsl:template name="html.js"/>
<xsl:template match="/">
  <xsl:for-each select="cache:cache/mal:page">
    <xsl:for-each select="document(@cache:href)/mal:page"><xsl:call-template name="html.output"/></xsl:for-each>
  </xsl:for-each>
</xsl:template>
</xsl:stylesheet>
"""


def read_help(root: Path, guide: str, language: str) -> dict[str, Page]:
    """Return the pages of a guide in one language by name; none if it is not translated.

    Args:
        root: folder of unpacked packages.
        guide: such as `gnome-help`.
        language: in the form of the folder, such as `pt_BR`; C is English.
    """
    folder = root / "usr/share/help" / language / guide
    sources = sorted(folder.glob("*.page"))
    if not sources:
        return {}
    tag = "en" if language == "C" else language.replace("_", "-").lower()
    with tempfile.TemporaryDirectory() as place:
        _render(root, sources, Path(place))
        return {
            f"{guide}-{path.stem}": read_page(
                path.read_text(encoding="utf-8"), (Path(place) / f"{path.stem}.html").read_text(encoding="utf-8"), tag
            )
            for path in sources
        }


def read_page(mallard: str, rendered: str, language: str) -> Page:
    """Return a page from its source and its HTML; what is said about the page, such as its authors, is no text."""
    top = ET.fromstring(mallard)
    for info in top.findall(f"{_NS}info"):
        top.remove(info)
    texts = (" ".join("".join(each.itertext()).split()) for each in top.iter(f"{_NS}p"))
    title = top.find(f"{_NS}title")
    named = " ".join("".join(title.itertext()).split()) if title is not None else ""
    return Page(named, re.sub("<html>", f'<html lang="{language}">', rendered, count=1), tuple(filter(None, texts)))


def _render(root: Path, sources: list[Path], output: Path) -> None:
    """Write the HTML of pages that link to each other into a folder."""
    listed = "".join(f'<page cache:href="{_url(path)}"/>\n' for path in sources)
    pages, cache, sheet = output / "pages.xml", output / "cache.xml", output / "sheet.xsl"
    names = 'xmlns="http://projectmallard.org/1.0/" xmlns:cache="http://projectmallard.org/cache/1.0/"'
    pages.write_text(f"<cache:cache {names}>\n{listed}</cache:cache>\n", encoding="utf-8")
    sheet.write_text(_SHEET.format(sheet=_url(root / _SHEETS / "html/mal2html.xsl")), encoding="utf-8")
    _xsltproc(root, "-o", cache, root / _SHEETS / "cache/mal-cache.xsl", pages)
    _xsltproc(root, "-o", f"{output}/", "--stringparam", "mal.cache.file", _url(cache), sheet, pages)


def _url(path: Path) -> str:
    return f"file://{quote(str(path.resolve()))}"


def _xsltproc(root: Path, *arguments: object) -> None:
    """Run xsltproc of this machine, or the unpacked one."""
    own = root / "usr/bin/xsltproc"
    libraries = next((path.parent for path in root.glob("usr/lib/*/libxslt.so.1")), root)
    installed = shutil.which("xsltproc")
    environment = os.environ if installed else {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    command = [installed or str(own), "--nonet", "--xinclude", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DataError(f"xsltproc: {done.stderr.strip().splitlines()[-1:]}; install xsltproc")
