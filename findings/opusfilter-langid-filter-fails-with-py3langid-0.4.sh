#!/usr/bin/env bash
# opusfilter 3.3.1 accepts any py3langid, so pip installs 0.4.0, in which `from_pickled_model` went. Its LangidFilter
# then fails when it is made, whatever the languages. With py3langid 0.3.0 it works.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
cat > "$folder/filter.py" <<'PYTHON'
from importlib.metadata import version

from opusfilter.lid import LangidFilter

try:
    LangidFilter(languages=["en", "de"])
    found = "made"
except AttributeError as error:
    found = f"AttributeError: {error}"
print("py3langid", version("py3langid"), found)
PYTHON
for release in 0.4.0 0.3.0; do
    "$folder/venv/bin/pip" install -q opusfilter==3.3.1 "py3langid==$release" 2> /dev/null
    "$folder/venv/bin/python" "$folder/filter.py" >> "$folder/found"
done
cat "$folder/found"
diff "$folder/found" - <<'OUTPUT'
py3langid 0.4.0 AttributeError: type object 'LanguageIdentifier' has no attribute 'from_pickled_model'
py3langid 0.3.0 made
OUTPUT
