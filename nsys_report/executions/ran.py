"""What a capture says ran, by name: for choosing among a dump's files."""

from __future__ import annotations

import pyarrow as pa

from hlo_mapping import Ran
from nsys_report.executions.nvtx import named_programs


def what_ran(activities: pa.Table, nvtx: pa.Table) -> Ran:
    """The names of all kernels, and of modules by number as XLA's ranges give them."""
    names = activities["name"].combine_chunks()
    kernels = frozenset(word for word in names.dictionary.to_pylist() if word) if len(names) else frozenset[str]()
    return Ran(kernels, named_programs(nvtx["text"].unique().to_pylist()))
