"""The tables of the analysis. Units stand in the names; `about` says what each figure is.

A figure is null where it cannot be known. Medians and percentiles are over complete executions, by NumPy's linear method.
"""

from __future__ import annotations

import pyarrow as pa

from hlo_mapping import COSTS, FACTS, WORD, column

MODULE_KEY = (
    column("hlo_module", WORD, "name of the HLO module"),
    column("program_id", pa.int64(), "XLA's number of the module; null where unknown or tied"),
)


def spread(name: str, about: str, kind: pa.DataType | None = None) -> tuple[pa.Field, ...]:
    """Three columns: median under the plain name, then _p10 and _p90 (before the unit, if the name ends in _ns)."""
    stem, unit = (name.removesuffix("_ns"), "_ns") if name.endswith("_ns") else (name, "")
    kind = kind or pa.float64()
    return (
        column(name, kind, f"{about}; median"),
        column(f"{stem}_p10{unit}", kind, f"{about}; 10th percentile"),
        column(f"{stem}_p90{unit}", kind, f"{about}; 90th percentile"),
    )


MODULES = pa.schema(
    [
        *MODULE_KEY,
        column("program_kind", WORD, "what kind of program it is (hlo_mapping.program_kind); null without HLO"),
        column("program_kind_confidence", pa.float64(), "how surely, 0 to 1; null without HLO"),
        column("executions", pa.int64(), "executions in the capture, cut-off ones too"),
        column("complete_executions", pa.int64(), "executions that the figures are over; the others were cut off"),
        column("devices", pa.int64(), "devices it ran on"),
        *spread("kernels_per_execution", "kernels in an execution"),
        *spread("kernel_time_ns", "sum of an execution's kernel durations"),
        *spread("busy_time_ns", "length of the union of an execution's activities"),
        *spread("span_ns", "from an execution's first activity to the end of its last"),
        *spread("host_gap_ns", "idle GPU time before an execution, over those that have a gap"),
        *spread("interval_ns", "from one execution's start to the next start of the same program on the device"),
        column("total_kernel_time_ns", pa.int64(), "kernel time of all its executions, cut-off ones too; null with whole graphs"),
        column("kernel_time_share", pa.float64(), "that as a share of all kernel time in the capture, 0 to 1"),
    ]
)
"""A row per program, most busy time first."""

_BANDWIDTHS = (
    column("bytes_per_s", pa.float64(), "implied bandwidth: bytes over the time of the kernels whose bytes are known, in typical steps"),
    column("share_of_measured", pa.float64(), "bytes_per_s over the measured ceiling; null without one"),
    column("share_of_nominal", pa.float64(), "bytes_per_s over the nominal ceiling; null without one"),
    column("above_measured", pa.bool_(), "bytes_per_s exceeds the measured ceiling's range: L2 served it, or the bytes are wrong"),
    column("flops_per_s", pa.float64(), "flops over the time of the kernels whose flops are known, in typical steps"),
)

_CLASS_FIGURES = (
    *spread("time_per_execution_ns", "time of the class in an execution: kernels, and copies on the device that its instructions ask for"),
    column("typical_ns", pa.float64(), "time of the class in a typical step; the classes' add up to the program's kernels and such copies"),
    column("typical_share", pa.float64(), "share of that sum, 0 to 1"),
    column("time_mean_ns", pa.float64(), "mean of the same; the classes' means add up to the mean time of kernels and such copies"),
    column("time_share", pa.float64(), "share of the program's time in all classes, 0 to 1"),
    column("launches_per_execution", pa.float64(), "kernels and such copies of the class in an execution; mean"),
    column("bytes_accessed", pa.int64(), "bytes an execution's kernels of the class must move, where known; median"),
    column("bytes_upper", pa.int64(), "bytes they may move at most; bytes_accessed where nothing is known to differ"),
    column("weight_bytes", pa.int64(), "part of bytes_accessed: model parameters read"),
    column("kv_read_bytes", pa.int64(), "part of it: KV cache read"),
    column("kv_write_bytes", pa.int64(), "part of it: KV cache written"),
    column("floor_bytes", pa.int64(), "the fewest bytes: inputs, weights and KV cache entries read, results and new entries written"),
    column("wasted_bytes", pa.int64(), "bytes_accessed above floor_bytes"),
    column("flops", pa.int64(), "floating-point operations an execution, where known; null where none are"),
    column("floor_measured_ns", pa.float64(), "floor_bytes at the measured ceiling; null without one"),
    column("floor_nominal_ns", pa.float64(), "floor_bytes at the nominal ceiling; null without one"),
    *_BANDWIDTHS,
    column("unknown_bytes_time_share", pa.float64(), "share of the class's time spent in kernels whose bytes are unknown"),
)

CLASSES = pa.schema([*MODULE_KEY, column("kernel_class", WORD, "class; null where not joined or unknown"), *_CLASS_FIGURES])
"""A row per program and class of kernels, most time first within the program."""

DETAILS = pa.schema(
    [
        *MODULE_KEY,
        column("kernel_class", WORD, "class; null where not joined or unknown"),
        column("class_detail", WORD, "finer kind within the class"),
        *_CLASS_FIGURES,
    ]
)
"""A row per program, class and detail."""

COPIES = pa.schema(
    [
        *MODULE_KEY,
        column("activity", WORD, "memcpy or memset"),
        column("copy_kind", WORD, "HtoD, DtoH, DtoD, PtoP, ...; null for memsets"),
        column("count_per_execution", pa.float64(), "how many in an execution; mean"),
        column("bytes_per_execution", pa.float64(), "bytes copied or set in an execution; mean"),
        *spread("time_per_execution_ns", "their time in an execution"),
        column("typical_ns", pa.float64(), "their time in a typical step's execution; mean"),
        column("bytes_per_s", pa.float64(), "bytes over time, all complete executions"),
        column("total_count", pa.int64(), "how many in the capture"),
        column("total_bytes", pa.int64(), "bytes in the capture"),
        column("total_time_ns", pa.int64(), "time in the capture"),
    ]
)
"""A row per program and kind of copy or memset; hlo_module null for those outside executions (per-execution figures null)."""

_PER_EXECUTION = {"bytes_upper", *(c.name for c in COSTS)}
_FACT_FIELDS = [f for f in FACTS if f.name not in {"hlo_module", "program_id", "hlo_instruction"} | _PER_EXECUTION]

INSTRUCTIONS = pa.schema(
    [
        *MODULE_KEY,
        column("hlo_instruction", pa.string(), "instruction name; null sums up what was not joined"),
        column("instruction_id", pa.int32(), "row of the facts table; null where not joined"),
        column("activity", WORD, "kernel, memcpy or memset; of an instruction that has several, the one with most time"),
        column("kernel_name", WORD, "name of its kernel; of several, the one with most time"),
        column("kernels", pa.int64(), "distinct kernel names"),
        column("executions", pa.int64(), "complete executions that it ran in"),
        column("launches_per_execution", pa.float64(), "activities an execution that has it"),
        *spread("time_per_execution_ns", "its time in an execution that has it"),
        column("time_min_ns", pa.int64(), "least time in an execution that has it"),
        column("time_max_ns", pa.int64(), "most time in an execution that has it"),
        column("typical_ns", pa.float64(), "its time in a typical step: mean over the middle half of steps, those without it as 0"),
        column(
            "typical_share",
            pa.float64(),
            "share of the typical time of the program's kernels and own copies, 0 to 1; null for copies that cross the host",
        ),
        column("time_mean_ns", pa.float64(), "mean over all complete executions, those without it as 0"),
        column(
            "time_share",
            pa.float64(),
            "share of the time of the program's kernels and own copies, 0 to 1; null for copies that cross the host",
        ),
        column("kernel_class", WORD, "class; null where unknown"),
        column("class_detail", WORD, "finer kind within the class"),
        column("bytes_accessed", pa.int64(), "bytes an execution; null where unknown"),
        column("bytes_upper", pa.int64(), "bytes an execution may move at most; bytes_accessed where nothing is known to differ"),
        column("weight_bytes", pa.int64(), "part of bytes_accessed: model parameters read"),
        column("kv_read_bytes", pa.int64(), "part of it: KV cache read"),
        column("kv_write_bytes", pa.int64(), "part of it: KV cache written"),
        column("flops", pa.int64(), "floating-point operations an execution; null where unknown"),
        *_BANDWIDTHS,
        *_FACT_FIELDS,
        column("weight_type", WORD, "element type that the weights it reads are stored in; null where it reads none, or unknown"),
        column("match_method", WORD, "how most of its time was matched"),
        column("match_confidence", pa.float64(), "least confidence of its activities; null where not joined"),
    ]
)
"""A row per program and instruction, most time first within the program."""

KERNELS = pa.schema(
    [
        *MODULE_KEY,
        column("name", WORD, "kernel name"),
        column("launches", pa.int64(), "launches in the capture"),
        column("instructions", pa.int64(), "distinct HLO instructions that launched it"),
        column("total_time_ns", pa.int64(), "time in the capture"),
        column("time_share", pa.float64(), "share of all kernel time in the capture"),
        *spread("duration_ns", "duration of a launch"),
        column("duration_min_ns", pa.int64(), "shortest launch"),
        column("duration_max_ns", pa.int64(), "longest launch"),
        column("unjoined_time_ns", pa.int64(), "time of its launches that were joined to no instruction"),
    ]
)
"""A row per program and kernel name, most time first; hlo_module null for kernels outside executions."""

COVERAGE = pa.schema(
    [
        *MODULE_KEY,
        column("scope", WORD, "total, module, outside (in no execution) or autotuning"),
        column("match_method", WORD, "how kernels were matched; null where they were not"),
        column("certainty", WORD, "exact, by_order, doubtful (confidence under 0.5), not_joined, autotuning, outside or not_recorded"),
        column("kernels", pa.int64(), "kernels; null where they were not recorded"),
        column("kernel_time_ns", pa.int64(), "their time"),
        column("time_share", pa.float64(), "share of the scope's kernel time, 0 to 1"),
        column("confidence_mean", pa.float64(), "mean confidence, weighted by time; null where not joined"),
    ]
)
"""Kernel time by scope, method and certainty. The rows of scope total add up to all kernel time; so do the other scopes together."""
