"""Floating-point operations of library work other than products: transforms, solvers, and cuDNN's attention."""

from __future__ import annotations

from math import ceil, log2, prod
from typing import Any

from hlo_mapping.costs.flops import COMPLEX_ADD, COMPLEX_MULTIPLY, result_shape
from hlo_mapping.costs.products import numbers_in
from hlo_mapping.dataflow import Graph
from hlo_mapping.kernel_kinds import kind_of_target

FORWARD_PRODUCTS, BACKWARD_PRODUCTS = 2, 5
"""Products of one size that attention takes: scores and weighted sum; backwards the scores again, and the gradients of weights, values,
queries and keys (flash attention keeps no scores: Dao, FlashAttention-2, section 4.1)."""


def transform_flops(graph: Graph, node: int) -> int | None:
    """Operations of FFTs (5 n log2 n, half for real data), triangular solves (n^2 a column) and Cholesky factors (n^3 / 3)."""
    op, instruction = graph.ops[node], graph.instructions[node]
    shape = graph.shapes[graph.inputs[node][0]] if graph.inputs[node] else result_shape(graph, node)
    first = shape.dimensions
    factor = (COMPLEX_MULTIPLY + COMPLEX_ADD) // 2 if shape.element_type in ("c64", "c128") else 1
    if op == "fft":
        length = prod(numbers_in(instruction.attribute("fft_length")))
        real = instruction.attribute("fft_type") in ("RFFT", "IRFFT")
        batch = prod(first[: len(first) - len(numbers_in(instruction.attribute("fft_length")))])
        return ceil(5 * batch * length * log2(length) / (2 if real else 1)) if length > 1 else 0
    known = kind_of_target(instruction.custom_call_target).flops
    if known == "attention":
        return _attention_flops(graph, node)
    if op == "triangular-solve" or known == "triangular solve":
        return prod(first) * result_shape(graph, node).element_count // max(prod(first[:-1]), 1) * factor
    if op == "cholesky" or known == "cholesky":
        return prod(first) * first[-1] // 3 * factor if first else None
    return 0 if known == "none" or op != "custom-call" else None


def _attention_flops(graph: Graph, node: int) -> int | None:
    """Products of queries with keys and their like: each takes 2 x head dimension for every query and key that meet, in each head."""
    instruction, inputs = graph.instructions[node], graph.inputs[node]
    config = instruction.backend_config.get("cudnn_fmha_backend_config", {})
    backward = "Backward" in instruction.custom_call_target
    scores = config.get("bmm1_grad_gemm2_dot_dimension_numbers" if backward else "bmm1_dot_dimension_numbers")
    if not isinstance(scores, dict) or len(inputs) < 2:
        return None
    queries, keys = graph.shapes[inputs[0]].dimensions, graph.shapes[inputs[1]].dimensions
    batch = [int(d) for d in scores.get("rhs_batch_dimensions", ())]
    summed = [int(d) for d in scores.get("rhs_contracting_dimensions", ())]
    if len(queries) != len(keys) or any(d >= len(keys) for d in (*batch, *summed)):
        return None
    # forwards the scores sum over features, and what is left of the keys is their positions; backwards the queries' gradient sums over keys
    free = [d for d in range(len(keys)) if d not in batch and (d in summed) == backward]
    length = prod(keys[d] for d in free)
    heads, features = prod(queries[d] for d in batch), prod(keys[d] for d in range(len(keys)) if d not in batch and d not in free)
    rows = graph.count(inputs[0]) // max(heads * features, 1)
    products = BACKWARD_PRODUCTS if backward else FORWARD_PRODUCTS
    return products * 2 * heads * features * _pairs(rows, length, config)


def _pairs(queries: int, keys: int, config: dict[str, Any]) -> int:
    """Queries and keys that meet: all, or under a causal mask (and within a window) the keys up to the query's own place.

    Sequences that are padded are counted in full: their lengths are known when the program runs.
    """
    if "CAUSAL" not in str(config.get("mask_type", "")):
        return queries * keys
    window = int(config.get("sliding_window_length") or 0) or keys
    return sum(min(place + 1, keys, window) for place in range(queries))
