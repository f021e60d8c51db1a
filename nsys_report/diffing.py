"""The way in from Python to comparisons: `nsys_report.diff(before, after)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_report.comparison.compare import compare
from nsys_report.comparison.noise import Noise
from nsys_report.errors import UsageError
from nsys_report.notebook import Analysis, analyze
from nsys_report.reports.diff_document import diff_document
from nsys_report.reports.diff_page import build_diff_report, headline
from nsys_report.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from nsys_report.comparison.model import Comparison, ProgramChange, Verdict
    from nsys_report.reports.model import Report

Given = str | Path | Analysis
"""A capture by its path, or its analysis."""
MADE_BY = f"nsys-report {__version__}"


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """A comparison of captures, shown by Jupyter.

    >>> nsys_report.diff(a, a).verdict
    'same'
    """

    comparison: Comparison
    before: tuple[Analysis, ...]
    after: tuple[Analysis, ...]

    @property
    def verdict(self) -> Verdict:
        """same, slower, faster or unsure.

        >>> d.verdict
        'same'
        """
        return self.comparison.verdict

    @property
    def programs(self) -> tuple[ProgramChange, ...]:
        """The programs of both sides, paired, most kernel time first, with what changed in each.

        >>> d.programs[0].name
        'jit_decode_step#21184'
        """
        return self.comparison.programs

    @property
    def instructions(self) -> pd.DataFrame:
        """A row per instruction or group of them: names, change, times, verdict; most changed first.

        >>> d.instructions["change"].unique().tolist()
        ['same']
        """
        import pandas as pd

        rows = []
        for row in self.document()["instructions"]:
            time = row["quantities"]["time_ns"]
            figures = {key: time[key] for key in ("difference", "relative", "low", "high", "verdict")}
            names = {key: row[key] for key in ("program", "before", "after", "change", "became", "identical")}
            rows.append({**names, "before_ns": time["before"], "after_ns": time["after"], **figures})
        return pd.DataFrame(rows)

    def document(self) -> dict[str, Any]:
        """What `nsys-report diff --json` writes, as plain values.

        >>> d.document()["verdict"]
        'same'
        """
        return diff_document(self.comparison, MADE_BY)

    def report(self, top: int | None = 12) -> Report:
        """The comparison as sections and tables, `top` rows of long tables on short pages.

        >>> d.report().parts[0].headline
        'jit_decode_step: kernel time same ...'
        """
        return build_diff_report(self.comparison, MADE_BY, top)

    def html(self) -> str:
        """The page that `nsys-report diff --html` writes.

        >>> d.html().startswith("<!doctype html>")
        True
        """
        from nsys_report.reports.diff_lanes import lanes_of
        from nsys_report.reports.html.diff import render_diff

        main = self.comparison.main()
        return render_diff(self.report(), main, lanes_of(main, self.before[0], self.after[0]))

    def __repr__(self) -> str:
        return f"<Diff: {headline(self.comparison)}>"

    def _repr_html_(self) -> str:
        """Its findings and its small tables."""
        from nsys_report.reports.html.cell import render_cell

        return render_cell(self.report().parts[0])


def diff(
    before: Given | Sequence[Given],
    after: Given | Sequence[Given],
    *,
    before_dump: str | Path | Sequence[str | Path] | None = None,
    after_dump: str | Path | Sequence[str | Path] | None = None,
    kernel_noise: float | None = None,
    host_noise: float | None = None,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Diff:
    """Compares one or several captures before a change with those after it.

    A side is a path, an Analysis, or several of either; a dump goes to each path of a side, or one to all. `kernel_noise` and `host_noise`
    are the shares by which runs of one program are taken to differ where a side has one capture. Raises what `analyze` raises.

    >>> nsys_report.diff("capture.sqlite", "capture.sqlite", before_dump="xla_dump", after_dump="xla_dump")
    <Diff: jit_decode_step: kernel time same ...>
    """
    sides = [_analyses(side, dump) for side, dump in ((before, before_dump), (after, after_dump))]
    given = {"kernel": kernel_noise, "host": host_noise}
    noise = Noise(**{key: value for key, value in given.items() if value is not None})
    return Diff(compare(sides[0], sides[1], noise, names), tuple(sides[0]), tuple(sides[1]))


def _analyses(side: Given | Sequence[Given], dump: str | Path | Sequence[str | Path] | None) -> list[Analysis]:
    members = [side] if isinstance(side, (str, Path, Analysis)) else list(side)
    dumps = [dump] if dump is None or isinstance(dump, (str, Path)) else list(dump)
    if not members:
        raise UsageError("a side of the comparison has no capture", "give a capture before and one after")
    if len(dumps) not in (1, len(members)):
        raise UsageError(f"{len(dumps)} dumps for {len(members)} captures of a side", "give one for all, or one for each")
    dumps = dumps if len(dumps) == len(members) else dumps * len(members)
    return [m if isinstance(m, Analysis) else analyze(m, d) for m, d in zip(members, dumps, strict=True)]
