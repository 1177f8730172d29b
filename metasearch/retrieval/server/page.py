"""The search page: one file that loads nothing from other hosts and runs no script but its own.

Style and script are inline, and the content security policy names them by their hashes.
"""

import base64
import hashlib
from importlib.resources import files
from string import Template


def _read(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_STYLE, _SCRIPT = _read("page.css"), _read("page.js")

HTML = Template(_read("page.html")).substitute(style=_STYLE, script=_SCRIPT)
"""The page, which is the same for everyone: it asks for the facts about the index."""

ICON = _read("icon.svg")

POLICY = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {"content-security-policy": POLICY, "cache-control": "no-cache"}
