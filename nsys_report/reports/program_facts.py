"""What a program's section opens with: its kind, its executions, its step and its floor, in facts and in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.analysis.program_rows import of_program
from nsys_report.fact import Fact
from nsys_report.findings.explained import explained
from nsys_report.quantities import QUANTITIES
from nsys_report.reports.present import Record
from nsys_report.units import Value, count, duration, rate, share, things

if TYPE_CHECKING:
    from nsys_report.analysis.roofline.ceilings import Ceilings
    from nsys_report.session import Session

KINDS = {
    "decoding": "It decodes",
    "prefill": "It prefills",
    "training": "It trains",
    "inference": "It computes with a model's parameters",
    "other": "It is no model's program",
}
"""Kinds of programs (hlo_mapping.program_kind) in words."""
SUMMED = (
    "typical_ns",
    "bytes_accessed",
    "floor_measured_ns",
    "floor_nominal_ns",
    "weight_bytes",
    "kv_read_bytes",
    "kv_write_bytes",
    "wasted_bytes",
    "flops",
    "launches_per_execution",
)
"""Figures of classes that add up over them."""
MORE = 1.005
"""Of the bytes' time, from which on arithmetic makes the floor longer."""
OVERLAPS = 1.005
"""Of the time in which the GPU is not idle, from which on kernels add up to more: they run side by side."""
COPIES_COUNT = 1.005
"""Classes that take so much more than the kernels hold copies on the device too."""


def opening(session: Session, record: Record, classes: pa.Table) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
    """A program's figures, and the sentences that say them."""
    found: list[Mapping[str, Any]] = of_program(session.results.steps, record).to_pylist()
    step = found[0] if found else None
    facts = [*_run_facts(record, step), *_step_facts(step), *_floor_facts(classes, _kernel_time(record, step))]
    lines = [_kind_line(session, record), _run_line(record, step), _step_line(step), _floor_line(facts, classes)]
    return (*facts, *_explained(session, record)), tuple(line for line in lines if line)


def _fact(key: str, value: Value) -> Fact:
    """A named quantity as a fact."""
    return Fact(key, QUANTITIES[key].name, value, QUANTITIES[key].unit)


def _kernel_time(record: Record, step: Record | None) -> float | None:
    """That of a typical step; of a program without one nobody knows."""
    return step["typical_kernel_time_ns"] if step is not None else None


def _kind_line(session: Session, record: Record) -> str:
    """What kind of program it is, how surely, and by which evidence."""
    kind = session.joined.kinds.get(record["program_id"]) if record["program_id"] is not None else None
    if kind is None:
        return ""
    return f"{KINDS[kind.kind]} ({share(kind.confidence)} sure): {'; '.join(kind.evidence)}."


def _run_facts(record: Record, step: Record | None) -> Iterable[Fact]:
    yield Fact("program_kind", "kind of program", record["program_kind"])
    yield Fact("executions", "executions", record["executions"], "count")
    yield _fact("typical_kernel_time_ns", _kernel_time(record, step))
    yield _fact("kernel_time_ns", record["kernel_time_ns"])


def _run_line(record: Record, step: Record | None) -> str:
    runs, whole = record["executions"], record["complete_executions"]
    text = things(runs, "execution") + (f", {count(whole)} of them complete" if whole != runs else "")
    kernels = _kernel_time(record, step)
    if record["kernels_per_execution"] and kernels is not None:
        return f"{text}, {things(round(record['kernels_per_execution']), 'kernel')} and {duration(kernels)} of kernel time each."
    if record["busy_time_ns"] is not None:
        return f"{text}, {duration(record['busy_time_ns'])} of GPU work each, and no kernel on record."
    return f"{text}."


def _step_facts(step: Record | None) -> Iterable[Fact]:
    if step is None:
        return
    yield _fact("step_ns", step["typical_ns"])
    if not step["is_alone"]:
        yield _fact("idle_ns", step["idle_ns"])
    if step["floor_ns"] is not None:
        yield _fact("floor_ns", step["floor_ns"])
    for key in ("tokens_per_s", "floor_tokens_per_s"):
        if step["tokens_per_s"] and step[key]:
            yield _fact(key, step[key])


def _step_line(step: Record | None) -> str:
    """A typical step: its time, its tokens a second, and those that its floor would give."""
    if step is None or step["is_alone"]:
        return ""
    text = f"A typical step takes {duration(step['typical_ns'])}"
    if step["tokens_per_s"]:
        text += f" and makes {things(step['tokens_per_execution'], 'token')}: {rate(step['tokens_per_s'])} a second"
        if step["floor_tokens_per_s"]:
            text += f"; its floor would give {rate(step['floor_tokens_per_s'])}"
    if not step["typical_ns"]:  # all at one instant, as only damaged times are
        return f"{text}."
    text += f"; the GPU is idle for {duration(step['idle_ns'])} of it, {share(step['idle_ns'] / step['typical_ns'])}"
    kernels, rest = step["typical_kernel_time_ns"], step["typical_ns"] - step["idle_ns"]
    if kernels is not None and kernels > OVERLAPS * rest:
        return f"{text}. Kernels run side by side: {duration(kernels)} of them take {duration(rest)} of it."
    return f"{text}."


def byte_floor(classes: pa.Table, ceiling: str, kernels: float | None) -> tuple[float | None, float | None]:
    """A program's byte floor at a ceiling (measured, nominal), ns, and that floor over an execution's kernel time; None where unknown."""
    floor = pc.sum(classes[f"floor_{ceiling}_ns"]).as_py() or None
    return floor, floor / kernels if floor and kernels else None


def _floor_facts(classes: pa.Table, kernels: float | None) -> Iterable[Fact]:
    """How far an execution's kernels are from the fewest bytes it needs."""
    needed = pc.sum(classes["floor_bytes"]).as_py()
    if not needed or not kernels:
        return
    yield Fact("floor_bytes", "floor bytes", needed, "bytes")
    for name in ("measured", "nominal"):
        floor, ratio = byte_floor(classes, name, kernels)
        if floor:
            yield _fact(f"floor_{name}_ns", floor)
            yield _fact(f"of_floor_{name}", ratio)


def _floor_line(facts: Iterable[Fact], classes: pa.Table) -> str:
    values = {fact.key: fact for fact in facts}
    if "floor_bytes" not in values:
        return ""
    text = f"It must move at least {values['floor_bytes'].text} an execution{_needed_for(classes)}"
    for name in ("measured", "nominal"):
        if f"floor_{name}_ns" in values:
            floor, ratio = values[f"floor_{name}_ns"].text, values[f"of_floor_{name}"].text
            return f"{text}: {floor} at the {name} ceiling, {ratio} of its kernel time.{_with_arithmetic(values, name)}"
    return f"{text}."


def _with_arithmetic(values: Mapping[str, Fact], name: str) -> str:
    """The floor of the budget, where arithmetic makes it longer than its bytes take."""
    floor, of_bytes = values.get("floor_ns"), values[f"floor_{name}_ns"].value
    if floor is None or float(str(floor.value)) <= MORE * float(str(of_bytes)):
        return ""
    return f" With arithmetic its floor is {floor.text}."


def _needed_for(classes: pa.Table) -> str:
    """What the fewest bytes hold, in words."""
    names = ("floor_bytes", "weight_bytes", "kv_read_bytes", "kv_write_bytes")
    needed, weights, read, written = (pc.sum(classes[name]).as_py() or 0 for name in names)
    cache = min(read + written, needed)
    weights = min(weights, needed - cache)
    held = {"weights": weights, "KV caches": cache, "inputs and results": needed - weights - cache}
    there = [name for name, held_bytes in held.items() if held_bytes > 0]
    return f" ({', '.join(there)})" if there else ""


def _explained(session: Session, record: Record) -> Iterable[Fact]:
    """How much of the step the findings account for."""
    for one in explained(session.causes, session.results):
        if (one.hlo_module, one.program_id) == (record["hlo_module"], record["program_id"]):
            yield Fact("explained_ns", "explained by findings", one.explained_ns, "ns")
            yield _fact("explained_share", one.share)
            yield Fact("not_recorded_ns", "not recorded", one.not_recorded_ns, "ns")


def classes_total(session: Session, record: Record, classes: pa.Table) -> dict[str, Any] | None:
    """The classes' last row, None where only some are shown. Its bandwidth stands only where no kernel's bytes are unknown."""
    if (pc.sum(classes["time_share"]).as_py() or 0) < 0.999:
        return None
    total: dict[str, Any] = {name: pc.sum(classes[name]).as_py() for name in SUMMED}
    steps: list[Mapping[str, Any]] = of_program(session.results.steps, record).to_pylist()
    kernels = _kernel_time(record, steps[0] if steps else None)
    with_copies = (total["typical_ns"] or 0) > COPIES_COUNT * (kernels or 0)
    total |= {"kernel_class": "all, copies too" if with_copies else "all", "typical_share": 1.0, "time_share": 1.0}
    if not with_copies:
        total |= {f"time_per_execution{p}_ns": record[f"kernel_time{p}_ns"] for p in ("", "_p10", "_p90")}
    unknown = pc.max(pc.fill_null(classes["unknown_bytes_time_share"], 1.0)).as_py()
    if unknown == 0 and total["typical_ns"] and total["bytes_accessed"]:
        total |= _rates(total["bytes_accessed"] * 1e9 / total["typical_ns"], session.results.ceilings)
    return total


def _rates(bytes_per_s: float, ceilings: Ceilings) -> dict[str, Any]:
    measured, nominal = ceilings.measured, ceilings.nominal
    return {
        "bytes_per_s": bytes_per_s,
        "share_of_measured": bytes_per_s / measured.value if measured else None,
        "share_of_nominal": bytes_per_s / nominal.value if nominal else None,
    }
