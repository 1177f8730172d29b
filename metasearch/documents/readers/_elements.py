"""How a browser shows HTML elements: hidden, as a block, as a line, as a table cell, or with exact white space."""

import re
from collections.abc import Mapping


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


HIDDEN = _set(
    "script style template noscript svg iframe object embed canvas audio video datalist noembed noframes title "
    "annotation annotation-xml rp rt rtc"
)
"""Elements without running text. `rt` is the reading of the characters before it, which would split their word."""
HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)


def is_hidden(tag: str, attributes: Mapping[str, str | None]) -> bool:
    """Return whether a browser hides an element, or its text is not running text."""
    opens = tag == "dialog" or "popover" in attributes
    return (
        tag in HIDDEN
        or "hidden" in attributes
        or (opens and "open" not in attributes)
        or HIDING.search(attributes.get("style") or "") is not None
    )


BLOCKS = _set(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend main menu nav ol optgroup p pre search section "
    "summary table ul"
)
LINES = _set("br li option tr tbody thead tfoot")
CELLS = _set("td th")
EXACT = _set("pre textarea listing xmp plaintext")
