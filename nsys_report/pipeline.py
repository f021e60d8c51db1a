"""The order of the stages, and nothing else: capture → executions → join → classes and costs → analysis → findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from hlo_mapping import FACTS, HloError, LaunchJoin, Program, ProgramKind, RoleOverrides, check_overrides, index_dump, join, program_facts
from nsys_report.analysis.results import compute_results
from nsys_report.analysis.roofline.ceilings import Ceilings, GpuEntry, builtin_table, find_ceilings, read_table
from nsys_report.analysis.whatif import Scenario, predict
from nsys_report.capture import open_capture
from nsys_report.capture.health import health
from nsys_report.capture.model import Capture, shared_places
from nsys_report.counters.model import count_traffic
from nsys_report.counters.ncu import read_ncu
from nsys_report.errors import UsageError
from nsys_report.executions.activities import joined_activities
from nsys_report.executions.graph_bodies import adopt_graph_bodies
from nsys_report.executions.host import host_functions_before
from nsys_report.executions.notes import join_notes
from nsys_report.executions.nvtx import annotate
from nsys_report.executions.ran import what_ran
from nsys_report.executions.table import executions_table
from nsys_report.findings.rules.apply import find
from nsys_report.joined import Joined
from nsys_report.packed import unpacked_dump
from nsys_report.paths import with_project_paths
from nsys_report.role_files import overrides_from
from nsys_report.session import Session

Progress = Callable[[str, float], None]


def join_capture(
    capture: Capture,
    xla_dump: str | Path | None = None,
    *,
    overrides: RoleOverrides | None = None,
    show_paths: bool = False,
    progress: Progress | None = None,
) -> Joined:
    """A capture cut into executions, joined to the dump, classed and costed. Raises HloError for a dump that cannot be used."""
    say = progress or (lambda text, share: None)
    say("indexing the dump", 0.5)
    dump = index_dump(xla_dump, what_ran(capture.activities, capture.nvtx)) if xla_dump is not None else None
    say("finding executions", 0.55)
    launched = adopt_graph_bodies(capture.activities)
    ranges = annotate(launched, capture.nvtx, dump.numbers_by_name() if dump is not None else None)
    found = join(launched, dump, ranges.annotations, host_functions_before(launched, capture.runtime))
    executions, execution_id = executions_table(launched, found.execution, found.executions, shared_places(capture.info.gpus))
    say("reading instructions", 0.8)
    facts, kinds, unread = _facts(found, overrides)
    say("joining", 0.9)
    if not show_paths:
        facts = with_project_paths(facts, "source_file")
    activities = joined_activities(launched, found, execution_id, executions, facts)
    programs = {e.program.number: e.program for e in found.executions if e.program is not None}
    chosen = dump.said_of(programs) if dump is not None else ()
    notes = (*join_notes(found, dump, ranges.without_work, launched), *chosen, *unread)
    return Joined(capture, activities, executions, facts, programs, notes, kinds)


def _facts(found: LaunchJoin, overrides: RoleOverrides | None) -> tuple[pa.Table, dict[int, ProgramKind], tuple[str, ...]]:
    """The facts of every program that ran, one after another, the programs' kinds, and sentences on those whose text cannot be followed."""
    if overrides is not None:
        check_overrides(overrides, [p.module for p in found.programs.values() if p.module is not None])
    ran: dict[int, Program] = {e.program.number: e.program for e in found.executions if e.program is not None}
    tables, kinds, unread = [], dict[int, ProgramKind](), []
    for program in ran.values():
        try:
            read = program_facts(program, overrides)
            tables.append(read.instructions)
            if read.kind is not None:
                kinds[program.number] = read.kind
        except HloError as error:
            unread.append(f"program {program.name} ({program.number}): classes and bytes are unknown: {error.brief}")
    facts = pa.concat_tables(tables).unify_dictionaries().combine_chunks() if tables else FACTS.empty_table()
    return facts, kinds, tuple(unread)


def analyze(
    capture_path: str | Path,
    xla_dump: str | Path | None = None,
    *,
    roles: str | Path | None = None,
    manifest: str | Path | None = None,
    ceilings: Mapping[str, float] | None = None,
    ceilings_file: str | Path | None = None,
    what_if: tuple[Scenario, ...] = (),
    ncu: str | Path | None = None,
    show_paths: bool = False,
    progress: Progress | None = None,
) -> Session:
    """Reads, cuts, joins and analyzes one capture, and finds what costs time. `ceilings` are checked overrides (GB/s, TFLOPS),
    `ceilings_file` a table of GPUs that comes before the built-in one; `what_if` are scenarios to predict; `ncu` is the CSV of a profile
    of the same program by Nsight Compute, whose bytes stand beside the implied ones;
    `show_paths` leaves the paths of source files whole.

    Raises ReportError for a capture, HloError for a dump or a roles file that cannot be used.
    """
    overrides = overrides_from(roles, manifest)
    if overrides is not None and xla_dump is None:
        raise UsageError(
            "roles were given, but no dump whose parameters have them", "give the dump too: --xla-dump DIR", slug="roles-without-dump"
        )
    table = (*read_table(Path(ceilings_file)), *builtin_table()) if ceilings_file is not None else builtin_table()
    profiled = read_ncu(Path(ncu)) if ncu is not None else None
    dump = None if xla_dump is None else unpacked_dump(Path(xla_dump))
    capture = open_capture(Path(capture_path), progress, ranges="few", everything=False)
    joined = join_capture(capture, dump, overrides=overrides, show_paths=show_paths, progress=progress)
    if progress is not None:
        progress("analyzing", 0.95)
    results, judged = compute_results(joined, capture_ceilings(capture, ceilings, table)), health(capture)
    found = find(joined, results, judged)
    counters = count_traffic(joined, results, profiled)
    return Session(capture.path.name, joined, results, judged, dump, found, predictions=predict(results, what_if), counters=counters)


def capture_ceilings(capture: Capture, overrides: Mapping[str, float] | None = None, table: tuple[GpuEntry, ...] | None = None) -> Ceilings:
    """The ceilings of the GPU that the capture ran on; of several GPUs the first, since a host's are alike."""
    gpu = capture.info.gpus[0] if capture.info.gpus else None
    if gpu is None:
        return find_ceilings("", None, overrides, table)
    return find_ceilings(gpu.name or "", gpu.nominal_bytes_per_s, overrides, table, is_part=gpu.is_part)
