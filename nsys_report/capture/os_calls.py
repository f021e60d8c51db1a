"""Calls of the operating system's runtime (nsys -t osrt) that the threads made which give work to the device."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsys_report.capture import catalogue
from nsys_report.capture.arrays import arrange, encode, integers, word_column
from nsys_report.capture.catalogue import resolve
from nsys_report.capture.model import OS_CALLS
from nsys_report.capture.plausibility import impossible_spans
from nsys_report.capture.repeats import without_repeats
from nsys_report.capture.source import IsIn, Source
from nsys_report.capture.strings import Strings
from nsys_report.capture.tables import read_table

MOST_OS_CALLS = 500_000
"""Rows of all threads up to which the table is read: some 0.2 s; a capture may hold tens of millions."""
_KEYS = ("thread", "name")


def read_os_calls(source: Source, strings: Strings, activities: pa.Table) -> pa.Table:
    """Schema OS_CALLS: the calls of the threads that launched `activities` (schema ACTIVITY), in order of start.

    Empty where none were traced or more than MOST_OS_CALLS. What has no name, no end or times that cannot be is left out: nothing is
    counted by these calls, they only say what a thread did.
    """
    table = resolve(catalogue.OS_RUNTIME.name, source.columns)
    threads = tuple(pc.unique(activities.column("launch_thread")).drop_null().to_pylist())
    if table is None or not threads or "globalTid" not in source.columns[table] or source.count(table) > MOST_OS_CALLS:
        return OS_CALLS.empty_table()
    raw = read_table(source, catalogue.OS_RUNTIME, (IsIn("globalTid", threads),))
    assert raw is not None
    start, end = integers(raw["start"], 0), integers(raw["end"], -1)
    whole = pc.and_(pc.and_(raw["start"].is_valid(), raw["end"].is_valid()), raw["nameId"].is_valid()).to_numpy(zero_copy_only=False)
    raw = {name: values.filter(pa.array(whole & (end > start) & ~impossible_spans(start, end, None))) for name, values in raw.items()}
    codes, ids = encode(raw.pop("nameId"))
    known = strings.fetch(int(i) for i in ids if isinstance(i, int))
    columns = {
        "start_ns": raw.pop("start"),
        "end_ns": raw.pop("end"),
        "thread": raw.pop("globalTid"),
        "name": word_column(codes, [known.get(int(i)) for i in ids if isinstance(i, int)]),
    }
    found = arrange([columns], OS_CALLS)
    named = found.filter(pa.array(np.asarray(found.column("name").is_valid())))
    return without_repeats(named, _KEYS)[0]
