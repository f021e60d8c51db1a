"""A program's roll-ups as the page's script draws them: rows in words, and the two figures that boxes have, width and color."""

from __future__ import annotations

from typing import Any

from nsys_report.reports.rollup_tree import Figures, Rollups
from nsys_report.units import cell_text, duration, share, things, visible

UNKNOWN = -1
"""The share of the roof of what none is known of."""


def rollup_data(found: Rollups, section: str) -> dict[str, Any]:
    """Leaves and rows; a row is [depth, leaf's place] or [depth, figures...]; `section` is the id of the program's section."""
    return {
        "section": section,
        "leaves": [[visible(name), *_figures(figures)] for name, figures in found.leaves],
        "ways": [
            [key, title, [[row.depth, row.leaf] if row.group is None else [row.depth, *_figures(row.group)] for row in rows]]
            for key, title, rows in found.ways
        ],
    }


def _figures(one: Figures) -> list[Any]:
    """Name; time, share of the roof and launches as numbers; launches with the time of each, time, share, roof, bytes, floor in words."""
    each = duration(one.time_ns / one.launches) if one.launches else ""
    roof = "" if one.share_of_roof is None else share(one.share_of_roof) + (" ▲" if one.is_above else "")
    return [
        visible(one.name),
        round(one.time_ns),
        UNKNOWN if one.share_of_roof is None else round(one.share_of_roof, 4),
        round(one.launches, 2),
        f"{cell_text('count', _whole(one.launches))} × {each}",
        duration(one.time_ns),
        share(one.time_share) if one.time_share is not None else "",
        roof,
        cell_text("bytes", one.bytes_accessed) if one.bytes_accessed is not None else "",
        duration(one.floor_ns) if one.floor_ns else "",
    ]


def _whole(value: float) -> float:
    return round(value) if abs(value - round(value)) < 0.05 else round(value, 1)


def rollup_words(found: Rollups) -> str:
    """What the picture shows, for who does not see it: the groups with most time by name."""
    groups = [row.group for row in found.ways[0][2] if row.depth == 0 and row.group is not None]
    most = ", ".join(f"{g.name} {duration(g.time_ns)}" for g in groups[:3])
    return f"{things(len(groups), 'group')} of what runs in a typical step; most time: {most}."
