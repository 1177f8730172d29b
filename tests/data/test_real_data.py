"""The published data sets as they are, against the tables of the MAML-Align paper (Tables 2 and 3)."""

import pytest

from metasearch.config.run import DataConfig
from metasearch.data.benchmark import load_benchmark, on_folds

LANGUAGES = ("ar", "de", "el", "hi", "ru", "th", "tr")
SIX_PAIRS = ("ar-ar", "ar-en", "es-es", "es-en", "en-en", "tr-en")
LAREQA = [
    # questions of train, dev, test; candidates of test in ar de el hi ru th tr; the first row is the paper's Table 2
    (0, (696, 220, 274), (184, 208, 192, 184, 183, 146, 187)),
    (1, (708, 220, 262), (281, 314, 291, 286, 299, 197, 267)),
    (2, (720, 220, 250), (278, 294, 291, 317, 281, 203, 263)),
    (3, (786, 199, 205), (254, 230, 235, 231, 219, 142, 230)),
    (4, (786, 205, 199), (225, 230, 225, 226, 237, 164, 220)),
]
ARTICLES = [(28, 10, 10), (28, 10, 10), (28, 10, 10), (30, 9, 9), (30, 9, 9)]


@pytest.fixture(scope="module")
def lareqa(real_data):
    return parse_folds("lareqa", real_data)


@pytest.fixture(scope="module")
def stsb(real_data):
    return parse_folds("stsb", real_data)


def parse_folds(task, folder):
    ref = DataConfig(task=task, data=str(folder))
    return on_folds(load_benchmark(ref), range(5))


def parts(benchmark):
    return benchmark.split.train, benchmark.split.dev, benchmark.split.test


def candidates(data):
    return tuple(sum(candidate.language == code for candidate in data.candidates) for code in LANGUAGES)


def test_lareqa_has_the_questions_and_test_candidates_of_table_2_in_every_language(lareqa):
    for fold, questions, tested in LAREQA:
        for part, count in zip(parts(lareqa[fold]), questions, strict=True):
            asked = {code: len(found) for code, found in part.questions_by_language.items()}
            assert asked == dict.fromkeys(LANGUAGES, count)
        assert sum(questions) == 1190
        assert candidates(lareqa[fold].split.test) == tested


def test_lareqa_splits_48_articles_and_neither_they_nor_answers_straddle(lareqa):
    for benchmark, articles in zip(lareqa, ARTICLES, strict=True):
        groups = [set(part.groups) for part in parts(benchmark)]
        assert tuple(map(len, groups)) == articles
        assert len(set.union(*groups)) == sum(articles) == 48
        for part in parts(benchmark):
            assert set(part.answers) == {question.id for question in part.questions}


def test_semeval_folds_are_150_50_and_50_in_each_language_pair(stsb):
    for benchmark in stsb:
        for pair in SIX_PAIRS:
            assert [sum(found.pair == pair for found in part.pairs) for part in parts(benchmark)] == [150, 50, 50]


def test_the_columns_of_semeval_are_in_the_languages_that_the_reader_says(stsb):
    """Arabic letters tell the two columns of ar-en apart, Turkish ones those of tr-en."""
    signs = {"ar": set("ابتجدرسعلمنهوي"), "tr": set("ığşİĞŞ")}
    for pair, code in (("ar-en", "ar"), ("tr-en", "tr")):
        found = [one for one in stsb[0].data.pairs if one.pair == pair]
        for column in (0, 1):
            texts = [(one.text1, one.text2)[column] for one in found]
            share = sum(bool(signs[code] & set(text)) for text in texts) / len(texts)
            assert share > 0.7 if found[0].languages[column] == code else share == 0


@pytest.mark.slow
def test_stsb_multi_mt_has_5749_1500_and_1379_rows_in_every_language_pair(real_data):
    found = load_benchmark("stsb-mt", data=str(real_data))
    expected = (5749, 1500, 1379)
    assert tuple(len(part.groups) for part in parts(found)) == expected
    for part, rows in zip(parts(found), expected, strict=True):
        counted = {pair: sum(one.pair == pair for one in part.pairs) for pair in found.task.pairs}
        assert counted == dict.fromkeys(found.task.pairs, rows)


@pytest.mark.slow
def test_translations_of_lareqa_are_none_of_dev_and_test(real_data):
    """The authors' T-Train had all 1190 questions in train, whatever the fold."""
    fold = 4
    train, dev, test = parts(load_benchmark("lareqa-sentences-oracle", fold=fold, data=str(real_data)))
    held = {question.id for part in (dev, test) for question in part.questions}
    asked = {code: {q.id for q in found} for code, found in train.questions_by_language.items()}
    assert asked["ar"] == asked["el"] == asked["hi"] == asked["de"]
    assert len(asked["de"]) == LAREQA[fold][1][0] == 1190 - len(held)
    assert not asked["de"] & held


def test_lareqa_fold_0_has_the_train_and_dev_candidates_of_table_2(lareqa):
    assert candidates(lareqa[0].split.train) == (783, 812, 788, 808, 774, 528, 732)
    assert candidates(lareqa[0].split.dev) == (255, 256, 254, 252, 262, 178, 248)


def test_candidate_ids_are_unique_in_all_of_lareqa(lareqa):
    ids = [candidate.id for candidate in lareqa[0].data.candidates]
    assert len(ids) == len(set(ids)) == 1222 + 1276 + 1234 + 1244 + 1219 + 852 + 1167


@pytest.mark.slow
def test_english_pairs_of_train_that_stand_in_dev_or_test_are_not_translated(real_data):
    benchmark = load_benchmark("stsb-mt-translated", data=str(real_data))
    english = [pair for pair in benchmark.split.train.pairs if pair.pair == "en-en"]
    german = [pair for pair in benchmark.split.train.pairs if pair.pair == "de-de"]
    own = load_benchmark("stsb-mt", data=str(real_data)).split.train
    assert len(english) == 5749
    # 24 English pairs stand in dev or test, and translations of some others do.
    assert len(german) <= 5749 - 24
    assert benchmark.translations.rows + benchmark.translations.left_out == 5 * 5749
    texts = {(pair.group, pair.texts) for pair in own.pairs if pair.pair == "de-de"}
    assert {(pair.group, pair.texts) for pair in german} <= texts


@pytest.mark.slow
def test_candidates_without_their_paragraph_are_the_sentences_that_are_shown(real_data):
    whole = load_benchmark("lareqa", data=str(real_data))
    alone = load_benchmark("lareqa-sentences", data=str(real_data))
    assert alone.split.test.questions == whole.split.test.questions
    assert [c.text for c in alone.data.candidates] == [c.shown for c in whole.data.candidates]
    assert all(len(a.text) < len(w.text) for a, w in zip(alone.data.candidates, whole.data.candidates, strict=True))
