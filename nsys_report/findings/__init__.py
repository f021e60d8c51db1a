"""What costs time and what to do about it: `find(joined, results)`."""

from nsys_report.findings.apply import find
from nsys_report.findings.model import Finding

__all__ = ["Finding", "find"]
