"""Programs that look like decoders or attention and are not, and caches that do not look like caches: the truth of each is known."""

from __future__ import annotations

import pytest

from tests.hlo_mapping.hlo_samples import Row, in_class, program_rows, total


def of(name: str, kernel_class: str, detail: str | None = None) -> list[Row]:
    """The rows of a program that are of a class."""
    rows = program_rows(name)
    return [rows[n] for n in sorted(in_class(rows, kernel_class, detail))]


@pytest.mark.parametrize("name", ["muon", "contrastive", "recommender", "n_body", "retention"])
def test_products_without_a_softmax_between_them_are_no_attention(name: str) -> None:
    """Newton-Schulz on a momentum, similarities under a loss, interactions of features, distances, and a recurrent state."""
    assert not in_class(program_rows(name), "attention")


@pytest.mark.parametrize("name", ["muon", "contrastive", "recommender", "n_body", "retention", "vit_train"])
def test_what_no_attention_reads_is_no_cache(name: str) -> None:
    rows = program_rows(name)
    assert not in_class(rows, "kv_write") and not in_class(rows, "kv_gather")


def test_bodies_are_a_state_and_no_weights() -> None:
    rows = program_rows("n_body")
    assert not in_class(rows, "weights")
    assert not any(row["class_detail"] == "norm" for row in rows.values()), "the root of a sum of three squares is a distance"


def test_attention_in_training_keeps_its_backward_products() -> None:
    """Two layers, each with two products forwards and four backwards: 12."""
    assert len(of("vit_train", "attention", "product")) == 12


def test_slices_of_a_window_are_read_from_the_cache() -> None:
    """Four layers, keys and values: eight windows of 2 x 512 x 4 x 64 values of bf16, 524,288 bytes each; a sum beside them is less."""
    assert [row["kv_read_bytes"] for row in of("window", "kv_gather")] == [2 * 512 * 4 * 64 * 2] * 8


def test_a_cache_that_the_program_makes_itself() -> None:
    """64 places x 4 heads x 64 in bf16 are 32,768 bytes of keys, as many of values; eight layers make one array, which is written whole."""
    (write,) = of("generate_stacked", "kv_write", "update")
    assert write["kv_write_bytes"] == 8 * 2 * 4 * 64 * 2  # a key and a value of four heads of 64 in bf16, in each of eight layers
    assert write["bytes_accessed"] >= 8 * 2 * 32_768
    # one a layer, which spreads 4 heads to 16
    assert [row["kv_read_bytes"] for row in of("generate_stacked", "kv_gather")] == [2 * 32_768] * 8


@pytest.mark.parametrize("name", ["soft_capped", "stacked_cache"])
def test_decoders_keep_their_classes(name: str) -> None:
    rows = program_rows(name)
    assert in_class(rows, "kv_write") and in_class(rows, "attention")
    assert total(rows, "bytes_accessed", kernel_class="weights") > 0.8 * total(rows, "bytes_accessed")
