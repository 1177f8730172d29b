"""The pieces of a Unigram tokenizer on disk, so that short texts are read without the whole tokenizer.

Unigram (Kudo, 2018, arXiv:1804.10959) segments a word into the pieces with the highest sum of scores. Only pieces that
are parts of the word can be among them, and of all others nothing counts but their least score, which decides what an
unknown character costs. So a tokenizer of these pieces alone gives the same tokens. The whole one of `e5` has 250,002
pieces, and takes longer to open than a query to search.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import Unigram

from metasearch.errors import RunFolderError
from metasearch.io import atomic_write

_MOST = 2000
"""Characters of texts in one call; for more, such as documents, the whole tokenizer is opened once."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of a Unigram tokenizer, in the order of their bytes.

    Attributes:
        text: the pieces in UTF-8, one behind the other.
        ends: where each piece ends, after a 0.
        scores: log probabilities.
        ids: token ids.
        rest: the tokenizer as JSON, with the pieces that any text needs: special tokens, bytes, and the one with
            least score.
        needed: ids of the pieces in `rest`.
        longest: characters of the longest piece.
    """

    text: bytes
    ends: NDArray[np.int64]
    scores: NDArray[np.float64]
    ids: NDArray[np.int64]
    rest: str
    needed: NDArray[np.int64]
    longest: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self | None:
        """Return the pieces of a whole tokenizer; None where the tokens of a text need more than its parts."""
        tree = json.loads(tokenizer.to_str())
        model, end, added = tree["model"], tree["post_processor"], tree["added_tokens"]
        if model["type"] != "Unigram" or model["unk_id"] is None:
            return None
        vocabulary = {piece: (number, score) for number, (piece, score) in enumerate(model["vocab"])}
        if len(vocabulary) != len(model["vocab"]) or (end and end["type"] != "TemplateProcessing"):
            return None
        unknown = model["vocab"][model["unk_id"]][0]
        least = min(vocabulary, key=lambda piece: vocabulary[piece][1])
        ids = {each["content"]: each["id"] for each in added}
        spelled = [f"<0x{byte:02X}>" for byte in range(256)] if model["byte_fallback"] else []
        ids |= {piece: vocabulary[piece][0] for piece in (unknown, least, *spelled) if piece in vocabulary}
        numbers = {piece: number for number, piece in enumerate(ids)}
        for each in added:
            each["id"] = numbers[each["content"]]
        for each in end["special_tokens"].values() if end else ():
            each["ids"] = [numbers[token] for token in each["tokens"]]
        model["vocab"] = [[piece, vocabulary.get(piece, (0, 0.0))[1]] for piece in ids]
        model["unk_id"] = numbers[unknown]
        rows = sorted((piece.encode(), *facts) for piece, facts in vocabulary.items() if piece not in ids)
        return cls(
            text=b"".join(piece for piece, _, _ in rows),
            ends=np.cumsum([0, *(len(piece) for piece, _, _ in rows)]),
            scores=np.array([score for _, _, score in rows]),
            ids=np.array([number for _, number, _ in rows], np.int64),
            rest=json.dumps(tree),
            needed=np.array([*ids.values()]),
            longest=max(map(len, vocabulary)),
        )

    def tokenizer(self, texts: Sequence[str]) -> tuple[Tokenizer, NDArray[np.int64]] | None:
        """Return a tokenizer for texts, and the ids that its own stand for; None where the whole one is needed."""
        if sum(map(len, texts)) > _MOST:
            return None
        found = Tokenizer.from_str(self.rest)
        words = {word for text in texts for word in _words(found, text)}
        special = [each.content for each in found.get_added_tokens_decoder().values()]
        if any(token in each for token in special for each in (*texts, *words)):
            return None  # texts beside special tokens have words of their own
        parts = {
            word[start:end].encode(errors="surrogatepass")
            for word in words
            for start in range(len(word))
            for end in range(start + 1, min(len(word), start + self.longest) + 1)
        }
        places = [*self._places(sorted(parts))]
        model = json.loads(self.rest)["model"]
        pieces = [(self._piece(i).decode(), float(self.scores[i])) for i in places]
        found.model = Unigram([*map(tuple, model["vocab"]), *pieces], model["unk_id"], model["byte_fallback"])
        return found, np.concatenate([self.needed, self.ids[places]])

    def _piece(self, number: int) -> bytes:
        return self.text[self.ends[number] : self.ends[number + 1]]

    def _places(self, parts: Sequence[bytes]) -> Iterator[int]:
        """Yield the numbers of the parts that are pieces."""
        count = len(self.ids)
        for part in parts:
            place = bisect_left(range(count), part, key=self._piece)
            if place < count and self._piece(place) == part:
                yield place

    def write(self, path: Path) -> None:
        """Write the pieces to a file; a cache that cannot be written keeps none."""
        held: dict[str, Any] = {**vars(self), "text": np.frombuffer(self.text, np.uint8)}
        content = BytesIO()
        np.savez(content, **held)
        with suppress(RunFolderError):
            atomic_write(path, content.getvalue())

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return the pieces in a file; None without any, or where it is damaged."""
        try:
            with np.load(path) as held:
                found: dict[str, Any] = dict(held)
            whole = {"text": found["text"].tobytes(), "rest": str(found["rest"]), "longest": int(found["longest"])}
            return cls(**found | whole)
        except Exception:  # a damaged archive raises what it likes; the tokenizer's own file is read then
            return None


def _words(tokenizer: Tokenizer, text: str) -> Iterator[str]:
    """Yield the words that a tokenizer segments, as it does beside special tokens."""
    normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
    if tokenizer.pre_tokenizer:
        yield from (word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    else:
        yield normal
