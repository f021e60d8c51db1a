"""`nsys-report bench`; see nsys_report.cli.history."""

from __future__ import annotations

from nsys_report.cli.history import bench as command

__all__ = ["command"]
