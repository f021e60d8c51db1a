"""Programs compiled while the capture ran, several at once, or once for each shape of their input."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from hlo_mapping import Program
from nsys_report.analysis.arrays.view import coded, ints
from nsys_report.fact import Fact
from nsys_report.findings.model import Finding
from nsys_report.findings.step import Context, Step
from nsys_report.findings.thresholds import threshold
from nsys_report.intervals import length, union
from nsys_report.words import count, duration

_COMPILE = re.compile(r"^XlaCompile:#module=(?P<module>[^,#]+)")


def compiled_inside(context: Context) -> Iterator[Finding]:
    """Compilation within the capture's window."""
    ranges = _compilations(context)
    if not ranges:
        return
    starts, ends = (np.array([r[i] for rs in ranges.values() for r in rs], np.int64) for i in (0, 1))
    time = length(union(starts, ends))
    first, last = context.joined.capture.info.span_ns or (int(starts.min()), int(ends.max()))
    whole = max(last, int(ends.max())) - min(first, int(starts.min()))
    if time < threshold("compiling", "least_share") * whole:
        return
    number, most, costliest = len(starts), _most_compiled(ranges), _costliest(ranges)
    together = _most_together(starts, ends)
    again = f" {most[0]} was compiled {count(most[1])} times: once for each shape or type that it was called with." if most[1] > 1 else ""
    yield Finding(
        slug="compiled-inside",
        title=f"{count(number)} programs were compiled while the capture ran, {duration(time)} of {duration(whole)}",
        why=f"{_costliest_words(costliest)} Steps that wait for a compilation say nothing of the program's speed.{again}",
        remedy=_remedy(most[1] > 1, costliest),
        confidence="sure",
        basis="XLA's own ranges around compilation, by union; what an execution would gain depends on how often a new shape comes",
        facts=(
            Fact("compilations", "compilations", number, "count"),
            Fact("time_ns", "time", time, "ns"),
            *(Fact(f"costliest_{n}_ns", f"compiling {name}", spent, "ns") for n, (name, spent) in enumerate(costliest, 1)),
            Fact("most_compiled", "compiled most often", most[0]),
            Fact("times", "times", most[1], "count"),
            Fact("together", "at the same time at most", together, "count"),
        ),
        stake_ns=float(time),
    )
    if together >= threshold("compiling", "concurrent"):
        yield _in_parallel(together, time, int((ends - starts).sum()))


def _costliest(ranges: Mapping[str, list[tuple[int, int]]]) -> list[tuple[str, int]]:
    """The modules that took longest to compile, all their compilations together, ns; at most three."""
    spent = {name: sum(end - start for start, end in rows) for name, rows in ranges.items()}
    return sorted(spent.items(), key=lambda item: -item[1])[:3]


def _costliest_words(costliest: list[tuple[str, int]]) -> str:
    return f"Longest: {', '.join(f'{name} {duration(spent)}' for name, spent in costliest)}."


def _remedy(again: bool, costliest: list[tuple[str, int]]) -> str:
    shapes = "Call the function with a bounded set of shapes (pad lengths to a few buckets), compile them before serving, and keep"
    return (
        f"{shapes if again else f'Compile {costliest[0][0]} before it is needed (lower and compile ahead of time), and keep'} compiled "
        "programs (jax_compilation_cache_dir); start the capture after the warm-up."
    )


def compiled_in_steps(context: Context, step: Step) -> Iterator[Finding]:
    """Steps during which XLA compiled or loaded a program, this one or another."""
    mine = {source: account for source, account in step.accounts.items() if account.row[0] == "compile"}
    time = sum(account.ns for account in mine.values())
    if time < threshold("compiling", "least_share") * step.wall_ns:
        return
    yield Finding(
        slug="compiled-inside",
        title=f"Programs are compiled or loaded between the executions of {step.name}: {duration(time)} from one to the next",
        why="Its executions wait until the host has compiled what comes next.",
        remedy="Compile before the steps that count (lower and compile ahead of time), keep compiled programs "
        "(jax_compilation_cache_dir), and "
        "start the capture after the warm-up.",
        confidence="sure",
        basis="Idle time of the device while XLA compiles or loads",
        claims=dict.fromkeys(mine, 1.0),
        facts=(Fact("time_ns", "compiling in a step", time, "ns"),),
    )


def _in_parallel(together: int, time: int, total: int) -> Finding:
    return Finding(
        slug="compiled-in-parallel",
        title=f"Up to {count(together)} programs were compiled at the same time",
        why=f"They hold each other up: their compilations take {duration(total)} together, within {duration(time)}. In one service 36 "
        f"programs took 1,271 s nineteen at a time and 520 s one at a time.",
        remedy="Compile one program at a time (or a few), largest first.",
        confidence="possible",
        basis="XLA's own ranges around compilation overlap",
        facts=(
            Fact("together", "at the same time at most", together, "count"),
            Fact("time_ns", "time", time, "ns"),
            Fact("total_ns", "added up", total, "ns"),
        ),
        to_capture="capture the same start with compilations one after another, and compare",
    )


def _compilations(context: Context) -> Mapping[str, list[tuple[int, int]]]:
    """XLA's compilation ranges that have ended, by module."""
    nvtx = context.joined.capture.nvtx
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    if nvtx is None or not len(nvtx):
        return found
    text, (start, _), (end, closed) = coded(nvtx, "text"), ints(nvtx, "start_ns"), ints(nvtx, "end_ns")
    for code, word in enumerate(text.words):
        match = _COMPILE.match(word or "")
        if match:
            rows = np.flatnonzero((text.codes == code) & closed)
            found[match["module"]] += list(zip(start[rows].tolist(), end[rows].tolist(), strict=True))
    return {name: rows for name, rows in found.items() if rows}


def _most_compiled(ranges: Mapping[str, list[tuple[int, int]]]) -> tuple[str, int]:
    """The module with most time among those compiled most often, and how often."""
    name = max(ranges, key=lambda n: (len(ranges[n]), sum(end - start for start, end in ranges[n])))
    return name, len(ranges[name])


def _most_together(starts: np.ndarray, ends: np.ndarray) -> int:
    times = np.concatenate((starts, ends))
    change = np.concatenate((np.ones(len(starts)), -np.ones(len(ends))))
    order = np.lexsort((change, times))
    return int(np.cumsum(change[order]).max()) if len(order) else 0


def shape_variants(context: Context) -> Iterator[Finding]:
    """Programs that ran and differ only in the sizes of their arrays."""
    groups: dict[tuple[str, ...], list[Program]] = defaultdict(list)
    for program in context.joined.programs.values():
        if program.module is not None and len(program.module.entry.instructions) > 1:
            groups[_form(program)].append(program)
    for programs in groups.values():
        shapes = sorted({_arguments(p) for p in programs})
        if len(shapes) < threshold("compiling", "least_variants") or not _has_kernels(context, programs):
            continue  # programs of the same arguments are no variants of one shape
        yield Finding(
            slug="shape-variants",
            title=f"{count(len(programs))} programs {programs[0].name} differ only in the sizes of their arrays",
            why=f"Each shape that {programs[0].name} is called with is compiled, loaded and kept on its own: {'; '.join(shapes[:3])}"
            + (" ..." if len(shapes) > 3 else "."),
            remedy="Pad inputs to a few bucket sizes: with 6 buckets in place of 163 lengths, one service compiled 7.6 s instead of 264 s "
            "and ran 13 % slower from padding.",
            confidence="sure",
            basis="The dump: same operations in the same order, other sizes",
            facts=(Fact("programs", "programs", len(programs), "count"), Fact("shapes", "different arguments", len(shapes), "count")),
            to_capture="capture the process from its start, to see what compiling them takes",
        )


def _form(program: Program) -> tuple[str, ...]:
    """A program without its sizes: its name, and the operations and types of its entry."""
    assert program.module is not None
    types = [f"{i.opcode} {' '.join(leaf.element_type for leaf in i.shape.leaves)}" for i in program.module.entry.instructions]
    return (program.name, *types)


def _arguments(program: Program) -> str:
    assert program.module is not None
    return ", ".join(p.shape.text(layouts=False) for p in program.module.entry.parameters)


def _has_kernels(context: Context, programs: list[Program]) -> bool:
    table = context.joined.executions
    numbers = {p.number for p in programs}
    rows = zip(table["program_id"].to_pylist(), table["kernel_count"].to_pylist(), strict=True)
    return any(number in numbers and kernels for number, kernels in rows)
