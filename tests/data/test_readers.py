"""What each reader makes of sound files: those in `tests/data` are small and have the quirks of the real ones."""

import json

import pytest

from helpers.formats import FOLDER, FORMATS, copy, files, read, task, task_of
from metasearch.config import registry
from metasearch.config.library import shipped
from metasearch.data.benchmark import load_benchmark
from metasearch.data.records import Candidate, Question, ScoredPair
from metasearch.errors import ConfigError, DataError

RETRIEVAL = ("xquad-r", "jsonl-paragraphs", "jsonl-labelled", "csv-labelled")


def candidates(data, language):
    return [candidate for candidate in data.candidates if candidate.language == language]


def pairs(data, name):
    return [(pair.text1, pair.text2, pair.score) for pair in data.pairs if pair.pair == name]


@pytest.mark.parametrize("form", RETRIEVAL)
def test_every_question_has_one_answer_in_every_language_all_in_one_article(form):
    data = read(form)
    assert {q.language for q in data.questions} == set(task_of(form).languages)
    for question in data.questions:
        answers = data.answers[question.id]
        assert {language: len(answering) for language, answering in answers.items()} == dict.fromkeys(data.languages, 1)
        assert {each.group for answering in answers.values() for each in answering} == {question.group}


def test_xquad_r_removes_line_breaks_from_texts_shows_them_as_spaces_and_takes_the_slices_of_sentence_breaks():
    queen = candidates(read("xquad-r"), "el")[1]
    first, third = "Οι μέλισσες φτιάχνουν μέλι.", "Οι εργάτριες ζουν έξι εβδομάδες."
    second = "Η βασίλισσα γεννάόλα τα αυγά."
    assert queen.text == second + f"{first} {second} {third}"
    assert queen.shown == "Η βασίλισσα γεννά όλα τα αυγά."
    shown = [candidate.shown for candidate in candidates(read("xquad-r"), "tr")[:3]]
    assert shown == ["\ufeffArılar bal yapar.", "Kraliçe tüm yumurtaları bırakır", ". İşçiler altı hafta yaşar."]


def test_xquad_r_answers_with_the_sentence_in_which_the_answer_begins():
    """The Arabic answer to `q-queen` begins in the second sentence and ends in the third (LAReQA, section 3)."""
    assert [c.answers for c in candidates(read("xquad-r"), "ar")[:3]] == [(), ("q-queen",), ("q-weeks",)]


@pytest.mark.parametrize(
    ("pair", "languages", "text1", "text2"),
    [
        ("ar-ar", ("ar", "ar"), "طائر يغني.", "عصفور يغرد."),
        ("ar-en", ("en", "ar"), "A bird sings.", "عصفور يغرد."),
        ("es-en", ("es", "en"), "Un pájaro canta.", "A bird is singing."),
        ("tr-en", ("en", "tr"), "A bird is singing.", "Bir kuş ötüyor."),
    ],
)
def test_semeval_knows_which_column_is_in_which_language(pair, languages, text1, text2):
    first = next(each for each in read("semeval2017").pairs if each.pair == pair)
    assert (first.languages, first.text1, first.text2) == (languages, text1, text2)


def test_semeval_scores_of_track_6_belong_to_its_first_half():
    """Track 6 has twice as many pairs as scores (MAML-Align paper, Table 3)."""
    rows = pairs(read("semeval2017"), "tr-en")
    assert [score for *_, score in rows] == [5.0 / 5, 1.2 / 5, 3.75 / 5]
    assert rows[-1][0] == "A man is reading."


def test_stsb_multi_mt_crosses_languages_at_the_same_row():
    data = read("stsb-multi-mt")
    assert pairs(data, "en-de")[1] == ("A man, a plan.", 'Er sagte "Hallo, du".', 3.6 / 5)
    assert pairs(data, "de-en")[1] == ("Ein Mann, ein Plan.", 'He said "hello, you".', 3.6 / 5)


def test_paragraph_rows_make_every_sentence_a_candidate_beside_its_paragraph():
    one, two, wax, nile = (
        "Bienen machen Honig.",
        "Die Königin legt Eier.",
        "Wachs kommt aus Drüsen.",
        "Der Nil fließt nach Norden.",
    )
    assert candidates(read("jsonl-paragraphs"), "de") == [
        Candidate("de_bee-1_0", "de", f"{one} {one} {two}", "bee", ("honey",), one),
        Candidate("de_bee-1_1", "de", f"{two} {one} {two}", "bee", ("queen",), two),
        Candidate("de_bee-2_0", "de", f"{wax} {wax}", "bee", (), wax),
        Candidate("de_nile-1_0", "de", f"{nile} {nile}", "nile", ("nile",), nile),
    ]


def test_labelled_rows_without_ids_are_translations_line_by_line():
    data = read("jsonl-labelled")
    assert [(q.id, q.language) for q in data.questions] == [(str(n), code) for code in ("de", "el") for n in (1, 2, 3)]


def test_equal_ids_of_a_sentence_and_a_labelled_answer_are_an_error(tmp_path):
    sentences = {"sentences": ["One.", "Two."], "questions": [{"question": "A?", "answer": 0, "id": "a"}]}
    labelled = {"question": "B?", "answer": "Three.", "id": "1_0"}
    for language in ("de", "el"):
        (tmp_path / f"{language}.jsonl").write_text(f"{json.dumps(sentences)}\n{json.dumps(labelled)}\n")
    with pytest.raises(DataError, match=r"de\.jsonl:2: duplicate id 'de_1_0', first in .*de\.jsonl:1"):
        read("jsonl-labelled", tmp_path)


def test_candidates_of_sentences_and_of_labelled_rows_are_in_file_order(tmp_path):
    sentences = {"sentences": ["Two.", "Three."], "questions": [{"question": "B?", "answer": 1, "id": "b"}]}
    first = {"question": "A?", "answer": "One.", "id": "a"}
    last = {"question": "C?", "answer": "Four.", "id": "c"}
    for language in ("de", "el"):
        (tmp_path / f"{language}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in (first, sentences, last)))
    found = candidates(read("jsonl-labelled", tmp_path), "de")
    assert [(c.id, c.shown, c.answers) for c in found] == [
        ("de_a", "One.", ("a",)), ("de_2_0", "Two.", ()), ("de_2_1", "Three.", ("b",)), ("de_c", "Four.", ("c",)),
    ]  # fmt: skip


@pytest.mark.parametrize("other", [', "article": "there"', ""])
def test_articles_that_share_a_question_are_one_whether_both_are_named_or_not(tmp_path, caplog, other):
    for language, article in (("de", ', "article": "here"'), ("el", other)):
        (tmp_path / f"{language}.jsonl").write_text(f'{{"id": "1", "question": "One?", "answer": "A."{article}}}\n')
    assert len({question.group for question in read("jsonl-labelled", tmp_path).questions}) == 1
    assert not caplog.messages


def test_labelled_rows_with_the_same_answer_share_one_candidate_and_one_group():
    data = read("jsonl-labelled")
    assert [(c.shown, c.answers) for c in candidates(data, "de")] == [("Die Königin.", ("1", "2")), ("Honig.", ("3",))]
    group = {question.id: question.group for question in data.questions}
    assert group["1"] == group["2"] != group["3"]


def test_csv_rows_have_context_ids_and_articles():
    data = read("csv-labelled")
    assert data.questions[:2] == (
        Question("queen", "de", "Wer legt Eier?", "bee"),
        Question("nile", "de", 'Wohin fließt "der Nil"?', "river"),
    )
    text = "Die Königin, allein. Bienen leben im Stock."
    assert data.candidates[0] == Candidate("de_queen", "de", text, "bee", ("queen",), "Die Königin, allein.")


def test_csv_pairs_have_languages_by_file_name_and_groups_by_column():
    assert read("csv-pairs").pairs[2:] == (
        ScoredPair("el-de", ("el", "de"), "Ναι, βρέχει.", "Es regnet.", 4.5 / 5, "rain"),
        ScoredPair("el-de", ("el", "de"), "Ένας σκύλος τρέχει.", "Eine Katze schläft.", 0 / 5, "dog"),
    )


def test_a_headerless_tsv_has_two_sentences_and_a_score_a_line():
    data = read("sts-extended")
    assert pairs(data, "en-de") == [
        ("A dog runs.", "Ein Hund rennt.", 5 / 5),
        ("A cat sleeps.", "Ein Auto steht.", 0.4 / 5),
    ]
    assert {(pair.languages, pair.group) for pair in data.pairs if pair.pair == "en-de"} == {
        (("en", "de"), "row-1"),
        (("en", "de"), "row-2"),
    }


@pytest.mark.parametrize("form", FORMATS)
def test_windows_line_ends_and_a_byte_order_mark_change_nothing(form, tmp_path):
    for name in files(form):
        sound = (FOLDER / form / name).read_bytes()
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + sound.replace(b"\n", b"\r\n"))
    assert read(form, tmp_path).fingerprint == read(form).fingerprint


def test_a_line_break_within_quotes_is_one_character_whatever_system_wrote_the_file(tmp_path):
    """The texts of a task, and so its fingerprint, are the same from both."""
    rows = 'question,answer\n"Who\nasks?",Me.\n'
    read_back = []
    for ends in ("\n", "\r\n"):
        for language in task_of("csv-labelled").languages:
            (tmp_path / f"{language}.csv").write_bytes(rows.replace("\n", ends).encode())
        read_back.append(read("csv-labelled", tmp_path))
    assert read_back[0].questions[0].text == "Who\nasks?"
    assert read_back[0] == read_back[1]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_languages_with_a_region_or_script_are_canonical_in_records_and_file_names(suffix, tmp_path):
    rows = {"pt-BR": "Onde fica?,Aqui.,1", "sr-Latn": "Gde je?,Ovde.,1"}
    for name, row in rows.items():
        question, answer, uid = row.split(",")
        line = json.dumps({"question": question, "answer": answer, "id": uid})
        content = f"question,answer,id\n{row}\n" if suffix == ".csv" else f"{line}\n"
        (tmp_path / f"{name}{suffix}").write_text(content, encoding="utf-8")
    declared = task(suffix[1:], "PT-br sr_latn")
    data = registry.load("readers", suffix[1:]).read(tmp_path, declared)
    assert [question.language for question in data.questions] == declared.languages == ["pt-BR", "sr-Latn"]
    assert data.answers["1"].keys() == {"pt-BR", "sr-Latn"}


def test_xquad_r_articles_whose_titles_are_translated_are_one(tmp_path):
    """Folds are cut between articles: no question is to be trained on in one language and tested in another."""
    place = copy("xquad-r", tmp_path)
    path = place / "tr.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    for article in whole["data"]:
        article["title"] += " (tr)"
    path.write_text(json.dumps(whole), encoding="utf-8")
    found, whole = read("xquad-r", place), read("xquad-r")
    of_question = {}
    for question in found.questions:
        of_question.setdefault(question.id, set()).add(question.group)
    assert {len(groups) for groups in of_question.values()} == {1}
    assert len(found.groups) == len(whole.groups)


def test_a_pair_with_a_script_is_read_from_the_file_of_its_name(tmp_path):
    (tmp_path / "sr-Latn-en.csv").write_text("text1,text2,score\na,b,0\nc,d,5\n", encoding="utf-8")
    declared = task("csv", "sr-Latn en", "SR_latn-en")
    data = registry.load("readers", "csv").read(tmp_path, declared)
    assert declared.pairs == ("sr-Latn-en",)
    assert {(pair.pair, pair.languages) for pair in data.pairs} == {("sr-Latn-en", ("sr-Latn", "en"))}


def test_two_forms_of_an_id_in_one_file_are_the_same_id(tmp_path):
    rows = [{"id": uid, "question": "a?", "answer": "a."} for uid in ("caf\u00e9", "cafe\u0301")]
    (tmp_path / "de.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(DataError, match=r"de\.jsonl:2: duplicate id 'café', first in .*de\.jsonl:1"):
        registry.load("readers", "jsonl").read(tmp_path, task("jsonl", "de"))


def test_settings_that_a_reader_refuses_are_named_by_file_and_line(tmp_path, monkeypatch):
    def refuse(task):
        raise ConfigError("needs two languages")

    monkeypatch.setattr(registry.load("readers", "jsonl"), "files", refuse)
    declared = (shipped() / "demo.yaml").read_text(encoding="utf-8")
    line = declared.splitlines().index("reader: jsonl") + 1
    (tmp_path / "mine.yaml").write_text(declared.replace("task: demo", "task: mine"), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"mine\.yaml:{line}: reader: needs two languages$"):
        load_benchmark("mine", include=[str(tmp_path)])


def test_a_candidate_can_be_its_sentence_without_the_paragraph():
    whole = read("xquad-r")
    alone = whole.sentences()
    assert alone.questions == whole.questions
    assert [c.text for c in alone.candidates] == [c.shown for c in whole.candidates]
    assert [c.answers for c in alone.candidates] == [c.answers for c in whole.candidates]
    assert alone.fingerprint != whole.fingerprint
    with pytest.raises(ValueError, match="only a retrieval task has candidates"):
        task("csv", "de", "de-de", candidates="sentence")
