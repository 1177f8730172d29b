#!/usr/bin/env bash
# tokenizers 0.23.3: a Unigram model gives an unknown piece the id of its unknown token, but `tokens` shows the piece's
# own text. A WordLevel model shows the unknown token. Who counts unknown tokens by name finds none with Unigram.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q tokenizers==0.23.3 2> /dev/null
"$folder/venv/bin/python" - <<'PYTHON'
from tokenizers import Tokenizer, models

unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("key", -1.0)], unk_id=0)).encode("xyz")
wordlevel = Tokenizer(models.WordLevel({"<unk>": 0, "key": 1}, unk_token="<unk>")).encode("xyz")
print("Unigram", unigram.ids, unigram.tokens)
print("WordLevel", wordlevel.ids, wordlevel.tokens)
assert (unigram.ids, unigram.tokens) == ([0], ["xyz"])
assert (wordlevel.ids, wordlevel.tokens) == ([0], ["<unk>"])
PYTHON
# Output:
# Unigram [0] ['xyz']
# WordLevel [0] ['<unk>']
