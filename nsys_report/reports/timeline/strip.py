"""How busy each device was over the whole capture, bin by bin: by what ran, and by why nothing did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsys_report.analysis.idle.causes import CAUSES
from nsys_report.intervals import EMPTY, Ranges, before, union
from nsys_report.reports.budget_page import CATEGORIES
from nsys_report.reports.timeline.device import OWN_COLORS, group_name
from nsys_report.reports.timeline.model import Ints, Strip

if TYPE_CHECKING:
    from nsys_report.analysis.arrays.view import View
    from nsys_report.analysis.idle.idle_times import IdleTime

MOST_BINS = 1_200
"""Bins of all strips of a page together."""


def strips(view: View, idle: tuple[IdleTime, ...], span: tuple[int, int], bins: int) -> tuple[Strip, ...]:
    """The strip of each device over the span, so many bins each."""
    return tuple(_strip(view, idle[device], device, span, bins) for device in range(len(view.devices)))


def _strip(view: View, idle: IdleTime, device: int, span: tuple[int, int], bins: int) -> Strip:
    edges = np.linspace(*span, bins + 1).astype(np.int64)
    busy = {f"c-{name}": np.diff(before(ranges, edges)) for name, ranges in _by_class(view, device).items()}
    waiting: dict[str, Ints] = {}
    for cause, ranges in zip(CAUSES, idle.by_cause, strict=True):
        waiting[cause.category] = waiting.get(cause.category, np.zeros(bins, np.int64)) + np.diff(before(ranges, edges))
    size = np.maximum(np.diff(edges), 1)
    free = size - sum(waiting.values(), np.zeros(bins, np.int64))
    # What runs beside other work shares its time with it, so that a bin holds no more than its time.
    over = np.maximum(sum(busy.values(), np.zeros(bins, np.int64)) / np.maximum(free, 1), 1.0)
    times = {key: value / over for key, value in busy.items()} | {f"b-{key}": value for key, value in waiting.items()}
    shares = {key: np.rint(100 * value / size).astype(np.int64) for key, value in times.items() if value.any()}
    names = tuple(CATEGORIES[key[2:]] if key.startswith("b-") else key[2:] for key in shares)
    percent = np.stack(list(shares.values())) if shares else np.zeros((0, bins), np.int64)
    return Strip(group_name(view, device), (span[1] - span[0]) / bins, tuple(shares), names, percent)


def _by_class(view: View, device: int) -> dict[str, Ranges]:
    """When each class of kernels ran on a device, and copies and the rest."""
    here = view.device == device
    group = _facts_class(view)
    found = dict.fromkeys((*sorted(OWN_COLORS), "kernel", "copy", "memset", "graph"), EMPTY)
    sorts = {name: view.activity.isin(frozenset({word})) for name, word in (("copy", "memcpy"), ("memset", "memset"), ("graph", "graph"))}
    for name in found:
        chosen = here & (sorts[name] if name in sorts else view.kernel & (group == name))
        found[name] = union(view.start[chosen], view.end[chosen]) if chosen.any() else EMPTY
    return {name: ranges for name, ranges in found.items() if len(ranges.starts)}


def _facts_class(view: View) -> np.ndarray:
    """The class of each activity's instruction as the strips color it; `kernel` where none is known."""
    words = [*view.joined.facts["kernel_class"].to_pylist(), None]
    names = np.array([w if w in OWN_COLORS else "kernel" if w is None else "other" for w in words])
    return names[view.instruction]
