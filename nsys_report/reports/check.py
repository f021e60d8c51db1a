"""What `check` says: what a capture can and cannot answer, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from nsys_report.reports.model import Notice, Section
from nsys_report.reports.notices import all_notices, health_notices
from nsys_report.reports.units import share, things
from nsys_report.reports.whole import headline

if TYPE_CHECKING:
    from nsys_report.reports.build import Subject


def check_section(subject: Subject) -> Section:
    """One capture's check, in about a dozen lines."""
    own = [notice for notice in all_notices(subject) if notice.slug not in {item.slug for item in subject.health.items}]
    notices = (*health_notices(subject.health, everything=True), *_executions(subject), *_coverage(subject), *own)
    return Section("check", subject.name, (headline(subject),), notices=notices, module=subject.name)


def _executions(subject: Subject) -> Iterable[Notice]:
    """How the executions were found, and how many the window cut off."""
    table = subject.joined.executions
    if not len(table):
        return
    methods = ", ".join(sorted(str(m) for m in pc.unique(table["cut_method"].cast("string")).to_pylist() if m is not None))
    programs = len(subject.results.modules)
    text = f"{things(len(table), 'execution')} of {things(programs, 'program')}, found by {methods}."
    yield Notice("executions", text, severity="ok")
    cut = len(table) - (pc.sum(table["is_complete"]).as_py() or 0)
    if cut:
        text = f"{things(cut, 'execution')} cut off by the capture's window or lost records; figures leave them out."
        yield Notice("cut-off", text, "Wait for the device (block_until_ready) before cudaProfilerStart and cudaProfilerStop.", "info")


def _coverage(subject: Subject) -> Iterable[Notice]:
    """How much a report of this capture and dump would join."""
    joined = subject.results.joined_share
    if joined is None or not len(subject.joined.executions) or subject.xla_dump is None:
        return
    text = f"{share(joined)} of the kernel time is joined to HLO instructions with confidence."
    hint = "Give the dump that the same run wrote; `report` shows under Coverage what was not joined." if joined < 0.9 else ""
    yield Notice("coverage", text, hint, "ok" if joined >= 0.9 else "warning")
