"""Numbers of weights, against those of the distillation paper's models to the digit."""

import pytest
from transformers import BertConfig, XLMRobertaConfig

from helpers.backbones import make
from metasearch.compress.sizes import Sizes
from metasearch.compress.student import make_student

XLM_R = XLMRobertaConfig(vocab_size=250002, max_position_embeddings=514, type_vocab_size=1)
MINILM = BertConfig(vocab_size=250037, hidden_size=384, intermediate_size=1536, max_position_embeddings=512)
MBERT = BertConfig(vocab_size=119547)
FAMILIES = {"xlm-r": XLM_R, "minilm": MINILM, "mbert": MBERT}


@pytest.mark.parametrize(
    ("family", "words", "embedding", "block", "layers"),
    [
        ("xlm-r", 250002 * 768, 192_396_288, 192_398_592, 85_054_464),
        ("minilm", 250037 * 384, 96_210_816, 96_212_352, 21_293_568),
        ("mbert", 119547 * 768, 92_205_312, 92_208_384, 85_054_464),
    ],
)
def test_the_papers_assistants_have_their_published_sizes(family, words, embedding, block, layers):
    sizes = Sizes.of_config(FAMILIES[family])
    assert (sizes.counts["words"], sizes.embedding, sizes.embedding_block) == (words, embedding, block)
    assert (sizes.counts["layers"], sizes.counts["projection"]) == (layers, 0)
    hidden = FAMILIES[family].hidden_size
    assert sizes.counts["pooler"] == hidden * hidden + hidden


@pytest.mark.parametrize(
    ("family", "bottleneck", "recurrent", "total"),
    [
        ("xlm-r", 128, 3, 53_759_232),
        ("xlm-r", 256, 3, 85_857_792),
        ("xlm-r", None, 3, 213_662_208),
        ("minilm", 128, 3, 37_575_424),
        ("minilm", None, 3, 101_535_744),
        ("mbert", 128, 3, 37_060_224),
    ],
)
def test_whole_students_have_their_published_sizes(family, bottleneck, recurrent, total):
    sizes = Sizes.planned(FAMILIES[family], bottleneck, recurrent)
    assert sizes.total == total
    assert (sizes.counts["pooler"], sizes.counts["other"]) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "distilbert", "electra-narrow"])
def test_a_configuration_foretells_the_sizes_of_the_student(kind):
    assistant = make(kind, dense=True)
    config = assistant.model[0].auto_model.config
    student = make_student(assistant, 4, 3)
    dense = 16 * 5 + 5
    assert Sizes({**Sizes.planned(config, 4, 3).counts, "other": dense}) == Sizes.of(student)
    assert Sizes({**Sizes.of_config(config).counts, "other": dense}) == Sizes.of(assistant)
    assert Sizes.of_config(student.model[0].auto_model.config).total == Sizes.of(student).total - dense
