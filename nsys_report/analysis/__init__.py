"""From a joined capture to figures: `analyse(joined, ceilings)`."""

from nsys_report.analysis.ceilings import Ceilings, find_ceilings, parse_overrides
from nsys_report.analysis.results import AnalysisResults, analyse

__all__ = ["AnalysisResults", "Ceilings", "analyse", "find_ceilings", "parse_overrides"]
