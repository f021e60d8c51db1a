"""What differs between the runs apart from their times: GPU, profiler, flags, shapes. It is listed first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from hlo_mapping import HloError, read_debug_options
from nsys_report.comparison.model import Setup
from nsys_report.units import bandwidth, count

if TYPE_CHECKING:
    from hlo_mapping import Program
    from nsys_report.comparison.side import Samples
    from nsys_report.session import Session

NOT_TOLD = frozenset({"xla_dump_to", "xla_gpu_cuda_data_dir", "xla_gpu_per_fusion_autotune_cache_dir"})
"""Flags that only name places."""
ABSENT = "default"
MOST_SHAPES = 6
"""Parameters whose shapes are told one by one."""


def capture_setup(before: Sequence[Session], after: Sequence[Session]) -> tuple[Setup, ...]:
    """What differs between the captures."""
    sides = [dict(_facts(side)) for side in (before, after)]
    names = dict.fromkeys([*sides[0], *sides[1]])
    return tuple(
        Setup(name, one, other) for name in names if (one := sides[0].get(name, "unknown")) != (other := sides[1].get(name, "unknown"))
    )


def _facts(side: Sequence[Session]) -> Iterator[tuple[str, str]]:
    infos = [analysis.joined.capture.info for analysis in side]
    gpus = [gpu for info in infos for gpu in info.gpus]
    yield "GPU", _all(gpu.name or "unknown" for gpu in gpus)
    yield "GPUs", _all(count(len(info.gpus)) for info in infos)
    yield "nominal memory bandwidth", _all(f"{bandwidth(g.nominal_bytes_per_s)} GB/s" for g in gpus if g.nominal_bytes_per_s)
    yield "multiprocessors", _all(str(gpu.sm_count) for gpu in gpus if gpu.sm_count)
    yield "compute capability", _all(gpu.compute_capability or "unknown" for gpu in gpus)
    yield "highest clock", _all(f"{gpu.clock_hz / 1e6:,.0f} MHz" for gpu in gpus if gpu.clock_hz)
    yield "driver", _all(info.driver_version or "unknown" for info in infos)
    yield "nsys", _all(info.nsys_version or "unknown" for info in infos)
    yield "CUDA graphs traced by", _all(info.graph_trace_mode or "unknown" for info in infos)
    yield "XLA dump", _all("given" if analysis.xla_dump is not None else "not given" for analysis in side)


def _all(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values)) or "none"


def program_setup(before: Samples, after: Samples) -> tuple[Setup, ...]:
    """What differs in one program: the flags it was compiled with, its arguments and results, how it is launched."""
    found = [*_flags(before.program, after.program), *_shapes(before.program, after.program)]
    if before.name != after.name:
        found.insert(0, Setup("name", before.name, after.name))
    found += [
        Setup(what, before.told.get(what, "none found"), after.told.get(what, "none found"))
        for what in dict.fromkeys([*before.told, *after.told])
        if before.told.get(what) != after.told.get(what)
    ]
    kernels = [_launches(side) for side in (before, after)]
    if kernels[0] != kernels[1]:
        found.append(Setup("launches an execution", *kernels))
    return tuple(found)


def _launches(side: Samples) -> str:
    return count(round(sum(row["launches_per_execution"] or 0 for row in side.facts.values())))


def _flags(before: Program | None, after: Program | None) -> Iterator[Setup]:
    ones, others = _options(before), _options(after)
    if not ones or not others:
        return
    for flag in sorted({*ones, *others}):
        one, other = (", ".join(side.get(flag, ())) or ABSENT for side in (ones, others))
        if one != other and flag not in NOT_TOLD and not flag.startswith("xla_dump"):
            yield Setup(f"--{flag}", one, other)


def _options(program: Program | None) -> dict[str, tuple[str, ...]]:
    try:
        return read_debug_options(program) if program is not None else {}
    except HloError:
        return {}


def _shapes(before: Program | None, after: Program | None) -> Iterator[Setup]:
    if before is None or after is None or before.module is None or after.module is None:
        return
    sides = [[p.shape.text(layouts=False) for p in side.module.entry.parameters] for side in (before, after) if side.module is not None]
    if len(sides[0]) != len(sides[1]):
        yield Setup("parameters", count(len(sides[0])), count(len(sides[1])))
    changed = list(dict.fromkeys((a, b) for a, b in zip(*sides, strict=False) if a != b)) if len(sides[0]) == len(sides[1]) else []
    for one, other in changed[:MOST_SHAPES]:
        yield Setup("shape of a parameter", one, other)
    if len(changed) > MOST_SHAPES:
        yield Setup("shapes of parameters", f"{len(changed) - MOST_SHAPES} more", "differ")
    aliased = [len(side.module.aliases) for side in (before, after) if side.module is not None]
    if aliased[0] != aliased[1]:
        yield Setup("donated buffers", count(aliased[0]), count(aliased[1]))
