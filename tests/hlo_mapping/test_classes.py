"""Classes of launches. The programs' own scopes and names are the truth they are held against; the rules see neither."""

from __future__ import annotations

import pytest

from hlo_mapping.facts import module_facts
from hlo_mapping.text.parser import parse_module
from tests.hlo_mapping.hlo_samples import (
    PROGRAMS,
    captured_path,
    captured_rows,
    in_class,
    module,
    program,
    program_rows,
    rows,
    text,
    total,
    without_names,
)

CACHED = (
    ("decode", "jit_decode_step"),
    ("serve", "jit_decode_step"),
    ("serve", "jit_prefill_chunk"),
    ("cublas_nocb", "jit_decode_step"),
    ("cublas_nocb", "jit_prefill_chunk"),
    ("while_decode_nocb", "jit_generate"),
    ("decode_scan_nocb", "jit_decode_step"),
)
CAPTURED = (
    *CACHED,
    ("train", "jit_train_step"),
    ("train_host", "jit_train_step"),
    ("int8", "jit_quantized_mlp"),
    ("moe", "jit_moe_layer"),
    ("sharded_nocb", "jit_tp_mlp"),
    ("threads", "jit_right"),
)
SAME = ("kernel_class", "class_detail", "class_rule", "bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "flops")


@pytest.mark.parametrize(("capture", "name"), CACHED)
def test_classes_are_the_scopes_that_the_program_was_written_with(capture: str, name: str) -> None:
    wrong = []
    for instruction, row in captured_rows(capture, name).items():
        scope = next((s for s in ("kv_write", "kv_gather", "attention") if f"/{s}/" in (row["op_name"] or "")), None)
        if scope is not None and row["kernel_class"] != scope:
            wrong.append((instruction, row["op_name"], row["kernel_class"], row["class_detail"]))
    # What only moves activations, or computes with positions, serves a scope but is not its work
    assert [w for w in wrong if w[3] not in ("index",)] == []


@pytest.mark.parametrize(("capture", "name"), CACHED)
def test_products_of_the_program_are_weights(capture: str, name: str) -> None:
    wrong = [
        (n, row["kernel_class"])
        for n, row in captured_rows(capture, name).items()
        if (row["op_name"] or "").endswith(f"{name.replace('jit_', 'jit(')})/dot_general") and row["kernel_class"] != "weights"
    ]
    assert wrong == []


@pytest.mark.parametrize(("capture", "name"), CAPTURED)
def test_every_launch_has_a_class_and_a_rule(capture: str, name: str) -> None:
    for row in captured_rows(capture, name).values():
        assert row["kernel_class"] is not None
        assert row["class_rule"]


@pytest.mark.parametrize(("capture", "name"), CAPTURED)
def test_captured_programs_without_names_have_the_same_classes_and_bytes(capture: str, name: str) -> None:
    renamed = module_facts(parse_module(without_names(captured_path(capture, name).read_text())), 1).to_pylist()
    for mine, theirs in zip(captured_rows(capture, name).values(), renamed, strict=True):
        assert {k: mine[k] for k in SAME} == {k: theirs[k] for k in SAME}
        assert theirs["op_name"] is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_without_names_have_the_same_classes_and_bytes(name: str) -> None:
    renamed = module_facts(parse_module(without_names(text(name))), 1).to_pylist()
    for mine, theirs in zip(program_rows(name).values(), renamed, strict=True):
        assert {k: mine[k] for k in SAME} == {k: theirs[k] for k in SAME}


NO_CACHE = (
    "attention_only",
    "closed_over",
    "embedding_bag",
    "flash_scan",
    "fsdp",
    "gnn",
    "lora",
    "mixed_precision",
    "mlp_b1",
    "mlp_grads",
    "replay",
    "resnet_train",
    "rnn_train",
    "scan_train",
    "unet_attn",
    "whisper_enc",
    "convnet",
    "conv_train",
    "dp_train",
    "encoder",
    "fft",
    "grads_only",
    "gru_step",
    "int4",
    "lstm",
    "lstm_cond",
    "lstm_layers_state",
    "mamba_step",
    "mlp_sgd",
    "moe_decode",
    "packed4",
    "sampling",
    "sort_big",
    "transformer_train",
    "unet_like",
    "collectives",
    "index_array",
    "lstm_train_cond",
    "moe_dense",
    "moe_train",
    "offloaded",
    "shared_square",
)


ATTENDING = {"attention_only", "encoder", "flash_scan", "grads_only", "scan_train", "transformer_train", "unet_attn", "whisper_enc"}


@pytest.mark.parametrize("name", NO_CACHE)
def test_programs_without_a_cache_have_no_class_of_one(name: str) -> None:
    found = program_rows(name)
    assert not in_class(found, "kv_write") | in_class(found, "kv_gather")
    assert total(found, "kv_read_bytes") == total(found, "kv_write_bytes") == 0


@pytest.mark.parametrize("name", sorted(set(NO_CACHE) - ATTENDING))
def test_programs_without_attention_have_none(name: str) -> None:
    assert not in_class(program_rows(name), "attention")


def test_an_encoders_attention_is_found_by_its_two_products() -> None:
    found = program_rows("encoder")
    # per layer: scores, softmax, weighted sum
    assert in_class(found, "attention", "product") == {f"gemm_fusion_dot.{n}" for n in (22, 23, 24, 25)}
    assert in_class(found, "attention", "softmax") == {"fusion.73", "fusion.74"}
    assert total(found, "flops", kernel_class="attention") == 2 * 2 * (2 * 8 * 8 * 128 * 128 * 64)
    assert in_class(found, "weights", "embedding") == {"loop_add_fusion"}
    assert in_class(found, "other", "norm") == {"fusion.75", "fusion.76", "fusion.77", "fusion.78"}


def test_training_a_transformer() -> None:
    found = program_rows("transformer_train")
    # forward two products a layer, backward four: through the sum, the softmax's input, and to queries, keys and values
    assert len(in_class(found, "attention", "product")) == 2 * 6
    gradients = [r for r in found.values() if r["class_detail"] == "gradient" and r["dot_type"]]
    # q, k and v in one, o, up and down of each layer, and the head
    assert len(gradients) == 2 * 4 + 1
    tokens, width, layers = 8 * 128, 512, 2
    per_layer = 2 * tokens * width * (4 * width + 2 * 4 * width)
    assert total(found, "flops", class_detail="gradient") == layers * per_layer + 2 * 8 * width * 2
    assert total(found, "flops", kernel_class="weights") == 2 * layers * per_layer + 2 * (2 * 8 * width * 2)


def test_gradients_that_an_optimizer_elsewhere_takes_are_gradients() -> None:
    assert total(program_rows("grads_only"), "flops", class_detail="gradient") == total(
        program_rows("transformer_train"), "flops", class_detail="gradient"
    )


def test_stochastic_gradient_descent() -> None:
    found = program_rows("mlp_sgd")
    assert len(in_class(found, "other", "optimizer")) == 6  # a matrix and a vector of each of three layers
    assert total(found, "flops", class_detail="gradient") == 3 * 2 * 4096 * 1024 * 1024
    assert total(found, "flops", kernel_class="weights") == 5 * 2 * 4096 * 1024 * 1024
    # the update reads each parameter once
    assert total(found, "weight_bytes", class_detail="optimizer") == 3 * (1024 * 1024 + 1024) * 4


def test_data_parallel_training_sums_gradients_over_devices() -> None:
    found = program_rows("dp_train")
    assert in_class(found, "other", "collective") == {"all-reduce.11"}
    assert len(in_class(found, "other", "optimizer")) == 6
    assert total(found, "flops", class_detail="gradient") == 3 * 2 * 2048 * 1024 * 1024


def test_convolutions_are_weights_and_their_filters_gradients_are_not() -> None:
    found = program_rows("convnet")
    assert in_class(found, "weights", "convolution") == {"cudnn-conv.3", "cudnn-conv.4"}
    trained = program_rows("conv_train")
    assert in_class(trained, "weights", "convolution") == {"cudnn-conv.3", "cudnn-conv.4", "cudnn-conv-bw-input.1"}
    assert {"cudnn-conv-bw-filter.3", "cudnn-conv-bw-filter.4"} <= in_class(trained, "other", "gradient")


def test_states_of_recurrent_networks_are_no_caches() -> None:
    for name in ("lstm", "lstm_cond", "gru_step", "lstm_layers_state", "mamba_step"):
        found = program_rows(name)
        assert in_class(found, "weights")
        assert not in_class(found, "kv_write") | in_class(found, "kv_gather") | in_class(found, "attention")


def test_a_contiguous_cache() -> None:
    found = program_rows("contiguous_b1")
    assert in_class(found, "kv_write") == {f"loop_dynamic_update_slice_fusion{n}" for n in ("", ".1", ".2", ".3")}
    # two layers, keys and values, one position of 4 heads of 128 in bf16
    assert total(found, "kv_write_bytes") == 2 * 2 * 4 * 128 * 2
    # attention reads the whole of both caches: 512 positions
    assert total(found, "kv_read_bytes") == 2 * 2 * 512 * 4 * 128 * 2
    assert total(found, "kv_read_bytes", kernel_class="attention") == total(found, "kv_read_bytes")


def test_copies_of_caches_are_copies() -> None:
    found = program_rows("contiguous")
    copies = in_class(found, "other", "copy")
    assert len(copies) == 8  # a change of layout and a copy for keys and values of two layers
    assert total(found, "bytes_accessed", class_detail="copy") == 8 * 2 * (4 * 512 * 4 * 128 * 2)
    assert total(found, "kv_read_bytes", class_detail="copy") == 0


def test_a_cache_in_eight_bits() -> None:
    found = program_rows("kv_fp8")
    assert total(found, "kv_read_bytes") == 2 * 2 * 4 * 512 * 4 * 128
    assert {r["dot_type"] for r in found.values() if r["kernel_class"] == "attention" and r["dot_type"]} == {
        "f8e4m3fn,bf16->f32",
        "f8e4m3fn,bf16->bf16",
    }


def test_a_cache_that_slides() -> None:
    found = program_rows("sliding_roll")
    assert len(in_class(found, "kv_write")) == 4
    # one new position of four sequences; the rest of what is written is the window moved by one
    assert total(found, "kv_write_bytes") == 2 * 2 * 4 * 4 * 128 * 2
    assert total(found, "bytes_accessed", kernel_class="kv_write") > 2 * 2 * 2 * (4 * 511 * 4 * 128 * 2)


def test_verifying_drafted_tokens_writes_several_positions() -> None:
    found = program_rows("speculative")
    assert total(found, "kv_write_bytes") == 2 * 2 * 4 * (4 * 128 * 2)
    assert len(in_class(found, "other", "sampling")) == 2


def test_caches_in_a_loop_over_layers() -> None:
    found = program_rows("scan_layers_decode")  # one iteration: one layer
    assert total(found, "kv_write_bytes") == 2 * 2 * 4 * 128 * 2
    assert total(found, "kv_read_bytes") == 2 * 2 * 512 * 4 * 128 * 2
    assert total(found, "weight_bytes") == (4 * 512 * 512 + 2 * 512 * 2048) * 2 + 512 * 2


def test_a_cache_made_inside_the_program() -> None:
    found = program_rows("generate_fresh")
    assert in_class(found, "kv_write") == {"loop_dynamic_update_slice_fusion", "loop_dynamic_update_slice_fusion.1"}
    assert total(found, "kv_write_bytes") == 2 * 2 * 4 * 128 * 2
    # the loop's buffer of tokens is none
    assert found["loop_dynamic_update_slice_fusion.2"]["kernel_class"] == "other"


def test_keys_and_values_that_are_only_read() -> None:
    found = program_rows("cross_attention")
    assert total(found, "kv_read_bytes") == 2 * 4 * 256 * 8 * 64 * 2
    assert not in_class(found, "kv_write")
    assert {r["kernel_class"] for r in found.values() if r["kv_read_bytes"]} == {"attention"}


def test_experts_looked_up_by_a_router_are_weights() -> None:
    found = program_rows("moe_decode")
    # two tokens take two experts each, of two matrices of 1024 x 2048
    assert total(found, "weight_bytes", kernel_class="weights") == 2 * 2 * 2 * 1024 * 2048 * 2 + (1024 * 8 + 1024) * 2


def test_packed_weights_are_read_in_four_bits() -> None:
    for name in ("int4", "packed4"):
        found = program_rows(name)
        converted = [r for r in found.values() if r["class_detail"] == "convert"]
        assert len(converted) == 2
        scales = 2 * 32 * 4096 * 2 if name == "int4" else 0
        assert sum(r["weight_bytes"] for r in converted) == 2 * 4096 * 4096 // 2 + scales


def test_sampling_sorting_and_transforms() -> None:
    sampling = {r["class_detail"] for r in program_rows("sampling").values()}
    assert sampling >= {"random", "sort", "sampling"}
    assert {r["kernel_class"] for r in program_rows("sampling").values()} == {"other"}
    assert in_class(program_rows("sort_big"), "other", "sort") == {"fusion", "fusion.1"}
    assert in_class(program_rows("fft"), "other", "fft") == {"fft.0.0", "fft.2.0"}


def test_a_call_that_takes_a_cache_is_attention_and_one_that_takes_a_parameter_weights() -> None:
    found = rows(
        module(
            """%x = bf16[8,1024] parameter(0)
            %wq = bf16[1024,1024] parameter(1)
            %cache = bf16[8,512,8,128] parameter(2)
            %new = bf16[8,1,8,128] parameter(3)
            %at = s32[] parameter(4)
            %wo = bf16[1024,1024] parameter(5)
            %zero = s32[] constant(0)
            %q = bf16[8,1024] dot(%x, %wq), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            %heads = bf16[8,8,128] bitcast(%q)
            %updated = bf16[8,512,8,128] dynamic-update-slice(%cache, %new, %zero, %at, %zero, %zero)
            %attn = bf16[8,8,128] custom-call(%heads, %updated, %at), custom_call_target="anything"
            %flat = bf16[8,1024] bitcast(%attn)
            %proj = bf16[8,1024] custom-call(%flat, %wo), custom_call_target="anything_else"
            ROOT %t = (bf16[8,1024], bf16[8,512,8,128]) tuple(%proj, %updated)"""
        )
    )
    assert found["attn"]["kernel_class"] == "attention"
    assert found["proj"]["kernel_class"] == "weights"
    assert found["proj"]["weight_bytes"] == 1024 * 1024 * 2
    assert found["updated"]["kv_write_bytes"] == 8 * 8 * 128 * 2


def test_a_call_of_queries_keys_and_values_is_attention() -> None:
    entry = """%q = bf16[4,8,256,64] parameter(0)
    %k = bf16[4,8,256,64] parameter(1)
    %v = bf16[4,8,256,64] parameter(2)
    ROOT %attn = bf16[4,8,256,64] custom-call(%q, %k, %v), custom_call_target="anything\""""
    row = rows(module(entry))["attn"]
    assert (row["kernel_class"], row["bytes_accessed"]) == ("attention", 4 * (4 * 8 * 256 * 64 * 2))


def test_a_program_without_names_has_classes_too() -> None:
    assert {r["kernel_class"] for r in rows(program("contiguous")).values()} == {"weights", "kv_write", "attention", "other"}


def test_a_cache_whose_rows_change_places_with_the_beams() -> None:
    found = program_rows("beam")
    assert total(found, "kv_write_bytes") == 2 * 4 * 8 * 64 * 2
    assert in_class(found, "kv_gather") == {"loop_gather_fusion"}
    assert total(found, "kv_read_bytes", kernel_class="attention") == 2 * 4 * 256 * 8 * 64 * 2
    assert in_class(found, "other", "copy") == {"copy.4", "copy.5"}


def test_a_cache_in_eight_bits_with_a_scale_for_each_entry() -> None:
    found = program_rows("kv_int8")
    entries = 4 * 512 * 8
    assert total(found, "kv_read_bytes", kernel_class="attention") == 2 * entries * (64 + 4)
    assert total(found, "kv_write_bytes") == 2 * 4 * 8 * (64 + 4)


def test_a_cache_of_latent_vectors() -> None:
    absorbed = program_rows("mla_absorbed")
    # read for the scores and for the sum
    assert total(absorbed, "kv_read_bytes", kernel_class="attention") == 2 * 4 * 512 * 256 * 2
    assert total(absorbed, "kv_write_bytes") == 4 * 256 * 2
    naive = program_rows("mla_naive")
    # read once, to be multiplied with the matrices that make keys and values of it
    assert total(naive, "kv_read_bytes", kernel_class="weights") == 4 * 512 * 256 * 2
    assert len(in_class(naive, "attention")) == 5


def test_pages_of_several_sequences() -> None:
    found = program_rows("paged_b8")
    assert in_class(found, "kv_write") == {f"input_scatter_fusion{n}" for n in ("", ".1", ".2", ".3")}
    assert total(found, "kv_write_bytes") == 2 * 2 * 8 * (4 * 128 * 2)
    assert total(found, "kv_read_bytes", kernel_class="kv_gather") == 2 * 2 * 8 * 8 * 16 * (4 * 128 * 2)
    assert total(found, "kv_read_bytes") == total(found, "kv_read_bytes", kernel_class="kv_gather")


def test_attention_in_blocks_with_a_running_softmax() -> None:
    found = program_rows("flash_scan")
    assert in_class(found, "attention", "product") == {"gemm_fusion_dot.6", "gemm_fusion_dot.7"}
    # one block of 256 keys of 2048 queries
    assert total(found, "flops", kernel_class="attention") == 2 * 2 * 8 * 2048 * 256 * 64
    assert {"loop_add_fusion", "loop_maximum_fusion"} <= in_class(found, "attention", "softmax")


def test_attention_by_itself() -> None:
    found = program_rows("attention_only")
    assert not in_class(found, "weights")
    assert total(found, "flops", kernel_class="attention") == 2 * 2 * 2 * 8 * 512 * 512 * 64


def test_training_through_a_loop_over_layers() -> None:
    found = program_rows("scan_train")
    tokens, width = 4 * 64, 256
    layer = 2 * tokens * width * (4 * width + 2 * 4 * width)
    # one iteration of the backward loop, and the head's gradient
    assert total(found, "flops", class_detail="gradient") == layer + 2 * tokens * width * 1000
    assert len(in_class(found, "other", "optimizer")) == 9


def test_training_a_recurrent_network() -> None:
    found = program_rows("rnn_train")
    assert {"gemm_fusion_dot.2", "gemm_fusion_dot.3"} <= in_class(found, "other", "gradient")
    assert len(in_class(found, "other", "optimizer")) == 3


def test_running_statistics_are_state_and_their_update_no_weight() -> None:
    found = program_rows("resnet_train")
    assert in_class(found, "weights", "convolution") == {"cudnn-conv.1"}
    assert "cudnn-conv-bw-filter.1" in in_class(found, "other", "gradient")


def test_graph_networks_gather_and_scatter_activations() -> None:
    found = program_rows("gnn")
    assert len(in_class(found, "other", "gather")) == len(in_class(found, "other", "scatter")) == 2
    assert total(found, "flops", kernel_class="weights") == 2 * (1000 * 128 * (64 + 2 * 128 + 7) + 2 * 5000 * 128 * 128)


def test_drafting_and_verifying_in_one_loop() -> None:
    found = program_rows("spec_loop")
    # both models write one position of two layers
    assert total(found, "kv_write_bytes") == 2 * 2 * 2 * (4 * 128 * 2)
    assert total(found, "kv_read_bytes", kernel_class="attention") == 2 * 2 * 2 * 512 * 4 * 128 * 2


def test_weights_in_parts_on_two_devices() -> None:
    found = program_rows("fsdp")
    assert len(in_class(found, "other", "collective")) == 3
    assert total(found, "flops", kernel_class="weights") == 5 * 2 * 1024 * 1024 * 1024
    assert total(found, "flops", class_detail="gradient") == 3 * 2 * 1024 * 1024 * 1024
    decode = program_rows("tp_decode")
    assert len(in_class(decode, "other", "collective")) == 4
    assert total(decode, "kv_read_bytes", kernel_class="attention") == 2 * 2 * 4 * 512 * 2 * 128 * 2


def test_bags_of_embeddings_are_embeddings() -> None:
    found = program_rows("embedding_bag")
    assert total(found, "weight_bytes", class_detail="embedding") == 4 * 32 * 20 * 64 * 4


def test_masked_writes_of_a_whole_cache_write_one_entry() -> None:
    found = program_rows("one_hot_write")
    assert total(found, "kv_write_bytes") == 2 * 4 * 8 * 64 * 2


def test_a_prompt_that_fills_the_start_of_a_cache_writes_it() -> None:
    found = program_rows("prefill_static")
    assert total(found, "kv_write_bytes") == 2 * 2 * 128 * 8 * 64 * 2
    assert total(found, "kv_read_bytes") == 0


def test_entries_put_into_a_servers_cache() -> None:
    found = program_rows("insert_cache")
    assert {r["kernel_class"] for r in found.values()} == {"kv_write"}
    assert total(found, "kv_write_bytes") == 4 * 512 * 8 * 64 * 2


def test_a_window_of_a_longer_cache_is_all_that_is_read() -> None:
    found = program_rows("window_decode")
    assert total(found, "kv_read_bytes") == 2 * 2 * 256 * 8 * 64 * 2
    assert total(found, "kv_write_bytes") == 2 * 2 * 8 * 64 * 2


def test_parameters_folded_into_the_program_are_weights() -> None:
    found = program_rows("closed_over")
    assert total(found, "weight_bytes") == (512 * 512 + 512 * 64) * 4
    assert {r["kernel_class"] for r in found.values()} == {"weights"}


def test_gradients_alone_tell_weights_from_inputs() -> None:
    found = program_rows("mlp_grads")
    assert total(found, "flops", class_detail="gradient") == 3 * 2 * 4096 * 1024 * 1024
    assert total(found, "flops", kernel_class="weights") == 5 * 2 * 4096 * 1024 * 1024


def test_weights_of_another_type_than_their_products() -> None:
    found = program_rows("mixed_precision")
    assert total(found, "weight_bytes") == (2 * 1024 * 1024 + 1024 * 1000) * 4
    assert {r["dot_type"] for r in found.values() if r["dot_type"]} >= {"f32,f32->f32"}


@pytest.mark.parametrize(("name", "layers"), [("jit_left", 4), ("jit_right", 6)])
def test_square_weights_used_layer_after_layer_are_no_input(name: str, layers: int) -> None:
    found = captured_rows("threads", name)
    assert total(found, "weight_bytes") == layers * 4096 * 4096 * 2
    assert {r["kernel_class"] for r in found.values()} == {"weights"}
    assert total(found, "flops") == layers * 2 * 8 * 4096 * 4096


def test_rows_that_a_one_hot_matrix_picks_are_no_weights() -> None:
    # 128 tokens of width 512, 8 experts of 512 x 1024, 32 places each
    found = program_rows("moe_dense")
    assert total(found, "weight_bytes") == 512 * 8 * 4 + 8 * (512 * 1024 + 1024 * 512) * 2
    assert total(found, "flops", class_detail="gradient") == 0
    assert total(found, "flops", kernel_class="weights") == 2 * 128 * 512 * 8 + 2 * 8 * 32 * (512 * 1024 + 1024 * 512)


def test_updates_of_a_copied_parameter_are_the_optimizers() -> None:
    # p - 0.1 g in bf16: each of two matrices of 8 x 512 x 1024 is read with its gradient and written
    found = program_rows("moe_train")
    assert total(found, "bytes_accessed", class_detail="optimizer") == 2 * 3 * 8 * 512 * 1024 * 2


def test_training_a_recurrent_cell_attends_to_nothing() -> None:
    found = program_rows("lstm_train_cond")
    assert "attention" not in {r["kernel_class"] for r in found.values()}
    # of one step: the input's and the state's products forwards, the state's backwards, and the conditional product both ways
    assert total(found, "flops", kernel_class="weights") == 2 * 8 * 256 * (1024 + 1024 + 1024 + 256 + 256)


def test_weights_in_host_memory_are_read_from_the_copy_that_is_brought_in() -> None:
    found = program_rows("offloaded")
    assert total(found, "weight_bytes", class_detail="product") == 4 * 1024 * 1024 * 2
    assert total(found, "weight_bytes", class_detail="copy") == 0


def test_a_program_of_one_array_has_no_weights() -> None:
    found = program_rows("collectives")
    assert {r["kernel_class"] for r in found.values()} == {"other"}
    assert "rope" not in {r["class_detail"] for r in found.values()}


def test_indexing_an_array_looks_nothing_up_in_a_model() -> None:
    (row,) = program_rows("index_array").values()
    assert (row["kernel_class"], row["class_detail"], row["weight_bytes"]) == ("other", "slice", 0)


def test_entries_are_written_once_though_two_copies_take_them() -> None:
    # three layers, two sequences, keys and values of 2 heads of 128 in bf16; 512 places
    found = program_rows("sliding_relayout")
    assert total(found, "kv_write_bytes") == 3 * 2 * (2 * 2 * 128) * 2
    assert total(found, "kv_read_bytes") == 3 * 2 * (2 * 512 * 2 * 128) * 2


def test_a_layers_part_of_a_cache_is_read_once() -> None:
    # of one layer: 4 sequences, 256 places, 4 heads of 128, keys and values in bf16, sliced out of all layers' cache before they are used
    found = program_rows("scan_cache")
    assert total(found, "kv_read_bytes") == total(found, "kv_read_bytes", kernel_class="kv_gather") == 2 * 4 * 256 * 4 * 128 * 2
    assert total(found, "kv_write_bytes") == 2 * 4 * 4 * 128 * 2


def test_a_cache_in_another_order_is_a_new_version_of_it() -> None:
    # keys and values of 4 beams, 256 places and 8 heads of 64 in bf16 are read and written
    (row,) = (r for r in program_rows("beam").values() if r["class_detail"] == "reorder")
    assert (row["kernel_class"], row["kv_read_bytes"]) == ("kv_gather", 2 * 4 * 256 * 8 * 64 * 2)
    assert row["bytes_accessed"] == pytest.approx(2 * row["kv_read_bytes"], rel=1e-4)


def test_what_a_collective_gathers_together_stays_apart() -> None:
    found = rows(
        module(
            """%x = f32[8,64]{1,0} parameter(0)
            %w = f32[32,16]{1,0} parameter(1)
            %v = f32[64,64]{1,0} parameter(2)
            %h = f32[8,64]{1,0} dot(%x, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            %all = (f32[16,64]{1,0}, f32[64,16]{1,0}) all-gather(%h, %w), dimensions={0}, replica_groups={{0,1}}
            %g = f32[16,64]{1,0} get-tuple-element(%all), index=0
            %u = f32[64,16]{1,0} get-tuple-element(%all), index=1
            ROOT %y = f32[16,16]{1,0} dot(%g, %u), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
        )
    )
    assert [found[n]["kernel_class"] for n in ("h", "all", "y")] == ["weights", "other", "weights"]


def test_the_root_of_an_error_is_no_norm() -> None:
    """An adaptive step's error is a root of a mean, and scales a step size alone; a power iteration's root scales the vector."""
    assert in_class(program_rows("ode"), "other", "norm") == set()
    assert len(in_class(program_rows("power_iteration"), "other", "norm")) == 1
