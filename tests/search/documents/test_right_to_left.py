"""PDF in right-to-left scripts gives the words of its source, also where a glyph stands for two letters."""

import random
from itertools import groupby
from unicodedata import bidirectional, combining

import pytest

from helpers.pdf import pdf_file
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Notes
from metasearch.search.documents.readers.office import sections

TEXTS = [
    "لا تفتح الصمام (الأحمر) قبل أن تبرد الآلة، ولا تلمس الأجزاء [الساخنة].",
    "الطلاب لا يحتاجون إلى 25 كتاب والسلام على الأهل",
    "أوّلا يتدفّق الماء إلى الأسفل (ASL) في 1.5 ساعة",
    "אל תפתח את השסתום (האדום) לפני שהמכונה מתקררת, עמוד 12 כאן.",
    "شیر (قرمز) را باز نکنید، بلاگ و لالایی",
    "مشین ٹھنڈی ہونے سے پہلے والو نہ کھولیں، لائن",
    "نیمه\u200cشب کتاب\u200cها را می\u200cآورد؛ نسخهٔ ۲٫۵ از ۱۴۰۳/۰۵/۱۲ تا ۱۰:۳۰",
    "یہ لڑکے ۱۲۵ روپے میں رہتے ہیں۔",
]
SIZE = 12


def clusters(text):
    """Return the letters of each glyph: lam and alef share one, and so do a letter and its signs."""
    found = []
    for char in text:
        ligature = found and found[-1] == "ل" and char in "اأإآ"
        if found and (ligature or combining(char)):
            found[-1] += char
        else:
            found.append(char)
    return found


def shown(text):
    """Return the glyphs of a line from left to right; words and numbers in the other direction stay as they are."""
    mirrored = str.maketrans("()[]", ")(][")
    other = [bidirectional(each[0]) in ("L", "EN", "AN") or each in "./:" for each in clusters(text)]
    glyphs = []
    for keeps, part in groupby(zip(clusters(text), other, strict=True), key=lambda each: each[1]):
        own = [glyph for glyph, _ in part]
        glyphs += own[::-1] if keeps else own
    return [glyph.translate(mirrored) for glyph in reversed(glyphs)]


def pdf(lines, mirrored, apart):
    """Return a PDF with the glyphs of each line at their places, and a font that tells their letters.

    Signs `apart` are glyphs of their own, a little below their letters, which are one text object.
    """
    numbers, content = {}, []
    for row, text in enumerate(lines):
        glyphs = shown(text)
        left, y = 560 - len(glyphs) * 6, 780 - 20 * row
        placed = [(left + column * 6, y, glyph) for column, glyph in enumerate(glyphs)]
        if apart:
            signs = [(x, y - 2, glyph[-1]) for x, y, glyph in placed if combining(glyph[-1])]
            letters = [glyph[:-1] if combining(glyph[-1]) else glyph for glyph in glyphs]
            placed = [(left, y, *letters), *signs]
        for x, y, *own in placed:
            own = own if mirrored else [glyph.translate(str.maketrans("()[]", ")(][")) for glyph in own]
            codes = "".join(f"{numbers.setdefault(glyph, len(numbers) + 1):02x}" for glyph in own)
            content.append(f"1 0 0 1 {x} {y} Tm <{codes}> Tj")
    stream = f"BT /F1 {SIZE} Tf\n" + "\n".join(content) + "\nET"
    chars = "\n".join(f"<{number:02x}> <{glyph.encode('utf-16-be').hex()}>" for glyph, number in numbers.items())
    unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def /CMapType 2 def\n"
        f"1 begincodespacerange <00> <ff> endcodespacerange\n{len(numbers)} beginbfchar\n{chars}\nendbfchar\n"
        "endcmap end end"
    )
    names = " ".join(f"/g{number}" for number in numbers.values())
    shapes = " ".join(f"/g{number} 6 0 R" for number in numbers.values())
    shape = "500 0 0 0 480 700 d1 20 0 460 700 re f"
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 842] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 500 700] /FontMatrix [0.001 0 0 0.001 0 0] /Resources << >> "
        f"/CharProcs << {shapes} >> /Encoding << /Type /Encoding /Differences [1 {names}] >> /FirstChar 1 "
        f"/LastChar {len(numbers)} /Widths [{'500 ' * len(numbers)}] /ToUnicode 7 0 R >>",
        f"<< /Length {len(shape)} >>\nstream\n{shape}\nendstream",
        f"<< /Length {len(unicode)} >>\nstream\n{unicode}\nendstream",
    ]
    return pdf_file(bodies)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lines_have_the_words_of_their_source(seed, apart, mirrored, tmp_path):
    pytest.importorskip("pypdfium2")
    lines = random.Random(seed).sample(TEXTS, len(TEXTS))
    (tmp_path / "a.pdf").write_bytes(pdf(lines, mirrored, apart))
    (found,) = sections(tmp_path / "a.pdf", Settings(), Notes())
    assert found.text.split("\n") == lines
