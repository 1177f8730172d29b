"""The example of docs/export.md in a browser: transformers.js reads an exported folder and asks no other server.

transformers.js is no part of this project: METASEARCH_NPM names a folder in which
`npm install --ignore-scripts @huggingface/transformers` was run.
"""

import functools
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from helpers.browser import chromium
from helpers.documents import blocks
from helpers.onnx_extra import needs_onnx
from metasearch import load_encoder
from metasearch.config.compress import Form
from metasearch.pipelines.export import export

pytestmark = [needs_onnx, pytest.mark.slow]
PLACES = {"transformers.js": "@huggingface/transformers/dist", "onnxruntime-web": "onnxruntime-web/dist"}


class Files(SimpleHTTPRequestHandler):
    """Serves the files of a folder, and prints nothing."""

    extensions_map: ClassVar = {
        **SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm",
    }  # fmt: skip

    def log_message(self, *words):
        pass


@pytest.fixture
def served(tmp_path):
    """Give a folder with transformers.js, and the address at which it is served."""
    npm = os.environ.get("METASEARCH_NPM")
    if npm is None:
        pytest.skip("transformers.js is not here: METASEARCH_NPM names a folder with node_modules/@huggingface")
    for name, place in PLACES.items():
        (tmp_path / name).symlink_to(Path(npm) / "node_modules" / place)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_the_page_finds_the_answer_as_the_encoder_does_and_asks_no_other_server(served):
    folder, address = served
    encoder = load_encoder("mini")
    export(encoder, Form(onnx=True), folder / "graph")
    (example,) = blocks("docs/export.md", "html")
    (folder / "index.html").write_text(f'<meta charset="utf-8">\n{example}', encoding="utf-8")
    answers = ["Der Schlüssel liegt unter der Matte.", "Το ψωμί ψήνεται στον φούρνο."]
    expected = encoder.encode(answers, "candidate") @ encoder.encode(["Where is the key?"], "question")[0]
    asked = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/index.html")
        page.wait_for_function("window.scores !== undefined", timeout=200_000)
        found = page.evaluate("window.scores")
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert [url for url in asked if not url.startswith((address, "blob:"))] == []
    shutil.rmtree(folder / "graph")
