"""What an analysis is written as, by the ending of a path."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_report.columns import ACTIVITY_TABLE, EXECUTION_TABLE
from nsys_report.errors import UsageError
from nsys_report.reports.build import TOP, build_report
from nsys_report.reports.export import write_json, write_tables, write_whole
from nsys_report.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

    from nsys_report.reports.model import Report
    from nsys_report.session import Session


def save(session: Session, path: Path) -> Path:
    """Writes the file that the path's ending names, a directory of tables where it has none. Raises UsageError, InputError."""
    if path.suffix == "":
        write_tables(tables(session), path)
        return path
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise UsageError(f"nothing is written as {path.suffix}", f"end it in {', '.join(WRITERS)}, or in nothing for tables", "output")
    write(session, path)
    return path


def tables(session: Session) -> dict[str, pa.Table]:
    """The tables that are written as Parquet files, by file name without ending."""
    return {
        "activities": session.joined.complete().select(ACTIVITY_TABLE.names),
        "executions": session.joined.executions.select(EXECUTION_TABLE.names),
        "instructions": session.results.instructions,
        "classes": session.results.classes,
    }


def report(session: Session, top: int | None) -> Report:
    """The report on one analysis, `top` rows of long tables on short pages."""
    return build_report([session], f"nsys-report {__version__}", top)


def html_page(session: Session) -> str:
    """The page of one analysis."""
    from nsys_report.reports.html.content import build_page
    from nsys_report.reports.html.page import render

    return render(build_page(report(session, TOP), [session]))


@dataclass(frozen=True, slots=True, repr=False)
class Framed:
    """A page that Jupyter shows in a frame of its own; `html` is the page, `height` the frame's, in pixels."""

    html: str
    height: int = 640

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Writes the page. Raises InputError where it cannot be written."""
        write_text(self.html, Path(path))
        return Path(path)


def timeline(session: Session, execution: int | None) -> Framed:
    """The capture's timeline, which opens on an execution (its id), or on a median one. Raises UsageError for one that is not there."""
    from nsys_report.reports.html.content import timeline_page
    from nsys_report.reports.html.page import render_timeline

    ids = session.joined.executions["execution_id"].to_pylist()
    if execution is not None and execution not in ids:
        there = f"they are numbered {min(ids)} to {max(ids)}" if ids else "it holds none: without XLA there are no executions"
        raise UsageError(f"no execution {execution} in this capture", there)
    page = timeline_page(session, ids.index(execution) if execution is not None else None, f"nsys-report {__version__}")
    if not page.contents:
        raise UsageError("nothing to draw: nothing ran on a GPU in this capture", "the analysis itself shows what there is")
    return Framed(render_timeline(page))


def write_text(text: str, path: Path) -> None:
    """Writes a text whole. Raises InputError."""
    write_whole(path, lambda out: out.write(text.encode("utf-8", "backslashreplace")))


def _html(session: Session, path: Path) -> None:
    write_text(html_page(session), path)


def _json(session: Session, path: Path) -> None:
    write_json(report(session, None), path)


def _markdown(session: Session, path: Path) -> None:
    from nsys_report.reports.markdown import render

    write_text(render(report(session, TOP)), path)


def _perfetto(session: Session, path: Path) -> None:
    from nsys_report.reports.perfetto.trace import trace

    pieces, _ = trace({session.name: session})
    write_whole(path, lambda out: out.writelines(pieces))


WRITERS: dict[str, Callable[[Session, Path], None]] = {".html": _html, ".json": _json, ".md": _markdown, ".pftrace": _perfetto}
