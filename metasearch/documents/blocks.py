"""Parts a long text where it is least felt, so that neither memory nor time grows with a document's length."""

import re

_SENTENCE = re.compile(r".*(?:[.!?…؟।](?=\s)|[。！？])", re.S)
_SPACE = re.compile(r".*(?=\s)", re.S)


def end_of_block(text: str, start: int, size: int) -> int:
    """Return where a block that begins at `start` ends, at most `size` characters on.

    That is after the last paragraph of the second half, else after its last line, sentence or word, else anywhere.
    """
    if len(text) - start <= size:
        return len(text)
    middle, last = start + size // 2, start + size
    for mark in ("\n\n", "\n"):
        found = text.rfind(mark, middle, last)
        if found >= 0:
            return found + len(mark)
    for pattern in (_SENTENCE, _SPACE):
        if match := pattern.match(text, middle, last):
            return match.end()
    return last
