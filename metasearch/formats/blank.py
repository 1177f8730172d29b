"""Says whether a text shows anything: white space, control characters and characters without a width do not."""

import re

# Unicode's controls and Default_Ignorable_Code_Point (DerivedCoreProperties.txt), annotation marks and the joiners of
# hieroglyphs. Of the other format characters (Cf), such as the Arabic number sign, all are drawn.
_NOTHING = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_SHOWN = re.compile(f"[^{_NOTHING}]")


def blank(text: str) -> str:
    """Return what a text without content holds, in words; the empty string where it shows something.

    Example:
        >>> blank(" \u200b"), blank(" "), blank("\ufeffone")
        ('only characters that show nothing', 'nothing', '')
    """
    if _SHOWN.search(text):
        return ""
    return "only characters that show nothing" if text.strip() else "nothing"
