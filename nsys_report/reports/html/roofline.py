"""A program's roofline as the page's script draws it: where dots and roofs lie on two logarithmic axes, and what dots say."""

from __future__ import annotations

from typing import Any

from nsys_report.reports.pictures.model import Roof, Roofline
from nsys_report.reports.scales import wide
from nsys_report.units import cell_text, duration, phrase, share, visible

TERA = 1e12


def roofline_data(picture: Roofline, section: str) -> dict[str, Any]:
    """Dots by place, the largest first; roofs as lines; `section` is the id of the program's section. x is FLOP per byte, y TFLOPS."""
    x, y = [p.flops_per_byte for p in picture.points], [p.flops_per_s / TERA for p in picture.points]
    bandwidths, peaks = [r for r in picture.roofs if r.is_bandwidth], [r for r in picture.roofs if not r.is_bandwidth]
    ridge = [max(p.value for p in peaks) / min(b.value for b in bandwidths)] if peaks and bandwidths else []
    return {
        "section": section,
        "x": wide(min(x) / 3, max([*x, *ridge]) * 6),
        "y": wide(min(y) / 3, max([*y, *(p.value / TERA for p in peaks)]) * 3),
        "roofs": [_roof(roof, peaks, bandwidths) for roof in picture.roofs],
        "points": [
            {
                "x": p.flops_per_byte,
                "y": p.flops_per_s / TERA,
                "share": p.time_share,
                "color": f"c-{p.kernel_class}",
                "name": visible(p.name),
                "facts": [
                    ["time", f"{duration(p.time_ns)}, {share(p.time_share)} of the kernel time"],
                    ["arithmetic", phrase("flops_per_s", p.flops_per_s)],
                    ["intensity", f"{p.flops_per_byte:.3g} FLOP per byte"],
                    ["of its roof", cell_text("ratio", p.share_of_roof)],
                ],
            }
            for p in sorted(picture.points, key=lambda p: -p.time_ns)
        ],
    }


def _roof(roof: Roof, peaks: list[Roof], bandwidths: list[Roof]) -> dict[str, Any]:
    """A line from one place to another; null for an end that the chart's own is. A bandwidth ends at the highest peak."""
    if roof.is_bandwidth:
        end = max((p.value for p in peaks), default=None)
        text = f"{roof.label} {phrase('bytes_per_s', roof.value)}"
        return {"slope": roof.value / TERA, "end": end and end / roof.value, "text": text, "dashed": roof.label != "measured"}
    best = max((b.value for b in bandwidths), default=None)
    text = f"{roof.label} {phrase('flops_per_s', roof.value)}"
    return {"level": roof.value / TERA, "start": best and roof.value / best, "text": text, "dashed": False}
