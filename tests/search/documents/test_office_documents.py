"""PDF and DOCX: what is read of them, where a passage stands, and what is said of files that cannot be read."""

import zipfile
from types import SimpleNamespace

import pytest

from helpers.pdf import pdf_file
from metasearch.errors import DataError
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.passage import Notes
from metasearch.search.documents.read import passages, sources
from metasearch.search.documents.readers.office import _lacks_spaces, _page_text, _title, _without_running_lines

PARAGRAPHS = ("Where is the key?", "Under the mat.", "And the parcel?")


def pdf(pages, trailer=""):
    """Return the bytes of a PDF with a line of text a page; None is a page without text."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    return pdf_file(objects, trailer)


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def write_docx(path, paragraphs, body=""):
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs) + body
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kind}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{kind}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{relation}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{relation}/styles" Target="styles.xml"/></Relationships>',
        "word/styles.xml": f"<w:styles {W}></w:styles>",
        "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


def read(path, notes=None, **settings):
    (source,) = sources([path])
    return [(each.text, each.line) for each in passages(source, Settings(limit=20, **settings), notes or Notes())]


def test_a_pdf_tells_the_page_of_each_passage(tmp_path):
    pytest.importorskip("pypdfium2")
    (tmp_path / "guide.pdf").write_bytes(pdf(["Where is the key?", None, "Under the mat."]))
    notes = Notes()
    assert read(tmp_path / "guide.pdf", notes) == [("Where is the key?", 1), ("Under the mat.", 3)]
    assert dict(notes.counts) == {"pages without text, which may be scanned": 1}


def test_a_docx_tells_the_paragraph_of_each_passage(tmp_path):
    pytest.importorskip("mammoth")
    write_docx(tmp_path / "guide.docx", PARAGRAPHS)
    assert read(tmp_path / "guide.docx") == [(text, number) for number, text in enumerate(PARAGRAPHS, 1)]


def paragraphs_of(path):
    return [paragraph for text, _ in read(path) for paragraph in text.split("\n\n")]


def test_hidden_and_deleted_text_of_word_is_no_text(tmp_path):
    pytest.importorskip("mammoth")
    run = "<w:r><w:rPr>{}</w:rPr>{}</w:r>".format
    begin, end = (f'<w:fldChar w:fldCharType="{kind}"/>' for kind in ("begin", "end"))
    off = '<w:vanish w:val="false"/>'
    deleted, new = run("", "<w:delText>Deleted</w:delText>"), run("", "<w:t>New</w:t>")
    body = (
        f"<w:p>{run('<w:vanish/>', f'{begin}<w:instrText>HYPERLINK</w:instrText>')}{run('', '<w:t>Shown</w:t>')}"
        f"{run('<w:vanish/>', f'{end}<w:t>Hidden</w:t><w:tab/>')}</w:p>"
        f"<w:p>{run(off, '<w:t>Shown again</w:t>')}</w:p>"
        f"<w:p><w:del>{deleted}</w:del><w:ins>{new}</w:ins></w:p>"
        f"<w:p>{run('<w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange>', '<w:t>Was hidden</w:t>')}</w:p>"
    )
    write_docx(tmp_path / "a.docx", [], body)
    assert paragraphs_of(tmp_path / "a.docx") == ["Shown", "Shown again", "New", "Was hidden"]


def test_parts_of_word_that_are_not_read_are_named(tmp_path):
    pytest.importorskip("mammoth")
    base = "<w:r><w:ruby><w:rubyBase><w:r><w:t>Base</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    write_docx(tmp_path / "a.docx", ["Shown"], body=f"<w:p>{base}{base}<w:permStart/></w:p>")
    notes = Notes()
    assert [text for text, _ in read(tmp_path / "a.docx", notes)] == ["Shown"]
    assert list(map(str, notes.problems)) == [f"not read: {tmp_path}/a.docx: text in elements 'ruby'"]


@pytest.mark.parametrize(
    ("name", "package", "kind"), [("a.pdf", "pypdfium2", "PDF"), ("a.docx", "mammoth", "DOCX file")]
)
def test_a_damaged_file_and_a_missing_package_are_named(tmp_path, monkeypatch, name, package, kind):
    pytest.importorskip(package)
    (tmp_path / name).write_bytes(b"no such thing")
    with pytest.raises(DataError, match=rf"{name}: damaged {kind}: "):
        read(tmp_path / name)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(DataError, match=rf"needs the package {package}: pip install 'mammoth"):
        read(tmp_path / name)


def test_a_pdf_with_a_password_is_named(tmp_path):
    pytest.importorskip("pypdfium2")
    locked = (
        f"/ID [<00> <00>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <{'0' * 64}> /U <{'0' * 64}> >> "
    )
    (tmp_path / "locked.pdf").write_bytes(pdf(["Where is the key?"], locked))
    with pytest.raises(DataError, match=r"locked.pdf: the file needs a password"):
        read(tmp_path / "locked.pdf")


@pytest.mark.parametrize(
    ("pages", "says"),
    [
        (["Where is the key?" * 9, "Thekeyliesunderthematbesidethedoor" * 2, "Donau-" * 20], "page 2"),
        (["Thekeyliesunderthematbesidethedoor" * 2] * 3, "page 1 and 2 more pages"),
        (["Thekeyliesunderthematbesidethedoor", "The key lies under the mat beside the door of the house."], None),
    ],
)
def test_pages_whose_words_have_no_spaces_are_named(pages, says, tmp_path):
    pytest.importorskip("pypdfium2")
    notes, path = Notes(), tmp_path / "guide.pdf"
    path.write_bytes(pdf(pages))
    read(path, notes)
    expected = [f"text without spaces: {path}: {says}: words can hardly be found there"] if says else []
    assert list(map(str, notes.problems)) == expected


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("鍵は玄関マットの下にあります" * 9, False),
        ("กุญแจอยู่ใต้พรมเช็ดเท้าหน้าประตู" * 9, False),
        ("Donaudampfschifffahrtsgesellschaft " + "legt an " * 60, False),
        ("ключлежитподковрикомуэтойдвери" * 9, True),
        ("열쇠는매트아래에있습니다문옆에있는" * 9, True),
        ("热键是" * 40 + " thekeyliesunderthematbesidethisdoor" * 2, True),
    ],
)
def test_scripts_without_spaces_lack_none(text, lacks):
    assert _lacks_spaces(text) is lacks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docu\x02mentation", "documentation"),
        ("Debian\x02System", "Debian-System"),
        ("32\x02bit", "32-bit"),
        ("a\x02", "a-"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_parts_a_word_or_belongs_to_it(text, expected):
    page = SimpleNamespace(get_textpage=lambda: page, get_text_bounded=lambda: text, close=lambda: None)
    assert _page_text(page) == expected


@pytest.mark.parametrize(
    "title", ["Microsoft Word - a.docx", "manual_v3.indd", "Untitled-1", "Dokument1", "(anonymous)"]
)
def test_the_name_of_a_file_is_no_title(title):
    assert _title(title) == ""
    assert _title("The boiler: a manual") == "The boiler: a manual"


@pytest.mark.parametrize("body", ["Text {} goes on", "Text {} (1)\\nand more {}"])
def test_lines_at_the_edges_that_pages_share_but_for_a_number_are_no_text(body):
    pages = [(n, f"Acme - Confidential\n{body.format(n * 'x', n * 'y')}\nPage {n} of 9") for n in range(1, 10)]
    notes = Notes()
    assert [text for _, text in _without_running_lines(pages, notes)] == [
        body.format(n * "x", n * "y") for n in range(1, 10)
    ]
    assert len(notes.dropped) == 18
    assert _without_running_lines(pages[:3], Notes()) == pages[:3]
    alike = [(n, f"Part {n}") for n in range(9)]
    assert _without_running_lines(alike, Notes()) == alike
