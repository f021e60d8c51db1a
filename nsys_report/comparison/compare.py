"""From the analyses of captures before and after a change to the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hlo_mapping import pair_programs
from nsys_report.comparison.changes import instruction_changes
from nsys_report.comparison.model import Comparison, InstructionChange, ProgramChange, Rollup, SidePlace, StepPart, Total
from nsys_report.comparison.noise import Noise, quantity
from nsys_report.comparison.setup import capture_setup, program_setup
from nsys_report.comparison.side import program_samples
from nsys_report.comparison.units import SideProgram, described, side_programs

if TYPE_CHECKING:
    from nsys_report.session import Session

QUANTITIES = ("step_ns", "kernel_time_ns", "busy_time_ns", "host_gap_ns", "idle_ns", "copies_ns")
COMMON_SHIFT = 0.004
"""A share by which all unchanged instructions moved that is said: several times the spread of runs at one clock."""


def compare(
    before: Sequence[Session],
    after: Sequence[Session],
    noise: Noise | None = None,
    names: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Comparison:
    """Compares one or several captures before with those after; `names` are what pages call them."""
    sides = [side_programs([program_samples(analysis) for analysis in side]) for side in (before, after)]
    pairs = pair_programs(described(sides[0]), described(sides[1]))
    programs = tuple(
        _program(sides[0].get(one) if one else None, sides[1].get(other) if other else None, noise or Noise()) for one, other in pairs
    )
    called = names or tuple([a.joined.capture.path.name for a in side] for side in (before, after))
    return Comparison(tuple(called[0]), tuple(called[1]), capture_setup(before, after), programs, tuple(_notes(before, after, programs)))


def _program(before: SideProgram | None, after: SideProgram | None, noise: Noise) -> ProgramChange:
    labels = [side.first.label if side is not None else None for side in (before, after)]
    samples = {key: [side.quantity(key) if side is not None else [] for side in (before, after)] for key in QUANTITIES}
    kernels = float(np.median(np.concatenate(samples["kernel_time_ns"][0]))) if samples["kernel_time_ns"][0] else 0.0
    quantities = tuple(
        quantity(key, one, other, noise, kernels if key == "step_ns" else 0.0)
        for key, (one, other) in samples.items()
        if any(map(len, (*one, *other)))
    )
    if before is None or after is None:
        return ProgramChange(labels[0], labels[1], quantities)
    changes, shift = instruction_changes(before, after)
    return ProgramChange(
        labels[0],
        labels[1],
        quantities,
        changes,
        tuple(_parts(before, after, changes)),
        tuple(_rollups(changes, before.count, after.count)),
        program_setup(before.first, after.first),
        shift,
    )


def _parts(before: SideProgram, after: SideProgram, changes: Sequence[InstructionChange]) -> Iterator[StepPart]:
    """The parts of the mean step; each side's add up to its step exactly."""
    for change in changes:
        name = ", ".join(place.instruction for place in change.after or change.before)
        group = "unpaired" if change.change in ("new", "gone") else "instruction"
        yield StepPart(group, name, _total(change.before, before.count), _total(change.after, after.count))
    for key in dict.fromkeys(key for side in (before, after) for samples in side.captures for key in samples.parts):
        part = StepPart(*key, Total(before.part(key), before.count), Total(after.part(key), after.count))
        if part.before.total or part.after.total:
            yield part


def _total(places: Sequence[SidePlace], count: int) -> Total:
    return Total(sum(place.time.total for place in places), count)


def _rollups(changes: Sequence[InstructionChange], executions: int, executions_after: int) -> Iterator[Rollup]:
    """Kernel time by class, layer, op_name and source line; what has none stands under its own name."""
    for by, key in (("class", "kernel_class"), ("layer", "layer"), ("op_name", "op_name"), ("source", "source")):
        sums: dict[str, list[int]] = {}
        for change in changes:
            for side, places in enumerate((change.before, change.after)):
                for place in places:
                    sums.setdefault(getattr(place, key) or "unknown", [0, 0])[side] += place.time.total
        if by == "layer" and set(sums) == {"unknown"}:
            continue
        rows = [Rollup(by, name, Total(one, executions), Total(other, executions_after)) for name, (one, other) in sums.items()]
        yield from sorted(rows, key=lambda r: -abs(r.difference))


def _notes(before: Sequence[Session], after: Sequence[Session], programs: Sequence[ProgramChange]) -> Iterator[str]:
    if [a.joined.capture.path.resolve() for a in before] == [a.joined.capture.path.resolve() for a in after]:
        yield "Both sides are the same capture."
    for program in programs:
        if program.common_shift is not None and abs(program.common_shift) >= COMMON_SHIFT:
            yield (
                f"{program.name}: instructions whose work did not change take {program.common_shift:+.1%} all alike, "
                "as another clock, GPU or profiler makes them."
            )
    for program in programs:
        if any(c.time.before is None or c.time.after is None for c in program.instructions):
            yield (
                f"{program.name}: the kernels of one side are not on record (a CUDA graph recorded whole), so that its instructions "
                "cannot be compared: nsys profile --cuda-graph-trace=node."
            )
        if program.before and program.after and not any(c.before and c.after for c in program.instructions) and program.instructions:
            yield f"{program.name}: no instruction of one side is like one of the other; the program was rewritten or is another."
