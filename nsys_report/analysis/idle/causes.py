"""Why a GPU was idle: the causes, in words, and the CUDA calls and ranges that show them. Knowledge as data; idle_times.py applies it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nsys_report.analysis.arrays.view import Coded, Ints


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of idle time: its key, the part of the step budget it counts to, and what it means."""

    key: str
    category: str
    about: str


CAUSES = (
    Cause("profiler", "profiler", "the profiler's own work (buffer flushes and the like) was going on"),
    Cause("node_tracing", "profiler", "a graph launch took longer because its nodes were traced one by one: an estimate"),
    Cause("compile", "compile", "a program was being compiled, or its code loaded"),
    Cause("graph_instantiation", "launch", "a CUDA graph was being built or instantiated"),
    Cause("graph_updates", "launch", "nodes of a CUDA graph were being given new addresses, because buffers had moved"),
    Cause("allocation", "host", "device or pinned memory was being allocated or freed"),
    Cause("graph_launch", "launch", "the call that launches a CUDA graph was under way"),
    Cause("launch_call", "launch", "a call that launches a kernel was under way"),
    Cause("loop_readback", "idle", "a loop condition (or branch index) was read back to the host before the program could go on"),
    Cause("first_kernel_latency", "launch", "launched, and the call returned; the first activity of the execution had not started yet"),
    Cause("launch_latency", "launch", "launched too late to follow on, and the call returned; the activity had not started yet"),
    Cause("pageable_copy", "copies", "a copy from or to pageable memory was being staged"),
    Cause("copies_in", "copies", "a copy to the device was being issued"),
    Cause("copies_out", "copies", "a copy to the host was being issued"),
    Cause("copies_on_device", "copies", "a copy within the device, or a memset, was being issued"),
    Cause("waiting_for_result", "copies", "the copy of a result to the host had been called for, and had not begun"),
    Cause("between_copies", "copies", "between two copies in the same direction: the host was staging arguments, or taking results over"),
    Cause("synchronising", "host", "a host thread stood in a synchronizing call, while nothing had been given to the device"),
    Cause("xla_dispatch", "host", "the host was inside XLA's execution of a program, in no CUDA call"),
    Cause("before_fetch", "host", "the device had finished, and the host had not begun to fetch the result: it was elsewhere"),
    Cause("host_work", "host", "the host was elsewhere: in no CUDA call that bears on the device"),
    Cause("not_recorded", "not_recorded", "a branch or loop body of a graph ran, and the capture holds no record of its work"),
    Cause("conditional_nodes", "idle", "the device was choosing the branch of a graph, or whether its loop goes on"),
    Cause("between_activities", "idle", "the next activity had been launched in time: the device's own pause between two"),
    Cause("unexplained", "host", "the capture holds no API call that launched the next activity, so nobody can say"),
)
"""In the order in which they claim a moment: each takes what those before it left."""

CODES = {cause.key: code for code, cause in enumerate(CAUSES)}
"""Index of each cause in CAUSES, which is its code in IdleTime."""

CALLS: tuple[tuple[str, str], ...] = (
    ("graph_updates", r"^cu(da)?Graph(Exec.*(SetParams|SetAttribute|Update)|.*NodeSet(Params|Attribute))"),
    ("graph_launch", r"^cu(da)?GraphLaunch"),
    ("graph_instantiation", r"^cu(da)?(Graph|Stream(Begin|End|Update)Capture)"),
    (
        "compile",
        r"^cu(da)?(Module|Library)Load|^cu(Library|Module)GetKernel|^cuKernelGetFunction|^cuModuleUnload|^cuLibraryUnload|^cuLink|^nvrtc",
    ),
    (
        "allocation",
        r"^cu(da)?(Mem(Alloc|Free|Create|Release|Map$|Unmap|SetAccess|Address|Host|Pool)|Malloc|Free|Host(Alloc|Register|Unregister))",
    ),
    ("launch_call", r"^cu(da)?Launch(Kernel|Cooperative|Device)|^cu(da)?Launch(Grid|)$"),
    ("copies_in", r"^cuMemcpyHtoD"),
    ("copies_out", r"^cuMemcpyDtoH"),
    ("copies_on_device", r"^cu(da)?Mem(cpy|set)"),
    ("synchronising", r"^cu(da)?(Stream|Event|Ctx|Device|Thread)Synchronize"),
)
"""Calls by cause, the first pattern that fits a call's name; copies by cudaMemcpy get their direction from the copy itself."""

BRIDGED = ("graph_updates", "graph_instantiation")
"""Causes whose calls come in bursts: the time between two consecutive calls of a thread belongs to the burst."""
LONGEST_BRIDGE_NS = 200_000
"""Longest pause within a burst; what takes longer is other work."""

COMPILE_RANGES = ("XlaCompile", "XlaPass", "XlaEmit", "XlaOptimize", "XlaCreateGpuExecutable", "XlaAutotun", "XlaDump", "XlaMemorySched")
"""How the texts of XLA's NVTX ranges around compilation begin."""
EXECUTE_RANGE = "XlaModule:"
"""How the text of XLA's NVTX range around one execution begins."""

SETS_CONDITION = re.compile(r"^set_\w*condition\b")
"""Kernels by which XLA sets the condition of a graph's conditional node (xla/stream_executor/cuda/command_buffer_kernels.cc)."""
CONDITIONAL_NODE_NS = 40_000
"""What a conditional node takes at most by itself: 11 and 31 µs with an empty branch on an H200. What is longer is its body's."""
NODE_TRACE_NS = 1_000
"""What recording a node of a graph adds to the graph's launch: 219 µs with --cuda-graph-trace=node against 59 µs with =graph for the same
162 nodes (H200, driver 580, nsys 2023.4)."""

READBACK_BYTES = 16
"""A copy to the host within an execution of at most so many bytes is a loop condition or branch index: XLA reads a bool or an int32."""


def causes_of_calls(names: Coded) -> Ints:
    """The cause of each API call, -1 for a call that says nothing."""
    found = [next((CODES[key] for key, pattern in CALLS if re.search(pattern, word)), -1) for word in names.words]
    return np.array([*found, -1], np.int64)[names.codes]


def causes_of_launches(api: Coded, copy_kind: Coded, pageable: np.ndarray) -> Ints:
    """The cause that the call of each activity stands for while it is under way."""
    cause = causes_of_calls(api)
    kinds = {"HtoD": "copies_in", "DtoH": "copies_out"}
    direction = np.array([CODES[kinds.get(word, "copies_on_device")] for word in copy_kind.words] + [-1], np.int64)[copy_kind.codes]
    # A copy node of a graph is launched by the graph's launch: the direction says nothing of that call.
    by_graph = cause == CODES["graph_launch"]
    cause = np.where((direction >= 0) & ~by_graph, direction, cause)
    cause = np.where(pageable & ~by_graph, CODES["pageable_copy"], cause)
    return np.where(cause < 0, CODES["launch_call"], cause)
