"""Every rule, in the order in which they claim time: what names the cause more exactly comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from nsys_report.findings.model import Finding, Source
from nsys_report.findings.rules import (
    attention,
    caches,
    capture,
    compiling,
    devices,
    experts,
    graphs,
    host,
    iterations,
    kernels,
    launches,
    loops,
    offload,
    products,
    slow,
    slow_steps,
    traffic,
    transfers,
    weights,
)
from nsys_report.findings.step import Context, Step

CAPTURE_RULES: tuple[Callable[[Context], Iterator[Finding]], ...] = (
    capture.damaged,
    capture.whole_graphs,
    capture.autotuning,
    capture.idle_device,
    compiling.compiled_inside,
    compiling.shape_variants,
)
"""Rules about the capture as a whole."""

EXECUTION_RULES: tuple[Callable[[Context, Step], Iterator[Finding]], ...] = (
    launches.launches,
    iterations.launched_iterations,
    iterations.graphs_apart,
    compiling.compiled_in_steps,
    capture.profiler,
)
"""Rules about idle time within executions, for programs whose steps are not steady."""

STEP_RULES: tuple[Callable[[Context, Step], Iterator[Finding]], ...] = (
    transfers.crossing_state,
    offload.offloaded_arguments,
    transfers.uploaded_inputs,
    transfers.large_result,
    host.waiting_for_host,
    launches.launches,
    launches.graph_updates,
    iterations.launched_iterations,
    iterations.graphs_apart,
    graphs.conditional_nodes,
    launches.dispatch,
    compiling.compiled_in_steps,
    capture.profiler,
    devices.shared_gpu,
    devices.other_threads,
)
"""Rules about the time between and around executions, for programs that repeat steadily."""

DEVICE_RULES: tuple[Callable[[Context, Step], Iterator[Finding]], ...] = (
    devices.exposed_collectives,
    caches.reordered_caches,
    caches.copied_caches,
    attention.gathered_context,
    attention.written_scores,
    weights.staged_weights,
    experts.dense_experts,
    products.split_products,
    products.slow_cores,
    kernels.small_kernels,
    slow.slow_algorithms,
    loops.repeated_work,
    loops.batchable_products,
)
"""Rules about what an execution does on the device."""

REST_RULES: tuple[Callable[[Context, Step, Mapping[Source, float]], Iterator[Finding]], ...] = (
    traffic.written_intermediates,
    products.below_roof,
    slow.slow_kernels,
    kernels.pauses,
    slow.near_roof,
)
"""Rules about what is left of the step, which see what nobody has claimed yet."""

OTHER_STEP_RULES: tuple[Callable[[Context, Step], Iterator[Finding]], ...] = (slow_steps.slow_executions, slow_steps.late_executions)
"""Rules about executions that are not typical: they claim nothing of the typical step."""
