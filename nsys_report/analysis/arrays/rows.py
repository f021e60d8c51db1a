"""Rows of tables as Python values, for what looks at single ones. Written by `python -m tests.write_rows` from the schemas.

Words may be None where nobody knows; so may figures, which are as the schema has them, and are not told apart from known ones by type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from hlo_mapping import Detail, JoinMethod, KernelClass


class InstructionRow(TypedDict):
    """A program and one of its HLO instructions: schema INSTRUCTIONS."""

    hlo_module: str | None
    program_id: Any
    hlo_instruction: str
    instruction_id: Any
    activity: str | None
    kernel_name: str | None
    kernels: Any
    executions: Any
    launches_per_execution: Any
    time_per_execution_ns: Any
    time_per_execution_p10_ns: Any
    time_per_execution_p90_ns: Any
    time_min_ns: Any
    time_max_ns: Any
    typical_ns: Any
    typical_share: Any
    time_mean_ns: Any
    time_share: Any
    kernel_class: KernelClass | None
    class_detail: Detail | None
    bytes_accessed: Any
    bytes_upper: Any
    weight_bytes: Any
    kv_read_bytes: Any
    kv_write_bytes: Any
    flops: Any
    bytes_per_s: Any
    share_of_measured: Any
    share_of_nominal: Any
    above_measured: bool | None
    flops_per_s: Any
    opcode: str | None
    class_rule: str | None
    phase: str | None
    floor_bytes: Any
    bytes_note: str | None
    cost_source: str | None
    dot_type: str | None
    label: str | None
    pattern: str | None
    layer: str | None
    parameters: str | None
    parameter: str | None
    scope: str | None
    op_name: str | None
    source_file: str | None
    source_line: Any
    weight_type: str | None
    match_method: JoinMethod | None
    match_confidence: Any


class ModuleRow(TypedDict):
    """A program: schema MODULES."""

    hlo_module: str | None
    program_id: Any
    program_kind: str | None
    program_kind_confidence: Any
    executions: Any
    complete_executions: Any
    devices: Any
    kernels_per_execution: Any
    kernels_per_execution_p10: Any
    kernels_per_execution_p90: Any
    kernel_time_ns: Any
    kernel_time_p10_ns: Any
    kernel_time_p90_ns: Any
    busy_time_ns: Any
    busy_time_p10_ns: Any
    busy_time_p90_ns: Any
    span_ns: Any
    span_p10_ns: Any
    span_p90_ns: Any
    host_gap_ns: Any
    host_gap_p10_ns: Any
    host_gap_p90_ns: Any
    interval_ns: Any
    interval_p10_ns: Any
    interval_p90_ns: Any
    total_kernel_time_ns: Any
    kernel_time_share: Any


class RoofRow(TypedDict):
    """An instruction or class against its roof: schema ROOFLINE."""

    hlo_module: str | None
    program_id: Any
    level: str | None
    kernel_class: KernelClass | None
    class_detail: Detail | None
    hlo_instruction: str
    instruction_id: Any
    time_ns: Any
    bytes_accessed: Any
    flops: Any
    flops_per_byte: Any
    bytes_per_s: Any
    flops_per_s: Any
    compute_type: str | None
    ridge_flops_per_byte: Any
    roof: str | None
    roof_kind: str | None
    roof_time_ns: Any
    share_of_roof: Any
    at_roof: bool | None
    above_roof: bool | None
    headroom_ns: Any


class ProductRow(TypedDict):
    """A product with the types that it multiplies: schema PRECISION."""

    hlo_module: str | None
    program_id: Any
    hlo_instruction: str
    instruction_id: Any
    kernel_name: str | None
    kernel_class: KernelClass | None
    kind: str | None
    products: Any
    lhs_type: str | None
    rhs_type: str | None
    result_type: str | None
    accumulation_type: str | None
    precision: str | None
    algorithm: str | None
    library_algorithm: str | None
    compute_type: str | None
    launches_per_execution: Any
    typical_ns: Any
    typical_share: Any
    time_per_execution_ns: Any
    time_share: Any
    bytes_accessed: Any
    flops: Any
    weight_type: str | None
    weight_bytes: Any
    narrower_type: str | None
    saved_bytes: Any
    saved_ns: Any
    saved_at_its_rate_ns: Any


class LoopRow(TypedDict):
    """The loop of a program: schema LOOPS."""

    hlo_module: str | None
    program_id: Any
    iterations: Any
    kernels_per_iteration: Any
    launches_per_iteration: Any
    readbacks_per_iteration: Any
    kernels_before: Any
    kernels_after: Any
    iteration_time_min_ns: Any
    iteration_time_ns: Any
    iteration_time_max_ns: Any
    period_ns: Any
    idle_per_iteration_ns: Any
    loop_share: Any
    executions: Any


class StepRow(TypedDict):
    """The steps of a program: schema STEPS."""

    hlo_module: str | None
    program_id: Any
    steps: Any
    is_alone: bool | None
    typical_ns: Any
    mean_ns: Any
    wall_ns: Any
    wall_p10_ns: Any
    wall_p90_ns: Any
    total_ns: Any
    typical_kernel_time_ns: Any
    idle_ns: Any
    floor_ns: Any
    tokens_per_execution: Any
    tokens_per_s: Any
    floor_tokens_per_s: Any
    cache_type: str | None
    ceiling: str | None


class HostPhaseRow(TypedDict):
    """What the host does in a part of a typical step: schema HOST_PHASES."""

    hlo_module: str | None
    program_id: Any
    position: Any
    phase: str | None
    about: str | None
    name: str | None
    start_ns: Any
    duration_ns: Any
    thread: Any
    thread_name: str | None
    user_range: str | None
    os_calls: Any
