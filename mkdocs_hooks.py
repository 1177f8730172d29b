"""Prepares pages for the site: links to files outside `docs/` lead to the repository, or become text without one."""

import re
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return the text of a page with its links outside `docs/` replaced."""
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replace(link: re.Match[str]) -> str:
        target = normpath(str(folder / link[2]))
        if target.startswith("docs/"):
            return link[0]
        return f"[{link[1]}]({config.repo_url.rstrip('/')}/blob/main/{target})" if config.repo_url else link[1]

    return _LINK.sub(replace, markdown)
