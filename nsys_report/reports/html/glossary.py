"""What the page's words mean, for who reads one for the first time, and running text that breaks where it should."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from nsys_report.quantities import QUANTITIES, STATISTICS
from nsys_report.reports.budget_page import CATEGORIES
from nsys_report.reports.model import Report
from nsys_report.units import visible

PARTS = {
    "floor": "the least time of a step at the ceiling: bytes that no rewriting avoids (inputs, weights, caches, results), or arithmetic",
    "traffic": "time that bytes beyond those take at the ceiling: intermediate results written out and read back, copies of weights",
    "below_roof": "time that kernels take longer than their bytes and their arithmetic would at the ceilings",
    "kernels": "time of kernels whose bytes are unknown, so that no floor can be set for them",
    "not_recorded": "time in which a branch or loop body of a CUDA graph ran whose kernels the profiler did not record",
    "other_executions": "time that the GPU spends on other programs between two steps of this one",
    "copies": "time in which only copies run or are waited for: to the device, on it, and back to the host",
    "idle": "short waits of the GPU between two kernels of the same execution",
    "launch": "time in which the GPU waits for kernels or CUDA graphs to be launched",
    "host": "time in which the GPU waits for the program's own code on the CPU, and for XLA before it launches",
    "compile": "time in which the GPU waits for XLA to compile",
    "profiler": "time in which the GPU waits for the profiler; without it a step is that much shorter",
}
"""What each part of a step's budget is, by its key."""
CERTAINTY = {
    "sure": "sure: the capture shows it",
    "likely": "likely: everything in the capture speaks for it",
    "possible": "possible: another cause could look the same; the gain is at most this",
}
"""What the words mean that say how sure a finding is."""
CACHE_CLASSES = ("kv_write", "kv_gather")
"""Classes that only programs with a cache of keys and values have: the page of another says nothing of them."""
_FIRST = (
    ("execution", "one run of one compiled XLA program on one GPU. Its name's number (#21184) is XLA's own"),
    *((q.name, q.meaning) for q in QUANTITIES.values() if q.statistic in ("typical", "median")),
    ("typical", STATISTICS["typical"]),
    ("median, p10, p90", "half of the executions took less than the median, a tenth less than p10, nine tenths less than p90"),
)
_LAST = (
    ("ceiling", "what the GPU's memory can move in a second: measured by a large copy, or nominal as the maker states it"),
    ("roof", "the least time an instruction can take: its bytes at the bandwidth ceiling, or its arithmetic at the peak of its type"),
    *((q.name, q.meaning) for q in QUANTITIES.values() if q.statistic == "ratio" and "token" not in q.name),
    ("▲", "implied bandwidth above the ceiling: a cache served it, or the bytes are counted wrong"),
    ("class", "what an instruction works on, by the program's dataflow: weights (model parameters), attention (scores, softmax, weighted "
              "sum), other (all else, see detail), unknown (not joined)"),
    (", ".join(CACHE_CLASSES), "classes of instructions that write entries to the cache of keys and values, and read them from it"),
    ("instruction", "a line of HLO, XLA's program after its optimizations; each kernel is joined to the one that launched it"),
    ("layer", "a sequence of kernels that repeats in an execution"),
    ("DtoH, HtoD, DtoD", "copies from the GPU (device) to the host, from the host to the GPU, and on the GPU"),
    ("coverage", "how much of the kernel time is joined to an instruction, how, and how surely"),
)  # fmt: skip
TERMS: tuple[tuple[str, str], ...] = (
    *_FIRST,
    *((CATEGORIES[key], meaning) for key, meaning in PARTS.items()),
    *_LAST,
    (", ".join(CERTAINTY), "how sure a finding is. " + "; ".join(CERTAINTY.values())),
)
"""Terms with their meaning, in the order in which the page uses them."""


def terms_of(report: Report) -> tuple[tuple[str, str], ...]:
    """The terms that a report's page explains: of a cache only where a table has a row of its classes."""
    tables = (table for part in report.parts for section in part.sections for table in section.tables)
    cached = any(value in CACHE_CLASSES for table in tables for row in table.rows for value in row.values)
    return tuple(term for term in TERMS if cached or term[0] != ", ".join(CACHE_CLASSES))


_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGT]?B|[nµm]?s|GB/s|[kMGTP]?FLOPS?)(?![A-Za-z]))")
_UNBROKEN = re.compile(r"(?<![\w-])--?[A-Za-z][\w.=,'-]{0,38}(?![\w-])|\b\d{4}-\d\d\b")


def prose(text: str | None) -> Markup:
    """Running text in which no line ends between a figure and its unit, nor within a short flag or a date."""
    said = visible(text or "")
    out: list[Markup] = []
    at = 0
    for found in _UNBROKEN.finditer(said):
        out += [_tied(said[at : found.start()]), Markup('<span class="tied">{}</span>').format(found[0])]
        at = found.end()
    return Markup("").join([*out, _tied(said[at:])])


def _tied(text: str) -> Markup:
    return escape(_BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text))
