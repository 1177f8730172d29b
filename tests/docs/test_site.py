"""The site has every page, and its reference every public name and nothing else."""

import re

import yaml

import metasearch
from helpers.documents import DOCUMENTS, ROOT


def pages(nav):
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else pages(value)


def test_the_navigation_has_every_page_once():
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    listed = sorted(f"docs/{path}" for path in pages(settings["nav"]))
    assert listed == sorted(path for path in DOCUMENTS if path.startswith("docs/"))


def test_the_reference_has_the_public_names():
    blocks = re.findall(r"^### ms\.(\w+)\n\n::: metasearch\.(\S+)$", DOCUMENTS["docs/reference.md"], re.M)
    assert sorted(metasearch._HOME) == metasearch.__all__
    homes = metasearch._HOME.items()
    ends = {name: home.replace(":", ".") if ":" in home else f"{home}.{name}" for name, home in homes}
    assert dict(blocks) == {name: end.rstrip(".") for name, end in ends.items()}
