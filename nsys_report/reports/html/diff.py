"""A comparison as one page without scripts: the way from before to after, an execution of each side, and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from nsys_report.reports.diff_page import part_words, waterfall
from nsys_report.reports.html.page import TEMPLATES, colors_css, page_environment, policy
from nsys_report.reports.palette import CLASSES
from nsys_report.units import change, duration

if TYPE_CHECKING:
    from nsys_report.comparison.model import ProgramChange
    from nsys_report.reports.diff_lanes import Lane
    from nsys_report.reports.model import Report

MOST_BARS = 14


def render_diff(report: Report, programs: Sequence[ProgramChange], lanes: Mapping[str, Sequence[Lane]]) -> str:
    """The page; `lanes` are the executions to draw for a section, by its key."""
    drawn = {b.kernel_class for both in lanes.values() for lane in both for b in lane.blocks}
    return static_page(
        "diff.html",
        part=report.parts[0],
        made_by=report.made_by,
        falls={f"program:{p.name}": fall for p in programs if (fall := _fall(p)) is not None},
        timelines={key: _drawn(both) for key, both in lanes.items()},
        classes=[name for name in CLASSES if name in drawn],
    )


def static_page(template: str, **values: Any) -> str:
    """A page that runs no script: the template with the report's style."""
    environment = page_environment()
    style = Markup((TEMPLATES / "page.css").read_text(encoding="utf-8") + colors_css())
    allowed = policy([]).replace("script-src ;", "script-src 'none';")
    return environment.get_template(template).render(policy=allowed, style=style, **values)


def _fall(program: ProgramChange) -> dict[str, Any] | None:
    """The bars of the way from the mean step before to the one after; each part starts where the last ended."""
    step = program.quantity("step_ns")
    if step is None or step.before is None or step.after is None or not program.parts:
        return None
    before, after = step.before.mean or 0.0, step.after.mean or 0.0
    edges, level = [], before
    for part in (parts := waterfall(program, MOST_BARS)):
        edges.append((part_words(part), level, level + part.difference))
        level += part.difference
    reach = [0.0, before, after, *(e for _, *pair in edges for e in pair)]
    low, width = min(reach), (max(reach) - min(reach)) or 1.0

    def bar(label: str, start: float, end: float, kind: str, text: str) -> dict[str, Any]:
        at = (min(start, end) - low) / width * 100
        return {"label": label, "x": f"{at:.3f}", "width": f"{max(abs(end - start) / width * 100, 0.15):.3f}", "kind": kind, "text": text}

    bars = [bar("before", 0, before, "side", duration(before))]
    bars += [bar(name, start, end, "up" if end > start else "down", change(end - start)) for name, start, end in edges]
    bars.append(bar("after", 0, after, "side", duration(after)))
    said = ", ".join(f"{part_words(p)} {change(p.difference)}" for p in parts)
    return {"bars": bars, "words": f"From {duration(before)} to {duration(after)}: {said}"}


def _drawn(lanes: Sequence[Lane]) -> list[dict[str, Any]]:
    """Rectangles on one time scale for all lanes: kernels above, copies below."""
    scale = 10_000 / max(max((lane.length for lane in lanes), default=1), 1)
    drawn = []
    for lane in lanes:
        rects = [
            {
                "x": f"{r.start * scale:.1f}",
                "width": f"{max((r.end - r.start) * scale, 0.6):.1f}",
                "y": 2 if r.is_kernel else 20,
                "height": 17 if r.is_kernel else 8,
                "color": r.kernel_class if r.kernel_class in CLASSES else "",
                "kind": "none" if r.is_kernel else "copy",
                "title": f"{r.name} {duration(r.end - r.start)}" if r.name else "",
            }
            for r in lane.blocks
        ]
        words = f"{duration(lane.length)} to the next execution, {duration(lane.kernel_time)} of kernels"
        drawn.append({"side": lane.side, "name": lane.name, "execution": lane.execution, "words": words, "rects": rects})
    return drawn
