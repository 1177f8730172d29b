"""Markdown keeps its marks, and loses what a rendered page does not show; in code all is shown."""

import base64
import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.passages import passages_of, shown
from metasearch.search.documents.readers import markdown


def test_markdown_stays_as_it_is_written(tmp_path):
    text = "# Head\n\nWords *here*.\n\n- one\n- two\n\n```\ncode = 1\n```\n"
    assert shown(tmp_path / "a.md", text) == [(1, text.rstrip())]
    assert shown(tmp_path / "a.md", text, limit=22) == [
        (1, "# Head\n\nWords *here*."),
        (5, "- one\n- two"),
        (8, "```\ncode = 1\n```"),
    ]


PICTURE = base64.b64encode(bytes(range(256))).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"A ![plot](data:image/png;base64,{PICTURE}) b", "A ![plot]() b"),
        (f"A ![plot](<data:image/png;base64,{PICTURE}> 'Title') b", "A ![plot](<> 'Title') b"),
        (f"A ![plot][p] b\n\n[p]: data:image/png;base64,{PICTURE} 'Title'", "A ![plot][p] b\n\n[p]:  'Title'"),
        (f"> [p]:\n> <data:image/png;base64,{PICTURE}>\n\nb", "> [p]:\n> <>\n\nb"),
        (f'A <img src="data:image/png;base64,{PICTURE}" alt="c"> b', 'A <img src="" alt="c"> b'),
        (f"<p>\n<img alt=c src=data:image/png;base64,{PICTURE}>\n</p>", "<p>\n<img alt=c src=>\n</p>"),
        ("A <img src='data:image/svg+xml;utf8,<svg a=\"b\"> </svg>'> b", "A <img src=''> b"),
        ("A [file](data:text/plain,a%20b) b", "A [file]() b"),
        ("A (data: see below), [data:](x) and x = 1 b", None),
        (f"`![plot](data:image/png;base64,{PICTURE})`", None),
        (f"```html\n<img src='data:image/png;base64,{PICTURE}'>\n```", None),
        ("A <!-- one --> b <!-- two\nthree --> c", "A  b \n c"),
        ("<!-- licence\n\n# All rights\n-->\n# Head", "# Head"),
        ("A<!---->b<!-->c<!--->d", "Abcd"),
        ("A\n\n<!-- no end\n\nb", "A"),
        ("A <!-- no end\n\nb --> c", None),
        (r"A \<!-- b --> c", None),
        ("A\n[//]: # (b)\n\n    [//]: # (c)\n\n[d]: # 'e' f\n\n[g]: h 'i'", None),
        ("[//]: # (b)\n[comment]: <> 'c'\nA", "A"),
        ("A `<!-- b -->` and ``<!-- ` -->`` c <!-- d -->", "A `<!-- b -->` and ``<!-- ` -->`` c"),
        ("    <!-- code -->\n\n- a\n\n      <!-- code -->\n\n  ~~~\n  <!-- code -->\n  ~~~", None),
        ("- a <!-- one -->\n- <!-- two\n\n  three -->\n- b", "- a \n- \n\n- b"),
        ("> a <!-- one\n> two --> b\n> <!-- three -->\n> c", "> a \n b\n> \n> c"),
        ("| a <!-- one --> | b <!-- two --> |\n|--|--|\n| c <!-- three --> | d |", "| a  | b  |\n|--|--|\n| c  | d |"),
        ("A {/* one */} b\n\n{/* two\n\nthree */}\n\n`{/* four */}`", "A  b\n\n\n\n`{/* four */}`"),
        ("<div>\n<!-- one\n\ntwo -->\nb\n</div>", "<div>\n\nb\n</div>"),
        ("<style>\np {color: red}\n\n</style>\nA <SCRIPT>x = 1</script > b\n<template>c</template>", "\nA  b\n"),
        ("<?php echo 1 ?>\n\n<!DOCTYPE html>\n\n<![CDATA[ x ]]>\n\nA <?x y?> b", "\n\n\nA  b"),
    ],
)
def test_what_a_page_does_not_show_is_no_text(text, expected, tmp_path):
    for name in ("a.md", "a.mdx"):
        seen = shown(tmp_path / name, text)
        assert [words for _, words in seen] == [(text if expected is None else expected).strip("\n").rstrip()]


def test_mdx_is_markdown_without_imports_exports_and_comments(tmp_path):
    module = "import {Tabs} from '@theme'\nimport a from 'b'\n\nexport const c = {\n  d: 1,\n}\n\n"
    text = "# Keys {/* note */}\n\n<Tabs>\n\nThe key.\n\n</Tabs>\n\n```js\nimport a from 'b'\n```\n\nWe import tea."
    expected = text.replace("{/* note */}", "")
    assert [words for _, words in shown(tmp_path / "a.mdx", module + text)] == [expected]
    assert [words for _, words in shown(tmp_path / "a.md", module + text)] == [module + expected]


SHOWN = st.sampled_from(
    [
        "v{}", "# v{}", "- v{}\n- v{}", "> v{}\n> v{}", "```\n<!-- v{}\n\nv{} -->\n```",
        "~~~~md\n~~~\n<!-- v{} -->\n~~~~",
        "`<!-- v{} -->` v{}", "Text\n\n    <!-- v{} -->", r"\<!-- v{} -->",
        "| v{} | v{} |\n|---|---|\n| `<!--` v{} | --> |",
    ]
)  # fmt: skip
HIDDEN = st.sampled_from(
    [
        "<!-- h{} -->", "<!--\nh{}\n\n# h{}\n-->", "<!-- ```\nh{}\n``` -->", "<!--h{}--><!--h{}-->",
        "> <!-- h{}\n> h{} -->", "- <!-- h{}\n\n  h{} -->", "<script>\nh{} = '-->'\n\n</script>",
        "[//]: # (h{})", "> [c]: <> 'h{}'", '- a\n\n  [-]: # "h{}"',
        "![](data:image/png;base64,h{}==)", "[h]: data:text/plain;base64,h{}", "<img src='data:image/png;base64,h{}'>",
    ]
)  # fmt: skip


@given(
    st.lists(st.one_of(SHOWN, HIDDEN, st.tuples(SHOWN, HIDDEN)), min_size=1, max_size=12),
    st.integers(30, 400),
    st.sampled_from([40, 2**18]),
)
def test_shown_words_survive_on_their_lines_and_hidden_words_never_show(tmp_path_factory, blocks, limit, size):
    count, parts = 0, []
    for block in blocks:
        for part in block if isinstance(block, tuple) else (block,):
            while "{}" in part:
                count += 1
                part = part.replace("{}", f"{count:06d}", 1)
            parts.append(part)
    text = "\n\n".join(parts) + "\n"
    lines = {word: number for number, line in enumerate(text.split("\n"), 1) for word in words_of(line)}
    with mock.patch.object(markdown, "_SIZE", size):
        seen = passages_of(tmp_path_factory.mktemp("md") / "a.md", text, limit=limit)
    assert {word for p in seen for word in words_of(p.text)} == {word for word in lines if word[0] == "v"}
    for passage in seen:
        first = next(iter(words_of(passage.text)), None)
        assert first is None or passage.line <= lines[first]
        if passage.text.startswith(("v", "# v", "- v", "| v")):
            assert passage.line == lines[first]


def words_of(text):
    return re.findall(r"[vh]\d{6}", text)


def test_a_passage_has_the_headings_above_it_and_no_code_is_a_heading(tmp_path):
    above = "Begin with it.\n\n# The [way](a.md) `home` {#way}\n\n```\n# no\n```\n\n"
    page = f"{above}Map\n---\n\nOne is here.\n\n### *Deep*\n\nTwo is there.\n\n## Bus\n\nThree is gone.\n"
    seen = passages_of(tmp_path / "a.md", page, limit=35)
    assert [(each.text, each.heading) for each in seen] == [
        ("Begin with it.", ""),
        ("# The [way](a.md) `home` {#way}", "The way home"),
        ("```\n# no\n```\n\nMap\n---\n\nOne is here.", "The way home"),
        ("### *Deep*\n\nTwo is there.", "The way home › Map › Deep"),
        ("## Bus\n\nThree is gone.", "The way home › Bus"),
    ]
    assert {each.anchor for each in seen} == {""}
