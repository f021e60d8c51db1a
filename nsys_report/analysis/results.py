"""What the analysis finds, as one frozen value, and the function that makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hlo_mapping import ProgramMemory
from nsys_report.analysis.arrays.view import View, make_view
from nsys_report.analysis.budget.parts import Budget, budget
from nsys_report.analysis.budget.table import budget_tables, typical_executions
from nsys_report.analysis.idle.causes import CODES
from nsys_report.analysis.idle.host_gap import gap_parts, host_gaps
from nsys_report.analysis.idle.host_phases import host_phases
from nsys_report.analysis.idle.idle_times import IdleTime, idle_times
from nsys_report.analysis.memory import memory_of_programs
from nsys_report.analysis.rollup.work import typical_work
from nsys_report.analysis.roofline.ceilings import Ceilings
from nsys_report.analysis.roofline.classes import class_times, classes_table, details_table
from nsys_report.analysis.roofline.compute import compute_types, fact_dots, nanoseconds_per_flop
from nsys_report.analysis.roofline.costs import alike, costs_of
from nsys_report.analysis.roofline.instructions import group_by_instruction, instructions_table
from nsys_report.analysis.roofline.precision import precision_table
from nsys_report.analysis.roofline.roofs import roofline_table
from nsys_report.analysis.roofline.storage import cache_types, weight_types
from nsys_report.analysis.structure.layers import find_repeats
from nsys_report.analysis.structure.loops import loop_idle
from nsys_report.analysis.structure.repeats import repeats_table, slow_table
from nsys_report.analysis.structure.sequences import BlockSpans
from nsys_report.analysis.structure.tokens import tokens_per_execution
from nsys_report.analysis.times.attribution import busy_times
from nsys_report.analysis.times.coverage import coverage_table, joined_share, with_unrecorded
from nsys_report.analysis.times.devices import devices_table
from nsys_report.analysis.times.kernels import copies_table, kernels_table
from nsys_report.analysis.times.modules import modules_table
from nsys_report.analysis.times.phases import phases_table
from nsys_report.intervals import length
from nsys_report.joined import Joined


@dataclass(frozen=True, slots=True)
class AnalysisResults:
    """Tables by the schemas of nsys_report.analysis.arrays.schemas."""

    ceilings: Ceilings
    modules: pa.Table
    classes: pa.Table
    details: pa.Table
    instructions: pa.Table
    phases: pa.Table
    """Schema phases.PHASE_TIMES: of programs that train."""
    kernels: pa.Table
    copies: pa.Table
    coverage: pa.Table
    devices: pa.Table
    steps: pa.Table
    """Schema budget.table.STEPS: each program's steps, which the rows of `budget` add up to."""
    budget: pa.Table
    """Schema budget.table.BUDGET."""
    budgets: Budget
    """The budget of every execution, in the order of the executions table."""
    host_gaps: pa.Table
    """Schema host_gap.HOST_GAPS."""
    gap_parts: pa.Table
    """Schema host_gap.GAP_PARTS: a row per execution."""
    host_phases: pa.Table
    """Schema host_phases.HOST_PHASES: one typical step of each program as the host goes through it."""
    repeats: pa.Table
    """Schema repeats.REPEATS."""
    slow: pa.Table
    """Schema repeats.SLOW."""
    loops: pa.Table
    """Schema loops.LOOPS: a row per program that spends most of its kernel time in a loop."""
    loop_idle: pa.Table
    """Schema loops.LOOP_IDLE: why the device is idle within the iterations."""
    layers: pa.Table
    """Schema layers.LAYERS: a row per program in whose kernels a layer repeats."""
    layer_rows: pa.Table
    """Schema layers.LAYER_ROWS."""
    block_spans: tuple[BlockSpans, ...]
    """When each iteration of a loop and each layer ran."""
    roofline: pa.Table
    """Schema roofline.ROOFLINE."""
    precision: pa.Table
    """Schema precision.PRECISION."""
    work: pa.Table
    """Schema work.WORK: what a typical step runs, by instruction, which roll-ups sum up."""
    memory: Mapping[int, ProgramMemory]
    """What the programs need that take most time, by number; those of whose memory the dump says nothing are left out."""
    joined_share: float | None
    """Share of the kernel time joined with confidence 0.5 or more, autotuning left out; None without kernels."""
    view: View
    """The activities' columns that the tables were made from."""
    idle: tuple[IdleTime, ...]
    """The idle time of each device."""


def compute_results(joined: Joined, ceilings: Ceilings) -> AnalysisResults:
    """Everything the report shows of one capture; a pure function of its arguments."""
    view = make_view(joined)
    costs = costs_of(view)
    same, times = alike(view, costs), class_times(view, costs)
    dots = fact_dots(joined)
    types = compute_types(joined, dots)
    stored = weight_types(joined)
    per_flop = nanoseconds_per_flop(types, ceilings)
    busy, coverage, modules = busy_times(view), coverage_table(view), modules_table(view)
    groups, repeating = group_by_instruction(view), find_repeats(view, costs, ceilings)
    idle = idle_times(view)
    budgets = budget(view, costs, same, times, idle, busy, ceilings, per_flop)
    typical = typical_executions(view, budgets.wall)
    instructions = instructions_table(view, costs, groups, ceilings, stored, typical)
    hidden = sum(length(i.by_cause[CODES["not_recorded"]]) for i in idle)
    coverage = with_unrecorded(coverage, hidden)
    budget_rows, steps = budget_tables(view, budgets, tokens_per_execution(view, costs, same, stored), cache_types(view))
    gaps = gap_parts(view, idle)
    classes = classes_table(view, costs, same, times, ceilings, typical)
    return AnalysisResults(
        ceilings=ceilings,
        modules=modules,
        classes=classes,
        details=details_table(view, costs, same, times, ceilings, typical),
        instructions=instructions,
        phases=phases_table(instructions, modules),
        kernels=kernels_table(view),
        copies=copies_table(view, typical),
        coverage=coverage,
        devices=devices_table(view, busy),
        steps=steps,
        budget=budget_rows,
        budgets=budgets,
        host_gaps=host_gaps(view, gaps),
        gap_parts=gaps,
        host_phases=host_phases(view),
        repeats=repeats_table(view),
        slow=slow_table(view, groups),
        loops=repeating.loops,
        loop_idle=loop_idle(view, idle, repeating.loop_windows),
        layers=repeating.layers,
        layer_rows=repeating.layer_rows,
        block_spans=repeating.spans,
        roofline=roofline_table(instructions, classes, types, ceilings),
        precision=precision_table(instructions, dots, types, ceilings),
        work=typical_work(view, costs, typical, ceilings, per_flop),
        memory=memory_of_programs(joined, modules),
        joined_share=joined_share(coverage),
        view=view,
        idle=idle,
    )
