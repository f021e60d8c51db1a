"""`nsys-report compare`; see nsys_report.cli.history."""

from __future__ import annotations

from nsys_report.cli.history import compare as command

__all__ = ["command"]
