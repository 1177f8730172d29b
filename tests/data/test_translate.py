"""Translations in train: which rows are added, that none is of dev or test, and what is said where one is."""

from dataclasses import replace

import numpy as np
import pytest
import yaml

from helpers.documents import blocks
from metasearch.config.library import Library, load_recipe
from metasearch.config.task import Folds, Task, Translate
from metasearch.data.benchmark import load_benchmark
from metasearch.data.folds import split
from metasearch.data.formats.blank import normalise
from metasearch.data.records import Candidate, Question, RetrievalData, ScoredPair, SimilarityData
from metasearch.data.translate import TranslatedRow, add_translations, drop_leaked, held_out
from metasearch.errors import ConfigError, DataError

LANGUAGES = ("de", "el")
POOL = [f"{word} {i}" for word in ("where", "when", "who") for i in range(20)]


def written(text, language):
    return f"{language}: {text}"


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """Files with a translation of every text that data is made of, those of dev and test among them."""
    folder = tmp_path_factory.mktemp("translations")
    for language in LANGUAGES:
        texts = [text for plain in POOL for text in (plain, f'"{plain}"', f"“{plain}”")]
        lines = "".join(f"{text}\t{written(text, language)}\n" for text in texts)
        (folder / f"en-{language}.tsv").write_text(lines, encoding="utf-8")
    return folder


def task_of(kind="retrieval", **block):
    """Return a task in English and Greek that trains on translations, rows in Greek or files."""
    task = Library().task("demo" if kind == "retrieval" else "demo-sts")
    how = {"by": "oracle", "into": ["el"]} if kind == "retrieval" else {"into": LANGUAGES, "own": "drop"}
    block = Translate(**{"source": "en", **how, **block})
    return task.model_copy(update={"languages": ["en", "el"], "pairs": ("en-en", "en-el"), "translate": block})


def retrieval(rng, articles):
    """Make a corpus in English and Greek in which texts may stand in several articles, written differently."""
    questions, candidates = [], []
    for i in range(articles):
        for j in range(2):
            asked, answer = (str(rng.choice(['"{}"', "“{}”", "{}"])).format(rng.choice(POOL)) for _ in range(2))
            questions += [
                Question(f"q{i}.{j}", "en", asked, f"a{i}"),
                Question(f"q{i}.{j}", "el", f"ε {i} {j}", f"a{i}"),
            ]
            candidates += [
                Candidate(f"en_{i}_{j}", "en", answer, f"a{i}", (f"q{i}.{j}",), answer),
                Candidate(f"el_{i}_{j}", "el", f"α {i} {j}", f"a{i}", (f"q{i}.{j}",)),
            ]
    return RetrievalData(tuple(questions), tuple(candidates))


def similarity(rng, rows):
    """Make pairs in English, and of English and Greek, in which the texts of a row may stand in another row."""
    pairs = []
    for i in range(rows):
        first, second = (str(rng.choice(POOL[:6])) for _ in range(2))
        pairs.append(ScoredPair("en-en", ("en", "en"), first, second, 0.5, f"r{i}"))
        pairs.append(ScoredPair("en-el", ("en", "el"), first, f"ε {i}", 0.5, f"r{i}"))
    return SimilarityData(tuple(pairs))


def rows(data):
    return [*data.questions, *data.candidates] if isinstance(data, RetrievalData) else list(data.pairs)


def keys(row):
    """Return what a row says, whatever its ids, its order and its quotation marks."""
    if isinstance(row, ScoredPair):
        return frozenset(zip(row.languages, map(normalise, row.texts), strict=True))
    return type(row), row.language, normalise(row.text)


@pytest.mark.parametrize("make", [retrieval, similarity])
def test_in_random_splits_no_row_of_dev_or_test_is_in_train(make, translator):
    task, language = task_of(make.__name__, overlap="drop"), "el" if make is retrieval else "de"
    left_out = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        data = make(rng, int(rng.integers(5, 30)))
        k = int(rng.integers(3, 6))
        parts = split(data, Folds(k=k, shuffle=True, seed=seed), int(rng.integers(k)))
        with_translations, done = add_translations(parts, task, translator)
        held = [*rows(parts.dev), *rows(parts.test)]
        added = [
            row
            for row in rows(with_translations.train)
            if language in getattr(row, "languages", [getattr(row, "language", None)])
        ]
        assert {row.group for row in added} <= set(parts.train.groups) - {row.group for row in held}
        assert not {row.id for row in added if isinstance(row, Question)} & {getattr(row, "id", None) for row in held}
        # The source of each row, found again by its id or row.
        sources = {(type(row), getattr(row, "id", row.group)): row for row in rows(parts.train) if english(row)}
        of = [sources[type(row), getattr(row, "id", row.group).replace("el_", "en_")] for row in added]
        assert not {keys(row) for row in (*added, *of)} & {keys(row) for row in held}
        expected = [row for row in sources.values() if keys(row) not in {keys(other) for other in held}]
        assert {id(row) for row in of} == {id(row) for row in expected}
        assert (with_translations.dev, with_translations.test) == (parts.dev, parts.test)
        left_out += done.left_out
    assert left_out > 0  # so that what was looked for was there


def english(row):
    return row.languages == ("en", "en") if isinstance(row, ScoredPair) else row.language == "en"


def corpus(*texts):
    """Make three articles, each with a question in English and its answer, the first of them in Greek, too."""
    names = ("train", "dev", "test")
    questions = [Question(f"q-{name}", "en", text, name) for name, text in zip(names, texts, strict=True)]
    answers = [Candidate(f"c-{name}", "en", POOL[10 + i], name, (f"q-{name}",)) for i, name in enumerate(names)]
    greek = Question("q-train", "el", "ε", "train")
    answers.append(Candidate("c-train-el", "el", "μία", "train", ("q-train",)))
    return RetrievalData((*questions, greek), tuple(answers), dict(zip(names, names, strict=True)))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            (f'"{POOL[0]}"', POOL[1], f"“{POOL[0]}”"),
            "its source has the text of question 'q-test' in en, '“where 0”', of test",
        ),
        ((POOL[0], POOL[0], POOL[1]), "its source has the text of question 'q-dev' in en, 'where 0', of dev"),
    ],
)
def test_a_planted_text_of_dev_or_test_is_refused_and_named(texts, message, translator):
    parts = split(corpus(*texts), Folds(method="given"), 0)
    with pytest.raises(DataError) as caught:
        add_translations(parts, task_of(), translator)
    assert str(caught.value) == (
        f"translate: question 'q-train' in el, 'ε', cannot be added to train: {message}; "
        "use overlap: drop to remove such rows"
    )
    _, done = add_translations(parts, task_of(overlap="drop"), translator)
    # The answer has no such text.
    assert (done.left_out, done.rows) == (1, 1)


def test_a_translation_with_a_text_of_test_is_refused():
    data = corpus(*POOL[:3])
    parts = split(data, Folds(method="given"), 0)
    held = held_out({"dev": parts.dev, "test": parts.test})
    added = TranslatedRow(replace(data.questions[0], language="de", text="wo"), data.questions[0])
    assert drop_leaked([added], held, drop=False) == ([added], 0)
    leaked = added._replace(row=replace(added.row, language="en", text=POOL[2]))
    with pytest.raises(DataError, match="its translation has the text of question 'q-test' in en, 'where 2', of test"):
        drop_leaked([leaked], held, drop=False)


def test_a_question_of_test_is_not_translated_where_a_reader_puts_its_id_in_two_articles(translator):
    data = corpus(*POOL[:3])
    again = replace(data.questions[2], text=POOL[3], group="train")
    greek = replace(again, language="el", text="γ")
    answer = replace(data.candidates[2], id="again", text=POOL[4], group="train")
    answers = (answer, replace(answer, id="greek", language="el", text="δ"))
    for changed in (
        replace(data, questions=(*data.questions, again, greek)),
        replace(data, questions=(*data.questions, again), candidates=(*data.candidates, *answers)),
    ):
        parts = split(changed, Folds(method="given"), 0)
        with pytest.raises(DataError, match="cannot be added to train: question 'q-test' is in test, too"):
            add_translations(parts, task_of(overlap="drop"), translator)


def test_pairs_within_the_source_become_pairs_of_all_languages(translator):
    rng = np.random.default_rng(0)
    parts = split(similarity(rng, 9), Folds(k=3), 0)
    train = add_translations(parts, task_of("similarity", overlap="drop"), translator)[0].train
    # The Greek rows of the data's own are left out.
    assert {pair.pair for pair in train.pairs} == {"en-en", "en-de", "en-el", "de-de", "de-el", "el-el"}
    (crossed,) = [pair for pair in train.pairs if pair.group == train.pairs[0].group and pair.pair == "de-el"]
    assert crossed.texts == (written(train.pairs[0].text1, "de"), written(train.pairs[0].text2, "el"))


def test_the_oracle_takes_the_rows_of_the_same_ids_and_the_source_is_not_scored():
    demo, oracle = load_benchmark("demo"), load_benchmark("demo-oracle")
    assert oracle.split.test == demo.split.test
    assert oracle.split.dev == demo.split.dev
    own = {(q.id, q.language): q for q in demo.split.train.questions}
    asked = {q.id for q in oracle.split.train.questions if q.language == "en"}
    for question in oracle.split.train.questions:
        assert question.language == "en" or own[question.id, question.language] == question
        assert question.id in asked
    texts = {c.text for c in demo.split.train.candidates if c.answers and c.language == "el"}
    assert {c.text for c in oracle.split.train.candidates if c.language == "el"} == texts


def test_a_recipe_may_train_on_the_rows_of_the_data_alone():
    demo, oracle = load_benchmark("demo"), load_benchmark("demo-oracle")
    assert oracle.trained_on(True) is oracle
    own = oracle.trained_on(False)
    assert (own.split.train.questions, own.split.train.candidates) == (
        demo.split.train.questions,
        demo.split.train.candidates,
    )
    assert (own.translations, own.split.test, own.data) == (None, oracle.split.test, oracle.data)
    assert load_recipe("maml", ["translate=false"]).model_dump()["translate"] is False
    assert load_recipe("maml").model_dump()["translate"] is True


def test_what_is_translated_and_how_belongs_to_the_fingerprint_of_the_data_and_folds_share_it():
    plain = load_benchmark("demo").data
    first, second = (load_benchmark("demo-oracle", fold=fold) for fold in (0, 1))
    assert first.data.fingerprint == second.data.fingerprint != plain.fingerprint
    assert (first.data.questions, first.data.candidates) == (plain.questions, plain.candidates)
    assert first.translations.fingerprint != second.translations.fingerprint


def test_own_rows_in_a_language_that_is_translated_into_are_kept_if_a_task_says_so_and_must_be_spoken_of(translator):
    parts = split(similarity(np.random.default_rng(0), 9), Folds(k=3), 0)
    task = task_of("similarity", own="keep", overlap="drop")
    train = add_translations(parts, task, translator)[0].train
    assert [pair for pair in train.pairs if pair.pair == "en-el"] == [p for p in parts.train.pairs if p.pair == "en-el"]
    assert any(pair.pair == "el-el" for pair in train.pairs)
    own = sum(pair.pair == "en-el" for pair in parts.train.pairs)
    with pytest.raises(ConfigError, match=rf"train has {own} rows in de, el of its own; use own: drop .* or own: keep"):
        add_translations(parts, task_of("similarity", own=None), translator)


def test_a_retrieval_task_takes_rows_of_the_data_alone():
    tree = Library().task("demo").model_dump(mode="json", exclude_none=True)
    with pytest.raises(ValueError, match="a retrieval task takes rows of the data; add translations there"):
        Task.model_validate(tree | {"translate": {"source": "en", "into": ["el"]}})


def test_the_blocks_of_the_document_are_sound():
    declared, *others = map(yaml.safe_load, blocks("docs/translate.md", "yaml"))
    assert Translate.model_validate(declared["translate"]).into == ("de", "es")
    assert others == []
