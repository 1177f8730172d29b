"""PDF files for tests."""


def pdf_file(bodies, trailer=""):
    """Return the bytes of a PDF with the bodies of its objects, of which the first is its catalogue."""
    found, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(found))
        found += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    end = f"trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R {trailer}>>\nstartxref\n{len(found)}\n%%EOF\n"
    return found + f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}{end}".encode()
