"""The page to search with: one file that asks nothing of any other host, and runs no script but its own.

Styles and script stand in the page, and its content security policy names them by their hash.
"""

import base64
import hashlib
from importlib.resources import files
from string import Template


def _source(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_STYLE, _SCRIPT = _source("page.css"), _source("page.js")

HTML = Template(_source("page.html")).substitute(style=_STYLE, script=_SCRIPT)
"""The page, the same for everyone: what is in the index it asks for."""

ICON = _source("icon.svg")

POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {"content-security-policy": POLICY, "cache-control": "no-cache"}
