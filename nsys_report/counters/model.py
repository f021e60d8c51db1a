"""What counters say of one capture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from nsys_report.analysis.results import AnalysisResults
from nsys_report.capture.gpu_metrics import read_gpu_metrics
from nsys_report.counters.instructions import Overlay, lay_over
from nsys_report.counters.ncu import Profiled
from nsys_report.counters.sampled import Sampled, sampled_programs
from nsys_report.joined import Joined


@dataclass(frozen=True, slots=True)
class Counters:
    """Traffic that the capture's own samples show, and what Nsight Compute measured of its instructions; empty and None without."""

    sampled: tuple[Sampled, ...] = ()
    profiled: Overlay | None = None

    def of(self, programs: Collection[tuple[str | None, int | None]]) -> Counters:
        """What concerns some programs alone, by module name and number."""
        sampled = tuple(one for one in self.sampled if (one.hlo_module, one.program_id) in programs)
        if self.profiled is None:
            return Counters(sampled)
        kept = tuple(one for one in self.profiled.instructions if (one.hlo_module, one.program_id) in programs)
        return Counters(sampled, replace(self.profiled, instructions=kept))


def count_traffic(joined: Joined, results: AnalysisResults, profiled: Sequence[Profiled] | None) -> Counters | None:
    """The counters of a capture; None where there are none. Reads the capture's samples where it holds any."""
    has_samples = any(rows for name, rows in joined.capture.tables.items() if name.startswith("GPU_METRICS"))
    sampled = sampled_programs(joined, results, read_gpu_metrics(joined.capture.path)) if has_samples else ()
    overlay = lay_over(joined, profiled) if profiled is not None else None
    return Counters(sampled, overlay) if sampled or overlay is not None else None
