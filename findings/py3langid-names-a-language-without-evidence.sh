#!/usr/bin/env bash
# py3langid 0.4.0 names a language for texts that show none, and the name is that of the alphabetically first language:
# Afrikaans, or the first of those chosen with set_languages. The score, the lowest float32, is the only sign of it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check py3langid==0.4.0
"$work/venv/bin/python" - <<'PY'
from py3langid.langid import MODEL_FILE, LanguageIdentifier

detector = LanguageIdentifier.from_model_file(MODEL_FILE)
texts = ("XL", "???", "7 12")
found = {text: detector.classify(text) for text in texts}
print("any language:", found)
detector.set_languages(["en", "de", "fr"])
chosen = {text: detector.classify(text) for text in texts}
print("en, de or fr:", chosen)
assert all(tag == "af" for tag, _ in found.values()), found
assert all(tag == "de" for tag, _ in chosen.values()), chosen
assert all(score < -3e38 for _, score in (*found.values(), *chosen.values()))
PY
echo "seen: py3langid 0.4.0 answers with the first language of its list where a text has no known feature"
