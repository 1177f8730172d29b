#!/usr/bin/env bash
# pypdfium2 5.15.2: text of a PDF that fpdf2 2.8.9 shaped comes without its zero-width non-joiners (U+200C), which
# pypdf 7.1.0 reads from the same file. In Persian they separate a word from its ending, so that "books" is read in
# another spelling than in a web page. Who compares words drops U+200C on both sides.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q fpdf2==2.8.9 uharfbuzz==0.55.0 pypdf==7.1.0 pypdfium2==5.15.2 matplotlib==3.11.2 \
    2> /dev/null
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
from pathlib import Path

import matplotlib
import pypdf
import pypdfium2
from fpdf import FPDF

WORD = "کتاب\u200cها"  # "books": book, non-joiner, ending
pdf = FPDF()
pdf.add_page()
pdf.add_font("dejavu", "", Path(matplotlib.__file__).parent / "mpl-data/fonts/ttf/DejaVuSans.ttf")
pdf.set_font("dejavu", size=14)
pdf.set_text_shaping(True)
pdf.cell(text=WORD)
pdf.output("word.pdf")
one = pypdf.PdfReader("word.pdf").pages[0].extract_text()
other = pypdfium2.PdfDocument("word.pdf")[0].get_textpage().get_text_range()
print("pypdf:    ", *(f"U+{ord(each):04X}" for each in one))
print("pypdfium2:", *(f"U+{ord(each):04X}" for each in other))
assert one == WORD
assert other == WORD.replace("\u200c", "")
PYTHON
# Output:
# pypdf:     U+06A9 U+062A U+0627 U+0628 U+200C U+0647 U+0627
# pypdfium2: U+06A9 U+062A U+0627 U+0628 U+0647 U+0627
