"""Hand-made joined captures for the tests of the analysis: small tables whose figures can be worked out on paper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from hlo_mapping.columns import FACTS, LAUNCHES
from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE
from nsys_report.joined import Joined

ACTIVITIES = pa.schema([*ACTIVITY_TABLE, *LAUNCHES, pa.field("instruction_id", pa.int32())])
RUNTIME = pa.schema(
    [
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("thread", pa.int64()),
        ("global_pid", pa.int64()),
        ("correlation_id", pa.int64()),
        ("name", pa.dictionary(pa.int32(), pa.string())),
        ("return_value", pa.int64()),
    ]
)
NVTX = pa.schema([("start_ns", pa.int64()), ("end_ns", pa.int64()), ("thread", pa.int64()), ("text", pa.string()), ("domain", pa.string())])
OS_CALLS = pa.schema([("start_ns", pa.int64()), ("end_ns", pa.int64()), ("thread", pa.int64()), ("name", pa.string())])
COSTS = ("kernel_class", "class_detail", "bytes_accessed", "weight_bytes", "kv_read_bytes", "kv_write_bytes", "flops")


def table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    """A table of that schema from rows that name only what matters."""
    columns = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        array = pa.array([r.get(field.name) for r in rows], kind)
        columns.append(array.dictionary_encode() if pa.types.is_dictionary(field.type) else array)
    return pa.Table.from_arrays(columns, schema=schema)


def kernel(start: int, end: int, execution: int | None = 0, fact: int | None = None, **more: Any) -> dict[str, Any]:
    """A kernel of an execution that instruction `fact` launched."""
    row = {"activity": "kernel", "start_ns": start, "end_ns": end, "execution_id": execution, "instruction_id": fact}
    sure = {} if fact is None else {"match_method": "sequence", "match_confidence": 1.0}
    return {"device_id": 0, "process_id": 1, "stream_id": 7, "name": f"kernel_{fact}", **row, **sure, **more}


def copy(start: int, end: int, kind: str, bytes_: int, execution: int | None = 0, **more: Any) -> dict[str, Any]:
    """A copy of that kind."""
    return kernel(start, end, execution, activity="memcpy", name=kind, copy_kind=kind, bytes=bytes_) | more


def fact(name: str, **costs: Any) -> dict[str, Any]:
    """An instruction's facts; bytes default to unknown."""
    return {"hlo_module": "jit_step", "program_id": 1, "hlo_instruction": name, "opcode": "fusion", **costs}


def joined(
    activities: list[dict[str, Any]],
    facts: list[dict[str, Any]] = (),  # type: ignore[assignment]
    executions: dict[int, dict[str, Any]] | None = None,
    runtime: list[dict[str, Any]] = (),  # type: ignore[assignment]
    nvtx: list[dict[str, Any]] = (),  # type: ignore[assignment]
    os_calls: list[dict[str, Any]] = (),  # type: ignore[assignment]
) -> Joined:
    """The joined capture; executions' figures are worked out from their activities, `executions` overrides what it names."""
    rows = []
    for a in sorted(activities, key=lambda a: (a["start_ns"], a["end_ns"])):
        costs = {k: facts[a["instruction_id"]].get(k) for k in COSTS} if a["instruction_id"] is not None else {}
        rows.append({**costs, **a})
    runs = _executions(rows, executions or {})
    memory = pa.table({name: pa.array([r.get(name) for r in rows], pa.string()) for name in ("source_memory", "target_memory")})
    capture = SimpleNamespace(
        info=SimpleNamespace(gpus=()),
        thread_names={},
        activities=memory,
        runtime=table(RUNTIME, list(runtime)),
        nvtx=table(NVTX, list(nvtx)),
        os_calls=table(OS_CALLS, list(os_calls)),
        overhead=None,
        synchronizations=None,
    )
    return Joined(capture, table(ACTIVITIES, rows), table(EXECUTION_TABLE, runs), table(FACTS, list(facts)), {})  # type: ignore[arg-type]


def _executions(rows: list[dict[str, Any]], given: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row["execution_id"] is not None:
            found.setdefault(row["execution_id"], []).append(row)
    runs = []
    for number, mine in found.items():
        kernels = [r for r in mine if r["activity"] == "kernel"]
        start, end = min(r["start_ns"] for r in mine), max(r["end_ns"] for r in mine)
        earlier = [r["end_ns"] for r in rows if r["start_ns"] < start]
        covered = {t for r in mine for t in range(r["start_ns"], r["end_ns"])} if end - start < 100_000 else ()
        runs.append(
            {
                "execution_id": number, "device_id": 0, "process_id": 1, "hlo_module": "jit_step", "program_id": 1,
                "start_ns": start, "end_ns": end, "kernel_count": len(kernels),
                "kernel_time_ns": sum(r["end_ns"] - r["start_ns"] for r in kernels), "busy_time_ns": len(covered),
                "host_gap_ns": max(start - max(earlier), 0) if earlier else None, "cut_method": "sequence", "cut_confidence": 1.0,
                "is_complete": True, "launch_thread": 11, **given.get(number, {}),
            }
        )  # fmt: skip
    return sorted(runs, key=lambda r: r["start_ns"])
