"""The tables at this package's doors: GPU activities coming in, joined activities and instruction facts going out.

Each schema is the one place where its column names and types live. A field's metadata says what it means (`about`).
"""

from __future__ import annotations

import pyarrow as pa

WORD = pa.dictionary(pa.int32(), pa.string())
"""A string column with few distinct values, kept as codes."""


def column(name: str, kind: pa.DataType, about: str) -> pa.Field:
    """A field that says what it means."""
    return pa.field(name, kind, metadata={"about": about})


ACTIVITIES = pa.schema(
    [
        column("activity", WORD, "kernel, memcpy, memset or graph (a whole graph launch, where the capture holds nothing finer)"),
        column("start_ns", pa.int64(), "start on the GPU, ns from the start of the capture session"),
        column("end_ns", pa.int64(), "end on the GPU, ns from the start of the capture session"),
        column("device_id", pa.int32(), "CUDA device ordinal in its process"),
        column("stream_id", pa.int64(), "CUDA stream"),
        column("process_id", pa.int64(), "operating system process id"),
        column("correlation_id", pa.int64(), "joins the activity to the API call that launched it, within its process"),
        column("graph_node_id", pa.int64(), "CUDA graph node, null outside graphs"),
        column("name", WORD, "kernel name; of copies and memsets their kind"),
        column("bytes", pa.int64(), "bytes copied or set; null for kernels"),
    ]
)
"""A row per GPU activity, in time order: what the capture says."""

LAUNCHES = pa.schema(
    [
        column("launch_thread", pa.int64(), "the thread whose API call launched it (global thread id), null where no call was recorded"),
        column("launch_start_ns", pa.int64(), "when that API call began; null where none was recorded"),
        column("launch_end_ns", pa.int64(), "when that API call returned"),
        column("launch_api", WORD, "that API call's name, without version suffix"),
        column("grid", WORD, "launch grid as 'x,y,z'; null for copies and memsets"),
        column("block", WORD, "launch block as 'x,y,z'; null for copies and memsets"),
        column("copy_kind", WORD, "HtoD, DtoH, DtoD, PtoP, ... of copies; null otherwise"),
    ]
)
"""More columns of the same rows, which cutting and joining need."""

JOIN = pa.schema(
    [
        column("execution_id", pa.int64(), "the execution it belongs to; null for none"),
        column("hlo_module", WORD, "name of the HLO module of that execution"),
        column("program_id", pa.int64(), "XLA's number of that module, as in the dump's file names; null where unknown"),
        column("hlo_instruction", WORD, "the instruction of the optimized module that launched it"),
        column("match_method", WORD, "how the instruction was found; null where it was not"),
        column("match_confidence", pa.float64(), "how surely, 0 to 1; null where no instruction was found"),
    ]
)
"""What the cut and the join add to each activity."""

COSTS = pa.schema(
    [
        column("kernel_class", WORD, "weights, kv_write, kv_gather, attention or other, from dataflow; null where unknown"),
        column("class_detail", WORD, "finer kind within the class"),
        column("bytes_accessed", pa.int64(), "bytes it must move at least; null where unknown"),
        column("weight_bytes", pa.int64(), "bytes of model parameters read, part of bytes_accessed"),
        column("kv_read_bytes", pa.int64(), "bytes of KV cache read, part of bytes_accessed"),
        column("kv_write_bytes", pa.int64(), "bytes of KV cache written, part of bytes_accessed"),
        column("flops", pa.int64(), "floating-point operations of dots, convolutions and library calls; null where unknown"),
    ]
)
"""What classes and costs add. Where one instruction launches several kernels, its whole cost stands on the first and 0 on the rest."""

FACTS = pa.schema(
    [
        column("program_id", pa.int64(), "XLA's number of the module"),
        column("hlo_module", WORD, "name of the HLO module"),
        column("hlo_instruction", pa.string(), "instruction name"),
        column("opcode", WORD, "HLO opcode"),
        *COSTS,
        column("class_rule", WORD, "the rule that gave the class"),
        column(
            "phase",
            WORD,
            "of a program that trains: input, forward, loss, rematerialized, backward, collective, optimizer or unknown; null elsewhere",
        ),
        column("floor_bytes", pa.int64(), "bytes of bytes_accessed that no rewriting of the program avoids; null where unknown"),
        column("bytes_upper", pa.int64(), "bytes it may move at most, where that differs from bytes_accessed for a known reason"),
        column("bytes_note", pa.string(), "why the two bounds differ; null where they do not"),
        column("cost_source", WORD, "how the bytes were counted: shapes, fusion_body, slice, in_place, library, unknown"),
        column("dot_type", WORD, "operand types, accumulation and result of its dot or convolution, as 'bf16,bf16->f32'; null without one"),
        column(
            "label",
            pa.string(),
            "its name to a person: of its parameters or scope, or in parentheses its detail; null without",
        ),
        column("pattern", pa.string(), "the label with stars for the numbers of layers, which the same work of all layers shares"),
        column("layer", WORD, "the layer it is of, by its names or its dataflow, as layers[3]; null outside of layers, or unknown"),
        column("parameters", pa.string(), "entry parameters that it reads or updates, as they were passed, weights first; null without"),
        column(
            "parameter", pa.string(), "the parameters it is mostly about, as one name with stars for the numbers of layers; null without"
        ),
        column("scope", pa.string(), "the named scopes around it, outermost first, with stars for the numbers of layers; null without"),
        column("op_name", pa.string(), "the framework's name of the operation; null where the dump has none"),
        column("source_file", pa.string(), "file of the line it came from; null where the dump has none"),
        column("source_line", pa.int64(), "line in that file"),
    ]
)
"""A row per instruction of one module that can launch GPU work (in every computation that is executed, not inside fusions)."""


def about(schema: pa.Schema) -> dict[str, str]:
    """What each column of a schema means, by name."""
    return {f.name: f.metadata[b"about"].decode() for f in schema}
