"""Languages of documents: names propose, and texts decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.common.documents import read
from helpers import files
from metasearch.search.documents.chunking import Settings
from metasearch.search.documents.evidence import decide
from metasearch.search.documents.languages import are_translated, group_pages, translations
from metasearch.search.documents.read import sources

THINGS = ["apple", "brick", "cloud", "door", "engine", "flower", "garden", "house", "island", "jacket"]
TEXTS = {
    "en": "How to clean the {} with water and a brush when it has become dirty, and where it is kept.",
    "de": "So reinigt man {} mit Wasser und einer Bürste, wenn es schmutzig ist, und dort wird es aufbewahrt.",
    "fr": "Comment nettoyer {} avec de l'eau et une brosse quand il est sale, et où il est rangé dans la maison.",
    "ko": "{} 를 물과 솔로 깨끗하게 닦는 방법과 보관하는 장소를 자세히 설명합니다.",
    "zh": "如何用水和刷子把{}清洗干净,以及应该把它放在什么地方。请按照说明操作。",
    "el": "Πώς να καθαρίσετε το {} με νερό και βούρτσα όταν λερωθεί, και πού φυλάσσεται στο σπίτι.",
    "sr": "Како се {} чисти водом и четком када се запрља, и где се чува у кући после тога.",
}


def write(folder, pages, page="# {0}\n\n{1}\n", ending=".md"):
    """Write ten pages for each folder, which is given with the language of its texts."""
    for name, language in pages.items():
        for thing in THINGS:
            files.write(folder / name / f"{thing}{ending}", page.format(thing, TEXTS[language].format(thing)))
    return folder


def decided(folder):
    """Return the language of each folder, and its documents."""
    found = decide(sources([folder]), Settings())
    files = {each.path.relative_to(folder).as_posix(): each.language for each in found}
    return {file.rpartition("/")[0]: language for file, language in files.items()}, files


def of_passages(folder):
    found = {}
    for passage in read([folder]):
        found.setdefault(passage.file.removeprefix(f"{folder.as_posix()}/").rpartition("/")[0], set()).add(
            passage.language
        )
    return found


@pytest.mark.parametrize(
    ("pages", "expected", "translated"),
    [
        ({"en": "en", "de": "de"}, {"en": "en", "de": "de"}, True),
        # Departments and programming languages.
        ({"hr": "en", "it": "en"}, {"hr": "", "it": ""}, False),
        ({"hr": "de", "is": "de"}, {"hr": "", "is": ""}, False),
        ({"sdk/ts": "en", "sdk/cs": "en"}, {"sdk/ts": "", "sdk/cs": ""}, False),
        # Codes of countries: Kanuri, Twi and Chamorro are languages with these tags.
        ({"en": "en", "kr": "ko"}, {"en": "en", "kr": "ko"}, True),
        ({"en": "en", "tw": "zh"}, {"en": "en", "tw": "zh-Hant"}, True),
        ({"en": "en", "ch": "de"}, {"en": "en", "ch": "de"}, True),
        ({"de": "de", "uk": "en"}, {"de": "de", "uk": "en"}, True),
        ({"en": "en", "gr": "el", "cn": "zh"}, {"en": "en", "gr": "el", "cn": "zh"}, True),
        ({"en": "en", "sr@cyrillic": "sr"}, {"en": "en", "sr@cyrillic": "sr-Cyrl"}, True),
        # The default language is at the root.
        (
            {"guide": "en", "de/guide": "de", "fr/guide": "fr"},
            {"guide": "en", "de/guide": "de", "fr/guide": "fr"},
            True,
        ),
        ({"": "de", "en": "en"}, {"": "de", "en": "en"}, True),
        ({"": "de", "de": "de"}, {"": "", "de": "de"}, True),
        ({"": "de", "de_AT": "de", "en": "en"}, {"": "de", "de_AT": "de-AT", "en": "en"}, True),
        ({"docs": "en", "docs/translations/de": "de"}, {"docs": "en", "docs/translations/de": "de"}, True),
        ({"English": "en", "german": "de", "FR": "fr"}, {"English": "en", "german": "de", "FR": "fr"}, True),
        ({"C": "en", "de": "de"}, {"C": "en", "de": "de"}, True),
        # The language C, engineers, a school, and offices.
        ({"sdk/c": "de", "de": "de"}, {"sdk/c": "", "de": "de"}, False),
        ({"C": "en", "cs": "en", "pl": "en"}, {"C": "", "cs": "", "pl": ""}, False),
        ({"eng": "en", "hr": "en", "it": "en"}, {"eng": "", "hr": "", "it": ""}, False),
        ({"english": "en", "german": "en", "maths": "en"}, {"english": "", "german": "", "maths": ""}, False),
        ({"de": "de", "us": "en", "au": "en"}, {"de": "de", "us": "", "au": ""}, False),
        ({"en/c": "en", "de/c": "de"}, {"en/c": "en", "de/c": "de"}, True),
        ({"en": "en", "KR": "ko"}, {"en": "en", "KR": "ko"}, True),
        ({"docs": "en", "hr": "en"}, {"docs": "", "hr": ""}, False),
    ],
)
def test_texts_decide_about_names(pages, expected, translated, tmp_path):
    languages, files = decided(write(tmp_path, pages))
    assert languages == expected
    assert are_translated(files) is translated
    assert len(translations(files)) == (len(THINGS) if translated else 0)


@given(st.permutations(["", "help", "de", "2.1", "hr"]))
def test_folders_may_stand_in_any_order_around_a_language(parts):
    names = {
        "/".join(filter(None, [*(each if each != "de" else tag for each in parts), "a.html"])): tag
        for tag in ("de", "fr")
    }
    assert len({*group_pages(names).values()}) == 1
    names |= {file.replace("hr", "it"): tag for file, tag in names.items()}
    assert len({*group_pages(names).values()}) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("docs/intro.md", "i18n/de/docusaurus-plugin-content-docs/current/intro.md"),
        ("docs/01-intro/02-a.md", "i18n/de/docusaurus-plugin-content-docs/current/01-intro/03-a.md"),
        ("build/html/a.html", "build/de/html/a.html"),
        ("guide.html/a.html", "guide.de.html/a.html"),
        ("a.mdx", "de/a.md"),
        ("a.html", "a.html.de"),
        ("docs/a.html", "docs/de_DE.UTF-8/a.html"),
        ("a.md", "a.de.md"),
        ("content/a/index.md", "content/translations/de/a/index.md"),
        ("a/README.md", "a/translations/README.de.md"),
        ("Guide.pdf", "Guide_DE.pdf"),
        ("guide/a.html", "guide_german/a.html"),
    ],
)
def test_generators_keep_translations_in_folders_of_their_own(one, other):
    groups = group_pages({one: "", other: "de"})
    assert groups[one] == groups[other]
    assert len({*group_pages({one: "", other: "de"}, by="none").values()}) == 2


def test_pages_in_two_formats_of_one_language_leave_translations_together():
    groups = group_pages({"de/a.md": "de", "en/a.md": "en", "en/a.mdx": "en", "fr/a.mdx": "fr"})
    assert groups["de/a.md"] == groups["en/a.md"] == groups["fr/a.mdx"] != groups["en/a.mdx"]


@pytest.mark.parametrize("named", ["", "{}"])
def test_addresses_that_all_pages_name_or_a_single_one_make_no_translation(named):
    languages = {f"{tag}/{thing}.html": tag for tag in ("de", "en") for thing in THINGS}
    stored = {file: f"alternates {named.format(file)}" for file in languages}
    assert group_pages(languages, stored) == group_pages(languages)


def test_numbers_alone_make_no_translation():
    names = {"guide/1-intro.md": "", "guide/2-intro.md": "", "guide/3-intro.md": ""}
    assert len({*group_pages(names).values()}) == 3


def test_the_lang_of_a_template_does_not_count_against_names_and_texts(tmp_path, caplog):
    page = '<html lang="en"><title>{0}</title><p>{1}</html>'
    assert of_passages(write(tmp_path / "a", {"en": "en", "de": "de"}, page, ".html")) == {"en": {"en"}, "de": {"de"}}
    assert any("10 documents" in line and "state lang=en" in line for line in caplog.messages)
    caplog.clear()
    assert of_passages(write(tmp_path / "b", {"guide": "fr"}, page, ".html")) == {"guide": {"fr"}}
    assert any("state lang=en, but look like fr" in line for line in caplog.messages)
    for number, (stated, seen) in enumerate({"kr": "ko", "KR": "ko", "EN": "de", "en_us": "de", "kr-KR": "ko"}.items()):
        wrong = page.replace('"en"', stated)
        assert of_passages(write(tmp_path / f"{number}", {"guide": seen}, wrong, ".html")) == {"guide": {seen}}


def test_copies_in_the_default_language_are_no_translations(tmp_path, caplog):
    page = '<html lang="de"><title>{0}</title><nav>Menü</nav><p>{1}</html>'
    folder = write(tmp_path, {"en": "en", "de": "en"}, page, ".html")
    for thing in THINGS[:4]:
        (folder / "de" / f"{thing}.html").write_text(page.format(thing, TEXTS["de"].format(thing)), encoding="utf-8")
    _, files = decided(folder)
    assert [file for file, tag in files.items() if tag == "de"] == [f"de/{thing}.html" for thing in THINGS[:4]]
    assert len(translations(files)) == 4
    assert any("6 documents" in line and "same text" in line for line in caplog.messages)
    copies = {passage.language for passage in read([folder]) if "engine" in passage.file}
    assert copies == {"en"}
    (folder / "en").rename(folder / "en-US")
    assert set(decided(folder)[1].values()) == {"de", "en-US"}


@pytest.mark.parametrize("ending", [".md", ".mdx", ".markdown"])
def test_pages_beside_their_translations_have_the_language_of_their_texts(ending, tmp_path):
    write(write(tmp_path, {"": "en"}, ending=ending), {"": "de"}, ending=f".de{ending}")
    for tag, text in {"": "fr", ".en": "en"}.items():  # the original of one page is French
        files.write(tmp_path / f"kettle{tag}{ending}", 2 * TEXTS[text].format("kettle"))
    _, found = decided(tmp_path)
    expected = {f"{thing}{own}{ending}": tag for thing in THINGS for own, tag in (("", "en"), (".de", "de"))}
    assert found == {**expected, f"kettle{ending}": "", f"kettle.en{ending}": "en"}


def test_copies_whose_original_is_not_there_have_the_language_of_their_text(tmp_path):
    assert decided(write(tmp_path, {"de": "en", "fr-FR": "en", "ko": "ko"}))[0] == {
        "de": "en",
        "fr-FR": "en",
        "ko": "ko",
    }


def test_copies_that_state_the_language_of_their_folders_have_one_line(tmp_path, caplog):
    """Ten pages are English in both folders, and one is German in both."""
    for tag in ("de", "en"):
        for thing in (*THINGS, "kettle"):
            text = TEXTS["de" if thing == "kettle" else "en"].format(thing)
            page = f"<html lang={tag}><title>{thing}</title><p>{text} {text}</html>"
            files.write(tmp_path / tag / f"{thing}.html", page)
    _, found = decided(tmp_path)
    assert {file for file, tag in found.items() if tag != "en"} == {"de/kettle.html", "en/kettle.html"}
    assert ["same text" in line for line in caplog.messages] == [True, True]


def test_copies_in_the_same_language_keep_it(tmp_path):
    languages, _ = decided(write(tmp_path, {"docs/de": "de", "docs-de": "de", "docs/fr": "fr", "docs-fr": "fr"}))
    assert languages == {"docs/de": "de", "docs-de": "de", "docs/fr": "fr", "docs-fr": "fr"}


def test_copies_of_a_text_that_has_changed_have_its_language(tmp_path):
    """All pages state English. The French ones are English copies of an old text, and so are six of the German ones."""
    page = '<html lang="en"><title>{0}</title><p>{1}</html>'
    folder = write(tmp_path, {"de": "en", "fr": "en"}, page, ".html")
    write(folder, {"en": "en"}, page.replace("{1}", "What has changed about this {0} since the last release."), ".html")
    for thing in THINGS[:4]:
        files.write(folder / "de" / f"{thing}.html", page.format(thing, 2 * TEXTS["de"].format(thing)))
    found = {passage.file.removeprefix(f"{folder.as_posix()}/"): passage.language for passage in read([folder])}
    assert {file: tag for file, tag in found.items() if tag != "en"} == {
        f"de/{thing}.html": "de" for thing in THINGS[:4]
    }


def test_front_matter_names_translations(tmp_path):
    from metasearch.search.index.local import LocalStore
    from metasearch.search.indexes import index_documents

    for name, key in {"intro": "slug: /start", "de/einleitung": "slug: /de/start", "other": "title: x"}.items():
        files.write(tmp_path / "site" / f"{name}.md", f"---\n{key}\n---\nText of {name}.\n")
    for _ in range(2):  # also of documents that have not changed
        index_documents([tmp_path / "site"], tmp_path / "i", "tiny", device="cpu")
        groups = {path: file.group for path, file in LocalStore.open(tmp_path / "i").files.items()}
        assert groups["intro.md"] == groups["de/einleitung.md"] != groups["other.md"]
    index_documents([tmp_path / "site"], tmp_path / "i", asked={"translations": "path"}, device="cpu")
    groups = {path: file.group for path, file in LocalStore.open(tmp_path / "i").files.items()}
    assert len({*groups.values()}) == 3


@pytest.mark.parametrize(
    ("folder", "page"),
    [
        ("el", '<p lang="en-US">{el}<p>{el}<blockquote lang="fr">{fr}</blockquote>'),
        ("", '<html lang="el"><p lang="EN-US">{el}<p>{el}<blockquote lang="fr">{fr}</blockquote>'),
        ("", '<html lang="el"><title>{el}</title><p lang="en">{el}<p>{el}<blockquote lang="fr">{fr}</blockquote>'),
        ("", '<body lang="EN-US"><p>{el}<p>{el}<blockquote lang="fr">{fr}</blockquote>'),
    ],
)
def test_the_lang_of_a_part_counts_where_its_text_looks_like_it(folder, page, tmp_path):
    """Word processors state the language of the computer."""
    for thing in THINGS:
        text = page.format(el=4 * TEXTS["el"].format(thing), fr=4 * TEXTS["fr"].format(thing))
        files.write(tmp_path / folder / f"{thing}.html", text)
    assert of_passages(tmp_path) == {folder: {"el", "fr"}}
