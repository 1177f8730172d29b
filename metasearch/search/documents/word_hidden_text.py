"""Remove hidden text from a DOCX file: runs with `w:vanish`, also by their styles, and hidden table rows.

mammoth reads neither deleted revisions nor comments. Hiding is a toggle property (ECMA-376, part 1, 17.7.3): what a
paragraph style hides, a character style shows again, and the run's own formatting overrides both.
"""

import io
import zipfile
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_SHOWN_ANYWAY = ("rPr", "fldChar", "instrText")
"""Children of a run that stay: its formatting, and marks of fields, which come in pairs."""
_PARTS = ("document", "footnotes", "endnotes")


class _Styles(NamedTuple):
    """Which styles hide text; `paragraph` and `character` name the default ones."""

    hides: Mapping[str, bool]
    paragraph: str
    character: str
    everywhere: bool


def without_hidden_text(content: io.BytesIO) -> io.BytesIO:
    """Return a DOCX file without its hidden text, the same one if there is none; raises errors of zipfile and XML."""
    with zipfile.ZipFile(content) as file:
        parts = {name: file.read(name) for name in file.namelist() if name.endswith(".xml")}
        if not any(b"vanish" in part or b":hidden" in part for part in parts.values()):
            return content
        styles = _read_styles(next((part for name, part in parts.items() if name.endswith("styles.xml")), b"<none/>"))
        changed = io.BytesIO()
        with zipfile.ZipFile(changed, "w") as new:
            for name in file.namelist():
                part = parts[name] if name in parts else file.read(name)
                if any(mark in name.rpartition("/")[2] for mark in _PARTS):
                    part = _shown(part, styles)
                new.writestr(name, part)
    changed.seek(0)
    return changed


def _shown(part: bytes, styles: _Styles) -> bytes:
    root = ElementTree.fromstring(part)
    waiting = [(root, styles.paragraph)]
    while waiting:
        element, style = waiting.pop()
        for child in list(element):
            kind = _local(child)
            if kind == "tr" and _is_on(child.find("{*}trPr/{*}hidden")):
                element.remove(child)
                continue
            if kind == "r" and _is_hidden(child, style, styles):
                for each in [each for each in child if _local(each) not in _SHOWN_ANYWAY]:
                    child.remove(each)
            waiting.append((child, _style(child, "p", styles.paragraph) if kind == "p" else style))
    return ElementTree.tostring(root)


def _is_hidden(run: Element, paragraph: str, styles: _Styles) -> bool:
    own = run.find("{*}rPr/{*}vanish")
    if own is not None:
        return bool(_is_on(own))
    by_styles = styles.hides.get(paragraph, False) != styles.hides.get(_style(run, "r", styles.character), False)
    return styles.everywhere or by_styles


def _read_styles(part: bytes) -> _Styles:
    root = ElementTree.fromstring(part)
    own, above, defaults = {}, {}, {"paragraph": "", "character": ""}
    for style in root.findall("{*}style"):
        name, kind = _value(style, "styleId"), _value(style, "type")
        own[name] = _is_on(style.find("{*}rPr/{*}vanish"))
        above[name] = _value(style.find("{*}basedOn"), "val")
        if kind in defaults and _value(style, "default") in ("1", "true", "on"):
            defaults[kind] = name
    hides = {}
    for name in own:
        seen: set[str] = set()
        at = name
        while own.get(at) is None and at in own and at not in seen:
            seen.add(at)
            at = above[at]
        hides[name] = bool(own.get(at))
    everywhere = bool(_is_on(root.find("{*}docDefaults/{*}rPrDefault/{*}rPr/{*}vanish")))
    return _Styles(hides, defaults["paragraph"], defaults["character"], everywhere)


def _style(element: Element, kind: str, default: str) -> str:
    """Return the style of a paragraph (`p`) or run (`r`)."""
    return _value(element.find(f"{{*}}{kind}Pr/{{*}}{kind}Style"), "val") or default


def _is_on(element: Element | None) -> bool | None:
    """Return the value of a property; None without it."""
    return None if element is None else _value(element, "val") not in ("0", "false", "off")


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _value(element: Element | None, name: str) -> str:
    """Return an attribute in any namespace; empty if it is missing."""
    found = {} if element is None else element.attrib
    return next((value for key, value in found.items() if key.rpartition("}")[2] == name), "")
