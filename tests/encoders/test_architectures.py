"""Every architecture of transformers that reads texts works as an encoder, or is refused in one line."""

import string
from contextlib import suppress

import numpy as np
import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedTokenizerFast
from transformers.models.auto import modeling_auto as auto

from helpers.gradients import Case
from helpers.tiers import others_slow
from metasearch.encoders.open import open_checkpoint
from metasearch.errors import EncoderError
from metasearch.training.outer_gradients import OuterGradients

POSITIONS = 40
WORDS = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *string.printable.strip()]
_TOKENS = {"pad": 1, "bos": 2, "cls": 2, "decoder_start": 2, "eos": 3, "sep": 3}

_WIDTH, _HEADS = 32, 4
_SIZES = {
    _WIDTH: "hidden_size d_model n_embd dim emb_dim embed_dim embedding_size d_embed word_embed_proj_dim embedding_dim "
    "lru_width attention_hidden_size d_latents input_embedding_size true_hidden_size",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers "
    "num_encoder_layers num_self_attends_per_block type_vocab_size num_experts_per_tok moe_topk moe_k mamba_expand",
    _HEADS: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
    "num_key_value_heads n_routed_experts num_experts num_local_experts moe_num_experts time_step_rank "
    "linear_num_value_heads linear_num_key_heads num_self_attention_heads num_cross_attention_heads num_hashes "
    "downsampling_rate",
    2 * _WIDTH: "intermediate_size ffn_dim d_ff d_inner encoder_ffn_dim decoder_ffn_dim n_inner inner_dim hidden_dim "
    "intermediate_size_mlp dense_ffn_hidden_size ffn_hidden_size feed_forward_size feedforward_size",
    _WIDTH // _HEADS: "d_kv d_head head_dim q_lora_rank kv_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim "
    "state_size mamba_d_state mamba_d_head mamba_n_heads ssm_state_size mamba_num_heads mamba_head_dim "
    "linear_key_head_dim linear_value_head_dim attention_head_size rotary_dim hidden_size_per_layer_input "
    "attention_window local_attention num_latents",
    16: "moe_intermediate_size shared_expert_intermediate_size expert_ffn_hidden_size qk_head_dim sliding_window "
    "bottleneck_size intra_bottleneck_size entity_emb_size",
    1: "n_shared_experts n_group topk_group first_k_dense_replace n_groups",
    0: "rescale_every",
    200: "vocab_size vocab_size_per_layer_input num_hash_buckets entity_vocab_size pronunciation_vocab_size "
    "shape_vocab_size",
    POSITIONS: "max_position_embeddings n_positions max_seq_len max_encoder_position_embeddings "
    "max_decoder_position_embeddings max_source_positions max_target_positions",
}
_SMALL = {name: size for size, names in _SIZES.items() for name in names.split()}
_UNSET = ("sliding_window", "embedding_dim", "n_inner")
"""Sizes that a network may do without."""
_LISTS = ("layer_types", "layers_block_type", "mlp_layer_types")

_CHANGES = {
    "funnel": {"block_sizes": [1, 1], "block_repeats": [1, 1], "architectures": ["FunnelModel"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "attention_layers": ["global", "local"]},
    "lilt": {"hidden_size": 48},
    "mamba2": {"num_heads": 8},
    "reformer": {"axial_pos_shape": [5, 8], "axial_pos_embds_dim": [16, 16], "attn_layers": ["local", "lsh"],
                 "local_attn_chunk_length": 5, "lsh_attn_chunk_length": 5},
    "xmod": {"default_language": "en_XX", "languages": ["en_XX"]},
}  # fmt: skip
"""Settings beside sizes that a kind needs."""

_REASONS = {
    "more than 5 million weights": "blt dots3_note llama4 phi4_multimodal seamless_m4t seamless_m4t_v2 vibevoice_asr",
    "settings that depend on each other": "cohere_compass_text dbrx emu3 falcon_h1 gemma3n_text laguna lfm2_moe "
    "musicgen musicgen_melody qwen4_exp qwen4_exp_text zaya",
    "a package that is not installed": "gemma3n layoutlmv2",
}
NOT_TINY = {kind: reason for reason, kinds in _REASONS.items() for kind in kinds.split()}
"""Kinds that `write_tiny` cannot make, and why."""


def text_kinds():
    """Return the `model_type` of each network that is an encoder, a language model or a classifier of texts."""
    for_texts = (
        auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        auto.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES,
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    )
    return sorted(set(auto.MODEL_MAPPING_NAMES) & set().union(*for_texts))


def tokenizer():
    """Return a tokenizer with a token for each character."""
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {"unk": "[UNK]", "pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "bos": "[CLS]", "eos": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, mask_token="[MASK]", **{f"{name}_token": token for name, token in named.items()}
    )


def write_tiny(kind, folder):
    """Write a network of a kind with drawn weights, and the tokenizer, to a folder, as transformers does."""
    config = CONFIG_MAPPING[kind]()
    _shrink(config)
    for name, value in _CHANGES.get(kind, {}).items():
        setattr(config, name, value)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        size = 0
        with torch.device("meta"), suppress(TypeError):  # which some networks cannot be made on
            size = sum(weight.numel() for weight in AutoModel.from_config(config).parameters())
        if size > 5_000_000:
            raise ValueError(f"{size:,} weights are not tiny")
        network = AutoModel.from_config(config)
        for weight in network.parameters():
            if weight.is_floating_point():
                torch.nn.init.normal_(weight, mean=float(weight.ndim == 1), std=0.1)
    network.save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def _shrink(config, depth=0):
    """Make a configuration and those inside it small, as far as it knows the names of sizes."""
    settings = config.to_dict()
    for inner in list(vars(config).values()):
        if hasattr(inner, "to_dict") and depth < 3:
            _shrink(inner, depth + 1)
    named = {**_SMALL, **{f"{name}_token_id": number for name, number in _TOKENS.items()}}
    for name in named.keys() & settings.keys():
        if not isinstance(settings[name], bool | list) and (settings[name] is not None or name not in _UNSET):
            with suppress(Exception):
                setattr(config, name, named[name])
    for name in _LISTS:
        if layers := settings.get(name):
            setattr(config, name, [layers[0], layers[-1]])


LONG = "the old key under the mat by the door of the old house " * 5
TEXTS = ["Where is the key?", LONG, "x", "", LONG[:60]]
QUICK = (
    "roberta", "ibert", "mpt", "canine", "t5", "bart", "llama", "xlnet", "mamba", "tipsv2_text_model", "fnet",
    "reformer",
)  # fmt: skip
"""Each with another way to place tokens."""
REFUSED = {
    "canine": "'canine' cannot read a text of 3 tokens",
    "fnet": "padding changes its embeddings",
    "reformer": "change from one call to the next",
}
LONGEST = {
    "roberta": POSITIONS - 2, "ibert": POSITIONS - 2, "longformer": POSITIONS - 2, "mpt": POSITIONS, "bart": POSITIONS,
    "led": POSITIONS,
}  # fmt: skip
"""The first three count from the padding token on, which is 1. The configuration of LED names two numbers."""

NOT_REOPENED = {"xlstm": "padding changes its embeddings"}
"""Kinds that read padding, which their first weights hide: it shows once they are trained."""

assert len(LONG) > 5 * POSITIONS


def check(folder, saved):
    """Encode, train, save and open again."""
    encoder = open_checkpoint(str(folder))
    save_and_open(encoder, trained_by(encoder), saved)


def trained_by(encoder):
    """Return the embeddings of texts after a step of training."""
    alone = np.concatenate([encoder.encode([text], "text") for text in TEXTS])
    together = encoder.encode(TEXTS, "text")
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(together, alone, atol=1e-4)
    # A step of MAML with the gradients of the product.
    OuterGradients(encoder)(Case("maml").learn(encoder, inner_steps=1), Case("maml").episodes(1))
    with torch.no_grad():
        for weight in encoder.embedder.parameters():
            if weight.grad is not None:
                weight -= 0.05 * weight.grad.to_dense()
    trained = encoder.encode(TEXTS, "text")
    assert np.abs(trained - together).max() > 0
    return trained


def save_and_open(encoder, trained, saved):
    encoder.save(saved)
    again = open_checkpoint(str(saved))
    np.testing.assert_allclose(again.encode(TEXTS, "text"), trained, atol=1e-5)
    assert again.fingerprint == encoder.fingerprint
    assert again.input.longest == encoder.input.longest


@pytest.mark.parametrize("kind", others_slow(QUICK, quick=("roberta", "canine", "mamba", "bart")))
def test_an_architecture_works_or_is_refused_in_one_line(kind, tmp_path):
    write_tiny(kind, tmp_path / "tiny")
    if kind in REFUSED:
        with pytest.raises(EncoderError, match=rf"^[^\n]*{REFUSED[kind]}[^\n]*$"):
            check(tmp_path / "tiny", tmp_path / "saved")
    else:
        check(tmp_path / "tiny", tmp_path / "saved")


@pytest.mark.parametrize("kind", others_slow(LONGEST, quick=("roberta", "led")))
def test_a_text_is_cut_at_the_positions_of_the_network(kind, tmp_path):
    write_tiny(kind, tmp_path)
    encoder = open_checkpoint(str(tmp_path))
    assert encoder.input.longest == LONGEST[kind]
    assert encoder.lengths([LONG], "text").tolist() == [LONGEST[kind]]


def test_an_embedding_block_unlike_those_of_bert_has_no_output_embedding(tmp_path):
    write_tiny("layoutlm", tmp_path)
    with pytest.raises(EncoderError, match="'layoutlm' has no embedding block like BERT's"):
        open_checkpoint(str(tmp_path)).encode(["x"], "text", "embedding")


def test_the_encoder_of_a_translation_model_works_where_it_is_saved_alone(tmp_path):
    write_tiny("marian", tmp_path / "whole")
    with pytest.raises(EncoderError, match=r"^[^\n]*only the encoder of a 'marian'[^\n]*get_encoder\(\)[^\n]*$"):
        open_checkpoint(str(tmp_path / "whole"))
    AutoModel.from_pretrained(tmp_path / "whole").get_encoder().save_pretrained(tmp_path / "encoder")
    tokenizer().save_pretrained(tmp_path / "encoder")
    check(tmp_path / "encoder", tmp_path / "saved")


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", sorted(set(text_kinds()) - {*QUICK, *NOT_TINY}))
def test_every_architecture_works_or_is_refused_in_one_line(kind, tmp_path):
    write_tiny(kind, tmp_path / "tiny")
    refused = ""
    try:
        encoder = open_checkpoint(str(tmp_path / "tiny"))
        trained = trained_by(encoder)
    except EncoderError as error:
        refused = str(error)
    assert "\n" not in refused
    if refused:
        return
    # What was trained must not be lost.
    if kind in NOT_REOPENED:
        with pytest.raises(EncoderError, match=NOT_REOPENED[kind]):
            save_and_open(encoder, trained, tmp_path / "saved")
    else:
        save_and_open(encoder, trained, tmp_path / "saved")
