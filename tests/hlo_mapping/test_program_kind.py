"""What kind of program a module is, against what its author says that it does; with names of operations and without."""

from __future__ import annotations

import functools

import pytest

from hlo_mapping.facts import analyze_module
from hlo_mapping.program_kind import ProgramKind
from hlo_mapping.text.parser import parse_module
from tests.hlo_mapping.hlo_samples import captured, program, text, without_names

DECODING = """beam big_decode contiguous contiguous_b1 generate_fresh kv_fp8 kv_int8 mla_absorbed mla_naive one_hot_write paged_b8
    scan_cache scan_layers_decode sliding_relayout sliding_roll spec_loop speculative tied tp_decode window_decode cross_attention
    generate_stacked soft_capped"""
PREFILL = "prefill_static prefill"
TRAINING = """conv_train dp_train fsdp grads_only lstm_train_cond mlp_grads mlp_sgd moe_train resnet_train rnn_train
    scan_train transformer_train sgd_scan gnn_train vit_remat gan_train muon contrastive recommender"""
INFERENCE = """closed_over convnet embedding_bag encoder flash_scan gnn gru_step int4 lora lstm lstm_cond mamba_step mixed_precision mlp_b1
    moe_decode moe_dense offloaded packed4 unet_attn unet_like whisper_enc ranking retention"""
OTHER = "n_body attention_only collectives fft index_array insert_cache sort_big hmc power_iteration ode"
KINDS = [
    (name, kind)
    for kind, names in (("decoding", DECODING), ("prefill", PREFILL), ("training", TRAINING), ("inference", INFERENCE), ("other", OTHER))
    for name in names.split()
]


@functools.cache
def kind_of(name: str) -> ProgramKind:
    found = analyze_module(program(name), 1).kind
    assert found is not None
    return found


def of_capture(capture: str, name: str) -> ProgramKind:
    found = analyze_module(captured(capture, name), 1).kind
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_kind(name: str, kind: str) -> None:
    found = kind_of(name)
    assert (found.kind, bool(found.evidence)) == (kind, True)
    assert 0.5 <= found.confidence <= 1.0


@pytest.mark.parametrize(
    ("capture", "name", "kind"),
    [
        ("decode", "jit_decode_step", "decoding"),
        ("serve", "jit_decode_step", "decoding"),
        ("serve", "jit_prefill_chunk", "prefill"),
        ("while_decode_nocb", "jit_generate", "decoding"),
        ("train", "jit_train_step", "training"),
        ("moe", "jit_moe_layer", "inference"),
        ("int8", "jit_quantized_mlp", "inference"),
    ],
)
def test_kind_of_captured_programs(capture: str, name: str, kind: str) -> None:
    assert of_capture(capture, name).kind == kind


@pytest.mark.parametrize("name", ["prefill", "gan_train", "gnn_train", "vit_remat", "hmc", "power_iteration"])
def test_names_that_people_gave_play_no_part(name: str) -> None:
    found = analyze_module(parse_module(without_names(text(name))), 1).kind
    assert found is not None
    assert found.kind == kind_of(name).kind


@pytest.mark.parametrize(
    "name",
    [
        "gnn_train",
        "gan_train",
        "ranking",
        "hmc",
        "ode",
        "power_iteration",
        "unet_attn",
        "convnet",
        "embedding_bag",
        "lstm",
        "mlp_sgd",
        "fft",
    ],
)
def test_what_is_no_language_model_makes_no_tokens(name: str) -> None:
    found = kind_of(name)
    assert not (found.is_language_model or found.samples_tokens or found.makes_many_tokens or found.has_kv_cache or found.serves)


def test_tokens_of_a_loop() -> None:
    assert kind_of("generate_fresh").makes_many_tokens
    assert of_capture("while_decode_nocb", "jit_generate").makes_many_tokens
    assert not of_capture("decode", "jit_decode_step").makes_many_tokens


def test_positions_of_a_step() -> None:
    assert kind_of("speculative").positions_per_step == 4  # a draft of four, verified at once
    assert kind_of("prefill_static").positions_per_step == 128
    assert kind_of("paged_b8").positions_per_step == 1  # eight sequences, one position each
    assert of_capture("serve", "jit_prefill_chunk").positions_per_step == 256
    assert kind_of("sgd_scan").positions_per_step is None
