"""One analyzed capture as a value: what the pipeline makes, and what pages, pictures, comparisons and notebooks take."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

if TYPE_CHECKING:
    from nsys_report.analysis.results import AnalysisResults
    from nsys_report.analysis.whatif import WhatIf
    from nsys_report.capture.health import Health
    from nsys_report.counters.model import Counters
    from nsys_report.findings.model import Finding, Place
    from nsys_report.joined import Joined
    from nsys_report.sources import Sources


@dataclass(frozen=True, slots=True, repr=False)
class Session:
    """A capture joined to its dump, what was computed from it, and what there is to say about it."""

    name: str
    """What reports call it: the capture's file name unless somebody names it otherwise."""
    joined: Joined
    results: AnalysisResults
    health: Health
    xla_dump: Path | None = None
    causes: tuple[Finding, ...] = ()
    """Causes of lost time, most to be gained first."""
    chosen: tuple[int, ...] = ()
    """The ids of the executions that it was narrowed to; () for all."""
    narrowed: str = ""
    """What it was narrowed to, in words; "" for the whole capture."""
    predictions: WhatIf | None = None
    """What the step would be if something were otherwise, where that is asked."""
    counters: Counters | None = None
    """What hardware counted, where the capture or a profile beside it says."""

    def named(self, name: str) -> Self:
        """The same under another name."""
        return replace(self, name=name)

    def with_sources(self, sources: Sources) -> Self:
        """The same, its findings with the lines of source that they rest on."""
        causes = tuple(replace(cause, places=tuple(_with_snippet(place, sources) for place in cause.places)) for cause in self.causes)
        return replace(self, causes=causes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Packed small, so that one process can analyze a capture and another lay many together: what follows from the rest is left out
        (View, and the instructions of Program, which its text gives again), and the rest is compressed."""
        state = pickle.dumps(tuple(getattr(self, field.name) for field in fields(self)), pickle.HIGHEST_PROTOCOL)
        return _unpacked, (type(self), _CODEC.compress(state, asbytes=True), len(state))


def _with_snippet(place: Place, sources: Sources) -> Place:
    if not place.source_file or not place.source_line:
        return place
    return replace(place, snippet=sources.snippet(place.source_file, place.source_line))


_CODEC = pa.Codec("zstd", compression_level=9)


def _unpacked(kind: type[Session], packed: bytes, size: int) -> Session:
    return kind(*pickle.loads(_CODEC.decompress(packed, size, asbytes=True)))
