"""From an analyzed capture to what it sends to the report of its run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import numpy as np

from hlo_mapping import Collective, Program, module_collectives
from nsys_report.analysis.arrays.view import Flags, Ints, ModuleKey, View, coded, ints
from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.capture.session import SessionStart
from nsys_report.findings.flow import flow_of
from nsys_report.intervals import Ranges, union, within
from nsys_report.ranks.summary import CaptureRuns, CollectiveRuns, DeviceRuns, ProgramRuns
from nsys_report.session import Session

NCCL_KERNEL = re.compile(r"^nccl(?:Dev|Symk(?:Dev)?)?Kernel_?(AllReduce|AllGather|ReduceScatter|SendRecv|Broadcast|Reduce|AllToAll)?")
"""NCCL's kernels by name (src/device/generate.py), as far as a name tells: the collective, never the algorithm that ran."""
NCCL_KINDS = {
    "AllReduce": "all-reduce",
    "AllGather": "all-gather",
    "ReduceScatter": "reduce-scatter",
    "SendRecv": "send-receive",
    "Broadcast": "collective-broadcast",
    "Reduce": "reduce",
    "AllToAll": "all-to-all",
}


def capture_runs(session: Session, label: str, start: SessionStart) -> CaptureRuns:
    """What a capture sends: its devices that ran programs, in the order of process and ordinal."""
    view = session.results.view
    table = session.joined.executions
    info = session.joined.capture.info
    names = {(gpu.process_id, gpu.device_id): gpu.name for gpu in info.gpus}
    is_collective, which, kinds = _collectives(view)
    ran = np.unique(view.executions.device)
    devices = [
        DeviceRuns(
            view.devices[device][0],
            view.devices[device][1],
            names.get(view.devices[device]) or next(iter(names.values()), None),
            tuple(_programs(session, int(device), ints(table, "busy_time_ns")[0], is_collective, which, kinds)),
        )
        for device in sorted(ran.tolist(), key=lambda d: view.devices[d])
    ]
    span = info.span_ns or (0, 0)
    return CaptureRuns(session.name, label, tuple(devices), span, start.realtime_ns, start.monotonic_ns)


def _collectives(view: View) -> tuple[Flags, Ints, tuple[str, ...]]:
    """Which activities are kernels of collectives, and of which: an index into names of instructions or, without a dump, of kernels."""
    facts = view.joined.facts
    instruction, detail = coded(facts, "hlo_instruction"), coded(facts, "class_detail")
    collective = np.append(detail.codes == detail.code("collective"), False)
    joined = view.kernel & collective[view.instruction]
    kernel = view.column("name")
    by_name = np.append([bool(NCCL_KERNEL.match(word or "")) for word in kernel.words], False).astype(np.bool_)
    unjoined = view.kernel & ~joined & by_name[kernel.codes] & (view.instruction < 0)
    which = np.where(joined, np.append(instruction.codes, -1)[view.instruction], -1).astype(np.int64)
    which[unjoined] = len(instruction.words) + kernel.codes[unjoined]
    return joined | unjoined, which, (*instruction.words, *kernel.words)


def _programs(session: Session, device: int, busy: Ints, chosen: Flags, which: Ints, names: tuple[str, ...]) -> Iterator[ProgramRuns]:
    """The programs that ran on a device, each with its collectives."""
    view = session.results.view
    runs = view.executions
    here = view.device == device
    others = union(view.start[here & ~chosen], view.end[here & ~chosen])
    everything = _collective_runs(session, device, np.flatnonzero(here & chosen & (view.execution >= 0)), others)
    rows, columns = everything
    for module in np.unique(runs.module[runs.device == device]).tolist():
        mine = np.flatnonzero((runs.module == module) & (runs.device == device))
        mine = mine[np.argsort(runs.start[mine], kind="stable")]
        number = np.full(len(runs) + 1, -1, np.int64)
        number[mine] = np.arange(len(mine))
        of_program = np.flatnonzero(number[view.execution[rows]] >= 0)
        key = view.modules[module]
        used, code = np.unique(which[rows[of_program]], return_inverse=True)
        kernels, medians = _kernel_times(view, here & ~chosen, module)
        idle = columns["idle"][of_program]
        causes = np.flatnonzero(idle.any(axis=0)) if len(idle) else np.empty(0, np.int64)
        execution = number[view.execution[rows[of_program]]]
        yield ProgramRuns(
            key.hlo_module or "unknown",
            key.program_id,
            _signature(session.joined.programs.get(key.program_id if key.program_id is not None else -1), key, [names[n] for n in used]),
            runs.start[mine],
            runs.end[mine],
            busy[mine],
            runs.complete[mine],
            tuple(_described(session, key, [names[n] for n in used])),
            CollectiveRuns(
                code.astype(np.int64),
                execution,
                _occurrence(execution, code.astype(np.int64)),
                columns["start"][of_program],
                columns["end"][of_program],
                columns["exposed"][of_program],
                columns["since"][of_program],
                columns["busy"][of_program],
                idle[:, causes].astype(np.int32),
            ),
            tuple(CAUSES[c].key for c in causes),
            _tied(session, key, [names[n] for n in used]),
            kernels,
            medians,
        )


def _collective_runs(session: Session, device: int, rows: Ints, others: Ranges) -> tuple[Ints, dict[str, Ints]]:
    """Of each collective on a device: its times, what ran beside it, and what came since the one before."""
    view = session.results.view
    start, end = view.start[rows], view.end[rows]
    reach = np.maximum.accumulate(end) if len(end) else end
    since = np.minimum(np.append(view.executions.start[view.execution[rows[:1]]], reach[:-1]), start)
    idle = session.results.idle[device].within(since, start)
    return rows, {
        "start": start,
        "end": end,
        "exposed": (end - start) - within(others, start, end),
        "since": since,
        "busy": within(others, since, start),
        "idle": idle,
    }


def _occurrence(execution: Ints, collective: Ints) -> Ints:
    """How many of the same collective come before each within its execution; rows are in order of start."""
    found = np.zeros(len(execution), np.int64)
    if len(found) == 0:
        return found
    order = np.lexsort((np.arange(len(execution)), collective, execution))
    key = execution[order] * (int(collective.max()) + 1) + collective[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    found[order] = np.arange(len(key)) - np.repeat(first, np.diff(first, append=len(key)))
    return found


def _kernel_times(view: View, chosen: Flags, module: int) -> tuple[tuple[str, ...], np.ndarray]:
    """The median duration of each instruction's kernels in a program's complete executions."""
    mine = np.append((view.executions.module == module) & view.executions.complete, False)
    rows = np.flatnonzero(chosen & view.kernel & mine[view.execution] & (view.instruction >= 0))
    if not len(rows):
        return (), np.empty(0)
    rows = rows[np.lexsort((view.duration[rows], view.instruction[rows]))]
    first = np.flatnonzero(np.diff(view.instruction[rows], prepend=-1))
    middle = first + (np.diff(first, append=len(rows)) - 1) // 2
    words = coded(view.joined.facts, "hlo_instruction")
    return tuple(words.words[words.codes[n]] for n in view.instruction[rows[first]]), view.duration[rows[middle]].astype(np.float64)


def _signature(program: Program | None, key: ModuleKey, collectives: list[str]) -> str:
    """What makes two ranks' programs the same: the text's own fingerprint, else opcodes and shapes; else name and collectives.

    XLA writes fingerprint_before_lhs into scheduled GPU modules (xla/service/gpu/gpu_hlo_schedule.h).
    """
    module = program.module if program is not None else None
    if module is None:
        return "/".join([key.hlo_module or "", *sorted(collectives)])
    found = re.search(r'fingerprint_before_lhs="(\w+)"', module.attribute("frontend_attributes"))
    if found:
        return f"{module.name}/{found[1]}"
    entry = "\n".join(f"{i.name} {i.opcode} {i.shape}" for i in module.entry.instructions)
    return f"{module.name}/{hashlib.sha256(entry.encode()).hexdigest()[:32]}"


def _tied(session: Session, key: ModuleKey, names: list[str]) -> dict[str, frozenset[str]]:
    """Which collectives need each other; empty without HLO, or where its text cannot be followed."""
    program = session.joined.programs.get(key.program_id) if key.program_id is not None else None
    flow = flow_of(program.module) if program is not None and program.module is not None and len(names) > 1 else None
    return {name: frozenset(flow.tied(name)) & frozenset(names) - {name} for name in names} if flow is not None else {}


def _described(session: Session, key: ModuleKey, names: list[str]) -> Iterator[Collective]:
    """What each collective moves, from the HLO; of a kernel without an instruction only its kind is known."""
    program = session.joined.programs.get(key.program_id) if key.program_id is not None else None
    module = program.module if program is not None else None
    known = {c.instruction: c for c in module_collectives(module)} if module is not None else {}
    for name in names:
        kernel = NCCL_KERNEL.match(name)
        kind = NCCL_KINDS.get(kernel[1] or "", "unknown") if kernel else "unknown"
        yield known.get(name) or Collective(name, kind, None, None, 1, None)
