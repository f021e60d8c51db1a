"""What `check` says: what a capture can and cannot answer, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import index_dump
from nsys_report.reports.capture_sections import headline
from nsys_report.reports.model import Notice, Section, Severity
from nsys_report.reports.notices import all_notices, health_notices
from nsys_report.reports.survey_page import answers, records_notice
from nsys_report.units import count, share, things

if TYPE_CHECKING:
    from nsys_report.session import Session

WELL = 0.9
"""Share of the kernel time joined with confidence from which a dump fits."""
METHODS = {"nvtx": "XLA's NVTX ranges", "sequence": "what they launch"}
DUMP_HINT = "Give the dump that the same run wrote; `report` shows under Coverage what was not joined."
WINDOW_HINT = "Wait for the device (block_until_ready) before cudaProfilerStart and cudaProfilerStop."


def check_section(session: Session) -> Section:
    """One capture's check, in about a dozen lines."""
    own = [notice for notice in all_notices(session) if notice.slug not in {item.slug for item in session.health.items}]
    notices = (
        *_records(session),
        *health_notices(session.health.items, everything=True),
        *_executions(session),
        *_dump(session),
        *_coverage(session),
        *own,
        *_ceilings(session),
    )
    kept = tuple(notice for notice in notices if notice.slug != "kernels" or notice.severity != "ok")  # the records say it
    return Section("check", session.name, (headline(session), *_answers(session)), notices=kept, module=session.name)


def _answers(session: Session) -> Iterable[str]:
    """The questions that people bring, by whether this capture and dump answer them."""
    return answers(_questions(session))


def _questions(session: Session) -> Iterable[tuple[str, bool]]:
    damaged, joined = session.health.is_damaged, session.results.joined_share or 0.0
    runs = bool(len(session.joined.executions)) and not damaged
    kernels = bool(session.health.kernels) and not damaged
    yield "which kernels take the time", kernels
    yield "which programs ran, how long, and the gaps between them", runs
    yield "what the host did in the gaps", runs and bool(len(session.joined.capture.runtime))
    yield "which HLO instructions and classes take the time", kernels and runs and joined >= WELL
    yield "how far from the bandwidth ceiling", kernels and runs and joined >= WELL and session.results.ceilings.roof is not None


def _records(session: Session) -> Iterable[Notice]:
    """What was recorded, and which tables are absent or empty."""
    capture = session.joined.capture
    kinds = _words(session.joined.activities["activity"])
    kernels, graphs = kinds.get("kernel", 0), kinds.get("graph", 0)

    def rows(table: str) -> int:
        return sum(number for name, number in capture.tables.items() if name.startswith(table))

    recorded = {
        "kernels": kernels,
        "copies and memsets": kinds.get("memcpy", 0) + kinds.get("memset", 0),
        "API calls": len(capture.runtime),
        "NVTX events": rows("NVTX_EVENTS"),
        "synchronisations": rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
        "allocations": len(capture.memory_usage),
    }
    yield records_notice(recorded, bool(kernels or graphs))


def _words(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each word of a column occurs."""
    return {str(entry["values"]): entry["counts"] for entry in pc.value_counts(column).to_pylist()}


def _executions(session: Session) -> Iterable[Notice]:
    """How the executions were found, and how many the window cut off."""
    table = session.joined.executions
    if not len(table):
        return
    methods = sorted(_words(table["cut_method"]).items(), key=lambda item: -item[1])
    found = {METHODS.get(method, method): number for method, number in methods}
    by = " and ".join(found) if len(found) == 1 else " and ".join(f"{method} ({count(number)})" for method, number in found.items())
    text = f"{things(len(table), 'execution')} of {things(len(session.results.modules), 'program')}, found by {by}."
    yield Notice("executions", text, severity="ok")
    cut = len(table) - (pc.sum(table["is_complete"]).as_py() or 0)
    if cut:
        yield Notice(
            "cut-off", f"{things(cut, 'execution')} cut off by the window or lost records; figures leave them out.", WINDOW_HINT, "info"
        )


def _dump(session: Session) -> Iterable[Notice]:
    """What the dump holds of what ran."""
    if session.xla_dump is None:
        return
    dump, programs = index_dump(session.xla_dump, session.joined.ran()), session.joined.programs
    ran = [(row["program_id"], row["hlo_module"]) for row in session.results.modules.select(["program_id", "hlo_module"]).to_pylist()]
    known = sum(number is None or number in programs for number, _ in ran)
    text = f"The dump holds {things(len(dump.numbers), 'program')}, {_of(known, len(ran))} among them"
    bare = sum(not p.has_thunk_sequence for p in programs.values())
    if bare:
        text += f"; of {count(bare)} no thunk sequence, so that the schedule of the HLO stands for it"
    severity: Severity = "info" if not ran else "ok" if known == len(ran) else "warning"
    yield Notice("dump", f"{text}.", DUMP_HINT if 2 * known < len(ran) else "", severity)
    for problem in dump.problems:
        yield Notice("dump-problem", f"{problem[:1].upper()}{problem[1:]}.", "Give each run an empty directory.", "warning")


def _of(part: int, whole: int) -> str:
    if not whole:
        return "none that is known to have run"
    return f"all {count(whole)} that ran" if part == whole else f"{count(part)} of the {count(whole)} that ran"


def _coverage(session: Session) -> Iterable[Notice]:
    """How much a report of this capture and dump would join."""
    joined = session.results.joined_share
    if joined is None or not len(session.joined.executions) or session.xla_dump is None:
        return
    text = f"{share(joined)} of the kernel time is joined to HLO instructions with confidence."
    yield Notice("coverage", text, DUMP_HINT if joined < WELL else "", "ok" if joined >= WELL else "warning")


def _ceilings(session: Session) -> Iterable[Notice]:
    """Whether there is anything to measure bandwidths against."""
    ceilings = session.results.ceilings
    if ceilings.measured is None:
        text = "No measured bandwidth is known of this GPU" + ("" if ceilings.nominal else ", and no nominal one") + "."
        yield Notice("ceilings", text, "nsys-report ceilings measure on it, or --ceiling measured=GB/s.", "info")
