"""What a step benchmark found, and the line of JSON it becomes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FORMAT = "nsys-report steps"
VERSION = 1


@dataclass(frozen=True, slots=True)
class StepResult:
    """Times of steps, ns, each synchronized and timed alone. `peak_bytes` is None where nobody told."""

    first_step_ns: int
    """The first step alone: it compiles."""
    warmup_steps: int
    """Steps between the first and the timed ones."""
    steps_ns: tuple[int, ...]
    """The timed steps."""
    compile_count: int | None
    """Compiles of the step's function after warm-up; None where nothing counted them."""
    peak_bytes: int | None = None
    gpu: str | None = None
    contended: bool | None = None
    """Whether others used the GPU before the run; None where nothing could be asked."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def median_ns(self) -> float:
        return self._quantile(0.5)

    @property
    def p10_ns(self) -> float:
        return self._quantile(0.1)

    @property
    def p90_ns(self) -> float:
        return self._quantile(0.9)

    @property
    def mean_ns(self) -> float:
        return float(np.mean(self.steps_ns))

    @property
    def min_ns(self) -> int:
        return min(self.steps_ns)

    @property
    def max_ns(self) -> int:
        return max(self.steps_ns)

    def _quantile(self, q: float) -> float:
        return float(np.quantile(self.steps_ns, q))

    def document(self, name: str) -> dict[str, Any]:
        """The result as plain values, under a name."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": name,
            "gpu": self.gpu,
            "contended": self.contended,
            "first_step_ns": self.first_step_ns,
            "warmup_steps": self.warmup_steps,
            "timed_steps": len(self.steps_ns),
            "median_ns": self.median_ns,
            "p10_ns": self.p10_ns,
            "p90_ns": self.p90_ns,
            "mean_ns": self.mean_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "peak_bytes": self.peak_bytes,
            "compile_count": self.compile_count,
            "environment": dict(self.environment),
        }

    def to_json(self, name: str) -> str:
        """One line, which `nsys-report record` takes."""
        return json.dumps(self.document(name), ensure_ascii=False)
