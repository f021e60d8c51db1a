"""The command lines of nsys: profile and export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from nsys_report.nsys_tool import Nsys
from nsys_report.profiling.window_spec import WindowSpec

GraphMode = Literal["node", "graph"]
TRACES = "cuda,nvtx"
WITHOUT_NVTX = "cuda"
"""What remains traced where NVTX ranges stop the importer; kernels are then joined without XLA's ranges."""


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """One run of a program under nsys: what runs, what is recorded, where it goes."""

    nsys: Nsys
    program: Sequence[str]
    window: WindowSpec
    folder: Path
    """Empty or not there yet; holds everything of the run."""
    name: str = "capture"
    traces: str = TRACES
    graph_mode: GraphMode = "node"
    end_program: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    """Set over the environment at hand."""

    @property
    def dump(self) -> Path:
        return self.folder / "xla_dump"

    @property
    def record(self) -> Path:
        return self.folder / f"{self.name}.nsys-rep"

    @property
    def export(self) -> Path:
        return self.folder / f"{self.name}.sqlite"

    def profile_command(self) -> list[str]:
        """`nsys profile`: no sampling and no context switches, which slow the program and which no figure needs."""
        return [
            self.nsys.path,
            "profile",
            f"--trace={self.traces}",
            f"--cuda-graph-trace={self.graph_mode}",
            "--sample=none",
            "--cpuctxsw=none",
            *self.window.options(self.end_program),
            "--force-overwrite=true",
            f"--output={self.folder / self.name}",
            *self.program,
        ]

    def export_command(self) -> list[str]:
        return [self.nsys.path, "export", "--type=sqlite", "--force-overwrite=true", f"--output={self.export}", str(self.record)]

    def without_nvtx(self, folder: Path) -> CapturePlan:
        """The same run where NVTX is not traced."""
        return replace(self, traces=WITHOUT_NVTX, folder=folder)
