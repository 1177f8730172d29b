"""How a browser shows the elements of HTML: not at all, in a paragraph or a line of their own, or white space exact."""

import re


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


HIDDEN = _set(
    "script style template noscript svg iframe object embed canvas audio video datalist noembed noframes title"
)
HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
"""Found in the style of an element that is not shown."""

BLOCKS = _set(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend main menu nav ol optgroup p pre search section "
    "summary table ul"
)
LINES = _set("br li option tr tbody thead tfoot")
CELLS = _set("td th")
EXACT = _set("pre textarea listing xmp plaintext")
