"""`nsys-report record`; see nsys_report.cli.history."""

from __future__ import annotations

from nsys_report.cli.history import record as command

__all__ = ["command"]
