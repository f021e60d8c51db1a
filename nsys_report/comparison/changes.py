"""The instructions of one program before and after, with their times and a verdict on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hlo_mapping import InstructionPair, Work, pair_instructions
from nsys_report.comparison.model import InstructionChange, QuantityChange, SidePlace, Total
from nsys_report.comparison.noise import CONFIDENCE, judge
from nsys_report.comparison.small import Learned, half_widths, learn
from nsys_report.comparison.units import SideProgram

Floats = NDArray[np.float64]


def instruction_changes(before: SideProgram, after: SideProgram) -> tuple[tuple[InstructionChange, ...], float | None]:
    """Every instruction that ran on a side, largest difference first, and the share by which unchanged ones moved (None: too few)."""
    pairs = [p for p in _pairs(before, after) if _ran(p.before, before) or _ran(p.after, after)]
    if not pairs:
        return (), None
    rows = [
        np.stack([_times(getattr(p, name), side) for p in pairs]).astype(np.float64)
        for name, side in (("before", before), ("after", after))
    ]
    medians = [np.median(r, axis=1) for r in rows]
    learned = learn(medians[0], medians[1], np.array([p.is_identical for p in pairs]))
    half = half_widths(rows)
    seen = bool(before.rows or before.kernels), bool(after.rows or after.kernels)
    changes = [_change(pair, before, after, _quantity(n, rows, medians, float(half[n]), learned, seen)) for n, pair in enumerate(pairs)]
    changes.sort(key=lambda c: -abs(c.time.difference or 0.0))
    return tuple(changes), learned.shift if learned.origin == "alike" else None


def _pairs(before: SideProgram, after: SideProgram) -> list[InstructionPair]:
    """Pairs by structure; what is not in the dump's program, and kernels without an instruction, by name."""
    pairs = list(pair_instructions(before.works, after.works))
    for kind, ones, others in (("instruction", before.rows, after.rows), ("kernel", before.kernels, after.kernels)):
        known = [{w.instruction for w in side.works} if kind == "instruction" else set() for side in (before, after)]
        names = [[name for name in side if name not in inside] for side, inside in zip((ones, others), known, strict=True)]
        for name in dict.fromkeys([*names[0], *names[1]]):
            one, other = ((_named(name, kind),) if name in side else () for side in names)
            pairs.append(InstructionPair(one, other, "same" if one and other else "gone" if one else "new"))
    return pairs


def _named(name: str, kind: str) -> Work:
    """A stand-in for work that only its name is known of."""
    return Work(name, kind, name, name, 0, Counter(), (), "", 0, "")


def _row(work: Work, side: SideProgram) -> NDArray[np.int64] | None:
    return (side.kernels if work.kind == "kernel" else side.rows).get(work.instruction)


def _ran(works: Sequence[Work], side: SideProgram) -> bool:
    return any(_row(work, side) is not None for work in works)


def _times(works: Sequence[Work], side: SideProgram) -> NDArray[np.int64]:
    """Their time in each execution, ns."""
    total = np.zeros(side.count, np.int64)
    for work in works:
        if (row := _row(work, side)) is not None:
            total = total + row
    return total


def _quantity(
    n: int, rows: Sequence[Floats], medians: Sequence[Floats], half: float, learned: Learned, seen: tuple[bool, bool]
) -> QuantityChange:
    """The verdict on a row; nothing is known of a side of which no kernel is on record."""
    ones, others = rows[0][n], rows[1][n]
    if not all(seen):
        one, other = (Total(int(r.sum()), len(r)) if known else None for r, known in zip((ones, others), seen, strict=True))
        return QuantityChange("time_ns", one, other, verdict="unsure")
    difference = float(others.mean() - ones.mean())
    error = float(np.sqrt(sum(r.var(ddof=1) / len(r) if len(r) > 1 else 0.0 for r in (ones, others))))
    width = float(stats.norm.ppf(0.5 + CONFIDENCE / 2)) * error
    band = float(learned.band[n])
    verdict = judge(float(medians[1][n] - medians[0][n]), half, band, max(2 * band, float(learned.loose[n])))
    if np.array_equal(ones, others):
        verdict = "same"
    return QuantityChange(
        "time_ns",
        Total(int(ones.sum()), len(ones)),
        Total(int(others.sum()), len(others)),
        difference - width,
        difference + width,
        verdict,
        float(medians[0][n]),
        float(medians[1][n]),
        band,
        learned.origin,
    )


def _change(pair: InstructionPair, before: SideProgram, after: SideProgram, time: QuantityChange) -> InstructionChange:
    ones, others = (tuple(_place(w, side) for w in works) for works, side in ((pair.before, before), (pair.after, after)))
    return InstructionChange(ones, others, pair.change, pair.is_identical, pair.became, time)


def _place(work: Work, side: SideProgram) -> SidePlace:
    row, fact = _row(work, side), side.fact(work.instruction)
    source = f"{fact['source_file']}:{fact['source_line']}" if fact.get("source_file") else None
    return SidePlace(
        work.instruction,
        work.kind,
        work.shape,
        Total(int(row.sum()) if row is not None else 0, side.count),
        float(fact.get("launches_per_execution") or 0.0),
        work.instruction if work.kind == "kernel" else fact.get("kernel_name"),
        fact.get("kernel_class"),
        side.first.layers.get(work.instruction),
        fact.get("op_name") or work.code or None,
        source,
        fact.get("bytes_accessed"),
        fact.get("flops"),
    )
