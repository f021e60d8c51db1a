"""What kind of program a module is, against what its author says that it does; with names of operations and without."""

from __future__ import annotations

import functools

import pytest

from hlo_mapping.classification.roles import parameter_roles
from hlo_mapping.facts import analyze_module
from hlo_mapping.program_kind import ProgramKind
from hlo_mapping.text.parser import parse_module
from tests.hlo_mapping.hlo_samples import captured, in_class, program, program_rows, text, without_names

DECODING = """beam big_decode contiguous contiguous_b1 generate_fresh kv_fp8 kv_int8 mla_absorbed mla_naive one_hot_write paged_b8
    scan_cache scan_layers_decode sliding_relayout sliding_roll spec_loop speculative tied tp_decode window_decode cross_attention
    generate_stacked soft_capped"""
PREFILL = "prefill_static prefill"
TRAINING = """conv_train dp_train fsdp grads_only lstm_train_cond mlp_grads mlp_sgd moe_train resnet_train rnn_train
    scan_train transformer_train sgd_scan gnn_train vit_remat gan_train muon contrastive recommender table_sgd"""
INFERENCE = """closed_over convnet embedding_bag encoder flash_scan gnn gru_step int4 lora lstm lstm_cond mamba_step mixed_precision mlp_b1
    moe_decode moe_dense offloaded packed4 unet_attn unet_like whisper_enc ranking retention"""
OTHER = "n_body attention_only collectives fft index_array insert_cache sort_big hmc power_iteration ode chains"
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


@pytest.mark.parametrize("name", ["hmc", "chains", "power_iteration", "ode", "n_body"])
def test_what_iterates_without_a_model_has_no_weights(name: str) -> None:
    assert not kind_of(name).has_weights
    assert in_class(program_rows(name), "weights") == set()
    assert {p.role for p in parameter_roles(program(name))} <= {"input", "state"}


def test_a_recurrent_cell_of_one_matrix_is_a_model() -> None:
    """What tells it from a power iteration is that a layer's activation follows the product."""
    cell = """
HloModule m, is_scheduled=true

%tanh (p: f32[64]) -> f32[64] {
  %p = f32[64] parameter(0)
  ROOT %t = f32[64] BEND(%p)
}

%body (s: (s32[], f32[64,64], f32[64])) -> (s32[], f32[64,64], f32[64]) {
  %s = (s32[], f32[64,64], f32[64]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = f32[64,64] get-tuple-element(%s), index=1
  %h = f32[64] get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %dot = f32[64] dot(%w, %h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %new = f32[64] fusion(%dot), kind=kLoop, calls=%tanh
  ROOT %t = (s32[], f32[64,64], f32[64]) tuple(%next, %w, %new)
}

%cond (s: (s32[], f32[64,64], f32[64])) -> pred[] {
  %s = (s32[], f32[64,64], f32[64]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(9)
  ROOT %l = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (w: f32[64,64], h: f32[64]) -> (s32[], f32[64,64], f32[64]) {
  %w = f32[64,64] parameter(0)
  %h = f32[64] parameter(1)
  %z = s32[] constant(0)
  %t = (s32[], f32[64,64], f32[64]) tuple(%z, %w, %h)
  ROOT %while = (s32[], f32[64,64], f32[64]) while(%t), condition=%cond, body=%body
}
"""
    assert {op: _role_of_first(cell.replace("BEND", op)) for op in ("tanh", "negate")} == {"tanh": "weight", "negate": "input"}


def _role_of_first(source: str) -> str:
    return parameter_roles(parse_module(source))[0].role


@pytest.mark.parametrize("name", ["kalman", "kmeans"])
def test_filters_and_clusterings_have_no_weights(name: str) -> None:
    assert (kind_of(name).kind, kind_of(name).has_weights) == ("other", False)


def test_retrieval_makes_no_tokens() -> None:
    found = kind_of("retrieval")
    assert (found.kind, found.is_language_model, found.samples_tokens) == ("inference", False, False)


def test_a_recurrent_language_model_decodes() -> None:
    found = kind_of("gru_lm")
    assert (found.kind, found.is_language_model, found.has_kv_cache) == ("decoding", True, False)


def test_gradients_that_loops_sum_up_are_told_by_their_shapes() -> None:
    """A loop whose backward pass adds to a matrix's gradient in each iteration, and returns it beside no update."""
    source = """
HloModule m, is_scheduled=true

%bend (p: f32[8,64]) -> f32[8,64] {
  %p = f32[8,64] parameter(0)
  ROOT %t = f32[8,64] tanh(%p), metadata={op_name="jit(f)/jvp()/tanh"}
}

%body (s: (s32[], f32[64,64], f32[8,64], f32[64,64])) -> (s32[], f32[64,64], f32[8,64], f32[64,64]) {
  %s = (s32[], f32[64,64], f32[8,64], f32[64,64]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = f32[64,64] get-tuple-element(%s), index=1
  %h = f32[8,64] get-tuple-element(%s), index=2
  %g = f32[64,64] get-tuple-element(%s), index=3
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %dot = f32[8,64] dot(%h, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %new = f32[8,64] fusion(%dot), kind=kLoop, calls=%bend
  %part = f32[64,64] dot(%h, %new), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/transpose(jvp())/dot"}
  %sum = f32[64,64] add(%g, %part), metadata={op_name="jit(f)/transpose(jvp())/add_any"}
  ROOT %t = (s32[], f32[64,64], f32[8,64], f32[64,64]) tuple(%next, %w, %new, %sum)
}

%cond (s: (s32[], f32[64,64], f32[8,64], f32[64,64])) -> pred[] {
  %s = (s32[], f32[64,64], f32[8,64], f32[64,64]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(9)
  ROOT %l = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (w: f32[64,64], h: f32[8,64], g: f32[64,64]) -> f32[64,64] {
  %w = f32[64,64] parameter(0)
  %h = f32[8,64] parameter(1)
  %z = s32[] constant(0)
  %f = f32[] constant(0)
  %g = f32[64,64] broadcast(%f), dimensions={}
  %t = (s32[], f32[64,64], f32[8,64], f32[64,64]) tuple(%z, %w, %h, %g)
  %while = (s32[], f32[64,64], f32[8,64], f32[64,64]) while(%t), condition=%cond, body=%body
  ROOT %gradient = f32[64,64] get-tuple-element(%while), index=3
}
"""
    found = analyze_module(parse_module(source.replace(", g: f32[64,64]) -> f32[64,64] {", ") -> f32[64,64] {")), 1).kind
    assert found is not None and found.kind == "training"
