"""What the reader must know before trusting a figure: what the capture lacks, what the join could not settle, what was not given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nsys_report.analysis.structure.branches import unrecorded_branches
from nsys_report.reports.model import Notice, Severity
from nsys_report.units import duration

if TYPE_CHECKING:
    from nsys_report.capture.health_items import HealthItem
    from nsys_report.session import Session

DUMP_FLAGS = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"
WITHOUT_CONTROL_FLOW = "XLA_FLAGS=--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN"
"""XLA's kinds of command buffers but CONDITIONAL and WHILE (xla/debug_options_flags.cc): the host then launches what they hold."""
SEVERITIES: dict[str, Severity] = {"fatal": "error", "warning": "warning", "info": "info", "ok": "ok"}


def all_notices(session: Session) -> Iterable[Notice]:
    """Everything there is to say, the capture's own lacks first."""
    yield from health_notices(session.health.items)
    yield from _xla(session)
    yield from _not_recorded(session)
    for note in session.joined.notes:
        yield Notice("join", _sentence(note), severity="warning")


def _not_recorded(session: Session) -> Iterable[Notice]:
    """Work of a graph's branches and loop bodies that the profiler left out: the GPU only looks idle there."""
    rows = [r for r in session.results.coverage.to_pylist() if (r["scope"], r["certainty"]) == ("total", "not_recorded")]
    for row in rows:
        text = (
            f"About {duration(row['kernel_time_ns'])} of GPU work are not in the capture: branches or loop bodies inside CUDA graphs "
            f"(conditional nodes), which this profiler did not record. Kernel times, bytes and classes leave them out."
        )
        missing = unrecorded_branches(session.results.view)
        if missing:
            text += f" By the dump it is {'; '.join(one.description for one in missing[:3])}{'; and more' if len(missing) > 3 else ''}."
        hint = f"To see them, capture once with control flow outside the graphs: {WITHOUT_CONTROL_FLOW}."
        yield Notice("not-recorded", text, hint, "warning")


def health_notices(found: Iterable[HealthItem], everything: bool = False) -> Iterable[Notice]:
    """What is wrong with the capture, worst first; with `everything`, what is well too, in the order of the check."""
    items = [item for item in found if everything or item.severity in ("fatal", "warning")]
    if not everything:
        items.sort(key=lambda item: item.severity != "fatal")
    for item in items:
        yield Notice(item.slug, _sentence(item.text), _sentence(item.remedy), SEVERITIES[item.severity])


def _sentence(text: str) -> str:
    """A capital at the start and a full stop at the end, but where a command or a flag stands there."""
    start = text[:1] if text.startswith(("nsys ", "-")) else text[:1].upper()
    return start + text[1:] + ("." if text[-1:].isalnum() or text.endswith(("%", ")")) else "")


def _xla(session: Session) -> Iterable[Notice]:
    """Nothing of XLA, or nothing to join it to."""
    if len(session.joined.executions):
        if session.xla_dump is None:
            hint = f"Run with {DUMP_FLAGS}, and give the directory: --xla-dump DIR."
            yield Notice("no-dump", "No XLA dump was given: kernels have no HLO instruction, class or bytes.", hint, "info")
        return
    if session.health.xla_modules:
        return
    if session.xla_dump is None:
        hint = f"If XLA ran, give what it wrote: --xla-dump DIR ({DUMP_FLAGS})."
        yield Notice("no-xla", "Nothing of XLA is in this capture: it has none of XLA's ranges, and no dump was given.", hint, "info")
    else:
        hint = "Give the dump that the same run wrote."
        yield Notice("no-fit", f"Nothing in this capture is a program of {session.xla_dump.name}.", hint, "warning")
