"""From a joined capture to figures: `compute_results(joined, ceilings)`."""

from nsys_report.analysis.results import AnalysisResults, compute_results
from nsys_report.analysis.roofline.ceilings import Ceilings, find_ceilings, parse_overrides

__all__ = ["AnalysisResults", "Ceilings", "compute_results", "find_ceilings", "parse_overrides"]
