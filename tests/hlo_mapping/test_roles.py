"""Roles of parameters, from dataflow alone, in programs of many kinds. The names in the expectations are the programs' own."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase

import pytest

from hlo_mapping.classification.roles import parameter_roles
from hlo_mapping.ir import Module
from hlo_mapping.text.parser import parse_module
from tests.hlo_mapping.hlo_samples import PROGRAMS, captured, module, program, text, without_names

DECODER = {"params_*": "weight", "cache_*": "kv_cache", "tok*": "input", "pos*": "input"}
EXPECTED: dict[str, dict[str, str]] = {
    "attention_only": {"*": "input"},
    "beam": {"p_*": "weight", "K.*": "kv_cache", "Vc*": "kv_cache", "*": "input"},
    "big_decode": {"params_*": "weight", "pool_*": "kv_cache", "*": "input"},
    "closed_over": {"*": "input"},
    "collectives": {"*": "input"},
    "contiguous": DECODER,
    "contiguous_b1": DECODER,
    "conv_train": {"p_*": "weight", "*": "input"},
    "convnet": {"p_*": "weight", "x.*": "input"},
    "cross_attention": {"p_*": "weight", "ek.*": "kv_cache", "ev.*": "kv_cache", "x.*": "input"},
    "embedding_bag": {"tables*": "weight", "w_*": "weight", "*": "input"},
    "encoder": {"params_*": "weight", "*": "input"},
    "fft": {"*": "input"},
    "flash_scan": {"p_*": "weight", "x.*": "input"},
    "generate_fresh": {"params_*": "weight", "toks*": "input"},
    "gnn": {"p_*": "weight", "*": "input"},
    "grads_only": {"params_*": "weight", "*": "input"},
    "gru_step": {"W_*": "weight", "U_*": "weight", "h.*": "state", "x.*": "input"},
    "index_array": {"*": "input"},
    "insert_cache": {"cache_*": "kv_cache", "*": "input"},
    "int4": {"W_*": "weight", "x.*": "input"},
    "kv_fp8": DECODER,
    "kv_int8": {"p_*": "weight", "c_*": "kv_cache", "*": "input"},
    "lora": {"W_*": "weight", "A.*": "weight", "Bm*": "weight", "*": "input"},
    "lstm": {"params_*": "weight", "h.*": "state", "c.*": "state", "xs.*": "input"},
    "lstm_cond": {"params_*": "weight", "h.*": "state", "c.*": "state", "*": "input"},
    "lstm_layers_state": {"W_*": "weight", "h.*": "state"},
    "lstm_train_cond": {"P_*": "weight", "xs.*": "input"},
    "mamba_step": {"p_*": "weight", "conv.*": "state", "state.*": "state", "x.*": "input"},
    "mixed_precision": {"p_*": "weight", "x.*": "input"},
    "mla_absorbed": {"p_*": "weight", "C.*": "kv_cache", "*": "input"},
    "mla_naive": {"p_*": "weight", "C.*": "kv_cache", "*": "input"},
    "mlp_b1": {"W_*": "weight", "x.*": "input"},
    "mlp_grads": {"W_*": "weight", "*": "input"},
    "mlp_sgd": {"W_*": "weight", "*": "input"},
    "moe_decode": {"p_*": "weight"},
    "moe_dense": {"P_*": "weight", "x.*": "input"},
    "moe_train": {"P_*": "weight", "x.*": "input"},
    "offloaded": {"Ws_*": "weight", "x.*": "input"},
    "one_hot_write": {"p_*": "weight", "K.*": "kv_cache", "V.*": "kv_cache", "*": "input"},
    "packed4": {"W_*": "weight", "x.*": "input"},
    "paged_b8": {"params_*": "weight", "pool_*": "kv_cache", "*": "input"},
    "prefill_static": {"p_*": "weight", "K.*": "kv_cache", "V.*": "kv_cache", "x.*": "input"},
    "replay": {"p_*": "weight", "buf*": "state", "*": "input"},
    "resnet_train": {"p_*": "weight", "st_*": "state", "mom_*": "state", "*": "input"},
    "rnn_train": {"P_*": "weight", "*": "input"},
    "sampling": {"*": "input"},
    "scan_cache": {"P_*": "weight", "C_*": "kv_cache", "*": "input"},
    "scan_layers_decode": {"p_*": "weight", "K.*": "kv_cache", "V.*": "kv_cache", "pos*": "input"},
    "scan_train": {"P_*": "weight", "M_*": "state", "V_*": "state", "*": "input"},
    "shared_square": {"b.*": "weight", "a.*": "input"},
    "sliding_relayout": {"P_*": "weight", "C_*": "kv_cache", "*": "input"},
    "sliding_roll": DECODER,
    "sort_big": {"*": "input"},
    "spec_loop": {"tp_*": "weight", "dp_*": "weight", "tc_*": "kv_cache", "dc_*": "kv_cache", "*": "input"},
    "speculative": {"params_*": "weight", "cache_*": "kv_cache", "*": "input"},
    "tied": DECODER,
    "transformer_train": {"params_*": "weight", "m_*": "state", "v_*": "state", "step*": "state", "*": "input"},
    "unet_attn": {"p_*": "weight", "*": "input"},
    "unet_like": {"p_*": "weight", "*": "input"},
    "whisper_enc": {"p_*": "weight", "mel*": "input"},
    "window_decode": {"p_*": "weight", "K.*": "kv_cache", "V.*": "kv_cache", "*": "input"},
}


def roles_of(found: Module) -> dict[str, str]:
    return {r.name: r.role for r in parameter_roles(found)}


@pytest.mark.parametrize("name", EXPECTED)
def test_roles_follow_from_use(name: str) -> None:
    for parameter, role in roles_of(program(name)).items():
        expected = next((r for pattern, r in EXPECTED[name].items() if fnmatchcase(parameter, pattern)), None)
        if expected is not None:
            assert role == expected, parameter


@pytest.mark.parametrize("name", PROGRAMS)
def test_roles_do_not_change_with_the_names(name: str) -> None:
    named = [r.role for r in parameter_roles(program(name))]
    assert [r.role for r in parameter_roles(parse_module(without_names(text(name))))] == named


def test_data_parallel_training_has_the_weights_of_training_on_one_device() -> None:
    # parameters 0-5 are the layers', 6 and 7 the device's share of inputs and targets
    assert [r.role for r in parameter_roles(program("dp_train"))] == ["weight"] * 6 + ["input"] * 2


def test_weights_that_every_device_holds_a_part_of_are_weights() -> None:
    # fsdp: three matrices, each gathered before it is used; tp_decode: 21 parameters and four shares of caches
    assert [r.role for r in parameter_roles(program("fsdp"))] == ["weight"] * 3 + ["input"] * 2
    assert [r.role for r in parameter_roles(program("tp_decode"))] == ["weight"] * 21 + ["kv_cache"] * 4 + ["input"] * 2


CAPTURED = {
    ("decode", "jit_decode_step"): {"weight": 57, "kv_cache": 12, "input": 3},
    ("serve", "jit_prefill_chunk"): {"weight": 57, "kv_cache": 12, "input": 3},
    ("decode_scan_nocb", "jit_decode_step"): {"weight": 12, "kv_cache": 2, "input": 3},
    ("while_decode_nocb", "jit_generate"): {"weight": 57, "kv_cache": 12, "input": 4},
    ("cublas_nocb", "jit_decode_step"): {"weight": 57, "kv_cache": 12, "input": 3},
    ("train", "jit_train_step"): {"weight": 8, "state": 16, "input": 2},
    ("train_host", "jit_train_step"): {"weight": 8, "state": 16, "input": 2},
    ("int8", "jit_quantized_mlp"): {"weight": 16, "input": 1},
    ("moe", "jit_moe_layer"): {"weight": 3, "input": 1},
    ("sharded_nocb", "jit_tp_mlp"): {"weight": 12, "input": 1},
    ("threads", "jit_left"): {"weight": 1, "input": 1},
}


@pytest.mark.parametrize(("capture", "name"), CAPTURED)
def test_roles_of_captured_programs(capture: str, name: str) -> None:
    assert Counter(r.role for r in parameter_roles(captured(capture, name))) == CAPTURED[capture, name]


def test_trained_parameters_take_the_bytes_that_the_programs_shapes_say() -> None:
    for capture in ("train", "train_host"):
        found = parameter_roles(captured(capture, "jit_train_step"))
        assert sum(r.bytes for r in found if r.role == "weight") == 4 * (2048 * 2048 + 2048) * 4 == 67_141_632
        assert sum(r.bytes for r in found if r.role == "state") == 2 * 67_141_632


def test_what_is_said_of_a_parameter() -> None:
    cache = next(r for r in parameter_roles(captured("decode", "jit_decode_step")) if r.role == "kv_cache")
    assert (cache.number, cache.index, cache.bytes, cache.donated) == (57, (), 1024 * 16 * 8 * 128 * 2, True)
    assert cache.why == "written in part and returned, read by attention"


WRITE = """%cache = f32[4,512,8,64] parameter(0)
%new = f32[4,1,8,64] parameter(1)
%at = s32[] parameter(2)
%zero = s32[] constant(0)
ROOT %k = f32[4,512,8,64] dynamic-update-slice(%cache, %new, %zero, %at, %zero, %zero)"""


def test_a_buffer_written_at_a_given_place_and_returned_is_a_cache_even_if_nothing_reads_it() -> None:
    assert roles_of(module(WRITE))["cache"] == "kv_cache"


def test_a_buffer_written_but_not_returned_is_none() -> None:
    assert roles_of(module(WRITE.replace("ROOT ", "") + "\nROOT %n = f32[] constant(0)"))["cache"] == "input"


def test_a_buffer_of_tokens_is_state() -> None:
    found = roles_of(
        module(
            """%out = s32[4,512] parameter(0)
            %token = s32[4,1] parameter(1)
            %at = s32[] parameter(2)
            %zero = s32[] constant(0)
            ROOT %k = s32[4,512] dynamic-update-slice(%out, %token, %zero, %at)""",
            header=", input_output_alias={ {}: (0, {}, may-alias) }",
        )
    )
    assert found["out"] == "state"


TARGETS = """HloModule m, is_scheduled=true
ENTRY %e (w: f32[64,SIDE], x: f32[1000,32], y: f32[1000,SIDE], b: f32[SIDE], first: f32[32,64]) -> f32[1000,SIDE] {
  %w = f32[64,SIDE] parameter(0)
  %x = f32[1000,32] parameter(1)
  %y = f32[1000,SIDE] parameter(2)
  %b = f32[SIDE] parameter(3)
  %first = f32[32,64] parameter(4)
  %hidden = f32[1000,64] dot(%x, %first), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %active = f32[1000,64] tanh(%hidden)
  %dot = f32[1000,SIDE] dot(%active, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %spread = f32[1000,SIDE] broadcast(%b), dimensions={1}
  %made = f32[1000,SIDE] add(%dot, %spread)
  ROOT %error = f32[1000,SIDE] subtract(%made, %y)
}
"""


@pytest.mark.parametrize("side", [1, 8])
def test_targets_that_a_prediction_is_compared_with_are_no_bias(side: int) -> None:
    """One target or eight for each of a thousand rows: none is spread over the rows, as the bias is."""
    found = {r.name: r.role for r in parameter_roles(parse_module(TARGETS.replace("SIDE", str(side))))}
    assert (found["w"], found["x"], found["y"]) == ("weight", "input", "input")
    assert found["b"] == "weight" or side == 1, "a single number tells nothing"
