"""The GPUs that a capture's work ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from nsys_report.capture import catalogue
from nsys_report.capture.arrays import decode
from nsys_report.capture.model import Gpu
from nsys_report.capture.source import Source
from nsys_report.capture.tables import read_table

Row = Mapping[str, Any]

_LONGEST_NAME = 100
_COUNTS = (1, 100_000)
_POSSIBLE = {
    "memoryBandwidth": (10**9, 10**14),
    "l2CacheSize": (1, 2**40),
    "totalMemory": (1, 2**50),
    "smCount": _COUNTS,
    "clockRate": (10**6, 10**11),
}
"""What a GPU can have, by column: bytes a second from 1 GB/s to 100 TB/s, bytes, multiprocessors, Hz. 0 is unknown to the driver."""


def used_gpus(source: Source, activities: pa.Table) -> tuple[Gpu, ...]:
    """A Gpu for every process and device that ran something; without any work, for every device a process set up, else every GPU.

    CUDA_VISIBLE_DEVICES renumbers devices within a process, so a device is looked up by process and ordinal where the capture has that
    table, else by the CUDA ordinal, the GPU's number, or because there is only one.
    """
    gpus = _rows(source, catalogue.GPU)
    devices = _rows(source, catalogue.CUDA_DEVICE)
    used = _used(activities) or [(d["pid"], d["cudaId"]) for d in devices if d["cudaId"] is not None]
    if not used:
        used = [(None, _ordinal(g)) for g in gpus]
    return tuple(_gpu(process, device, gpus, devices) for process, device in sorted(used, key=_sorting))


def context_devices(source: Source) -> dict[tuple[int, int], int]:
    """The device of each (pid, CUDA context)."""
    rows = _rows(source, catalogue.CONTEXT)
    return {(r["processId"], r["contextId"]): r["deviceId"] for r in rows if None not in (r["processId"], r["contextId"], r["deviceId"])}


def _sorting(used: tuple[int | None, int]) -> tuple[int, int]:
    return (-1 if used[0] is None else used[0], used[1])


def _rows(source: Source, spec: catalogue.TableSpec) -> list[dict[str, Any]]:
    table = read_table(source, spec)
    return [] if table is None else pa.table(table).to_pylist()


def _used(activities: pa.Table) -> list[tuple[int | None, int]]:
    pairs = activities.select(["process_id", "device_id"]).group_by(["process_id", "device_id"]).aggregate([])
    return [(r["process_id"], r["device_id"]) for r in pairs.to_pylist() if r["device_id"] is not None]


def _ordinal(gpu: Row) -> int:
    ordinal = gpu["cuDevice"] if gpu["cuDevice"] is not None else gpu["id"]
    return int(ordinal or 0)


def _gpu(process: int | None, device: int, gpus: list[dict[str, Any]], devices: list[dict[str, Any]]) -> Gpu:
    set_up = next((d for d in devices if d["pid"] == process and d["cudaId"] == device), None)
    row = _find(device, gpus, set_up)
    figures = {key: _within(row, key, possible) for key, possible in _POSSIBLE.items()}
    sms = _within(set_up, "numMultiprocessors", _COUNTS)  # of a MIG slice it is smaller than the GPU's
    return Gpu(
        device_id=device,
        process_id=process,
        name=decode(row["name"])[:_LONGEST_NAME] if row and row["name"] else None,
        nominal_bytes_per_s=figures["memoryBandwidth"],
        l2_bytes=figures["l2CacheSize"],
        sm_count=sms or figures["smCount"],
        whole_sm_count=figures["smCount"] if sms and figures["smCount"] and sms < figures["smCount"] else None,
        memory_bytes=figures["totalMemory"],
        compute_capability=f"{row['computeMajor']}.{row['computeMinor']}" if row and row["computeMajor"] else None,
        gpu_id=set_up["gpuId"] if set_up else None,
        clock_hz=figures["clockRate"],
        impossible=tuple(key for key, figure in figures.items() if figure is None and row and row[key]),
    )


def _find(device: int, gpus: list[dict[str, Any]], set_up: Row | None) -> Row | None:
    if set_up is not None:
        return next((g for g in gpus if g["id"] == set_up["gpuId"]), None)
    for key in ("cuDevice", "id"):
        row = next((g for g in gpus if g[key] == device), None)
        if row is not None:
            return row
    return gpus[0] if len(gpus) == 1 else None


def _within(row: Row | None, key: str, possible: tuple[int, int]) -> int | None:
    """A figure of the capture where it can be true, else None."""
    value = row[key] if row else None
    return int(value) if value is not None and possible[0] <= value <= possible[1] else None
