"""Every rule, in the order in which they claim time: what names the cause more exactly comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nsys_report.findings.draft import Draft
from nsys_report.findings.rules import caches, capture, compiling, devices, host, kernels, launches, products, weights
from nsys_report.findings.step import Context, Step

CAPTURE_RULES: tuple[Callable[[Context], Iterator[Draft]], ...] = (
    capture.damaged,
    capture.whole_graphs,
    capture.autotuning,
    compiling.compiled_inside,
    compiling.shape_variants,
)
"""Rules about the capture as a whole."""

PROGRAM_RULES: tuple[Callable[[Context, Step], Iterator[Draft]], ...] = (
    host.crossing_state,
    host.uploaded_inputs,
    host.large_result,
    host.waiting_for_host,
    launches.launches,
    launches.graph_updates,
    launches.dispatch,
    capture.profiler,
    devices.other_threads,
    devices.exposed_collectives,
    caches.copied_caches,
    caches.gathered_context,
    caches.written_scores,
    weights.staged_weights,
    products.split_products,
    products.slow_cores,
    products.below_roof,
    kernels.small_kernels,
)
"""Rules about one program's step."""
