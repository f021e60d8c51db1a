"""`nsys-report capture`: runs a program under nsys and reports on it."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsys_report.cli.capture_ranks import failure_said, report_of_run
from nsys_report.cli.options import A_PATH
from nsys_report.cli.report import output_options

if TYPE_CHECKING:
    from nsys_report.cli.outputs import Finished
    from nsys_report.notebook import Analysis
    from nsys_report.profiling.command import CapturePlan
    from nsys_report.profiling.passes import PassPair
    from nsys_report.profiling.record import Conditions
    from nsys_report.profiling.run import ProfiledRun
    from nsys_report.reports.model import Notice

EXAMPLES = """
\b
Examples:
  nsys-report capture -- python train.py
  nsys-report capture --window steps=20,skip=10,module=jit_train_step -- python train.py
  nsys-report capture --keep run_1 --html report.html --window range=step -- ./server
  srun nsys-report capture --keep runs -- python train.py
"""


@click.command(
    "capture",
    short_help="Run a program under nsys, and report on it.",
    epilog=EXAMPLES,
    context_settings={"allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGS]...")
@click.option(
    "--nsys", "nsys_path", metavar="PATH", type=A_PATH, help="The nsys to use.  [default: PATH, the CUDA toolkit, Nsight Compute]"
)
@click.option("--window", metavar="WHAT", help="Record steps=20,skip=10[,module=NAME] executions; range=NAME, an NVTX range; or api.")
@click.option("--delay", metavar="S", type=click.FloatRange(min=0), default=0.0, help="Start recording after so many seconds.")
@click.option("--duration", metavar="S", type=click.FloatRange(min=0), default=0.0, help="Record for so many seconds.")
@click.option("--end-program", is_flag=True, help="End the program with its window, instead of letting it run on.")
@click.option("--passes", type=click.Choice(["1", "2"]), default="1", show_default=True, help="2: again with graphs traced whole, joined.")
@click.option("--graph-mode", type=click.Choice(["node", "graph"]), default="node", show_default=True, help="How CUDA graphs are traced.")
@click.option("--trace", "traces", metavar="KINDS", default="cuda,nvtx", show_default=True, help="What nsys traces.")
@click.option("--wait", metavar="S", default="120s", show_default=True, help="How long to wait for an idle GPU; 0 does not look.")
@click.option("--warm/--no-warm", default=True, help="Two seconds of GPU work first, so that its clocks are up.")
@click.option("--rank-wait", metavar="S", type=click.FloatRange(min=0), default=600.0, help="How long rank 0 waits for the others.  [600]")
@click.option("--label", "labels", metavar="NAME=TEXT", multiple=True, help="Kept with the run and shown in its report. Repeatable.")
@click.option("--keep", metavar="DIR", type=A_PATH, help="Keep all: the capture, its export, the dump, run.json. A new or empty directory.")
@click.option("--dry-run", is_flag=True, help="Print the commands, and run nothing.")
@output_options
def command(
    program: tuple[str, ...],
    nsys_path: Path | None,
    window: str | None,
    delay: float,
    duration: float,
    end_program: bool,
    passes: str,
    graph_mode: Any,
    traces: str,
    wait: str,
    warm: bool,
    rank_wait: float,
    labels: tuple[str, ...],
    keep: Path | None,
    dry_run: bool,
    **paths: Path | None,
) -> int:
    """Run a program under Nsight Systems with XLA's dump, and report where its time goes.

    XLA_FLAGS are added to, the compilation cache is off, the GPU is idle and warm before. Started by srun or mpirun, each rank
    makes a capture of its own (with --keep: a folder for each), and rank 0 waits for them and reports on all.
    """
    from nsys_report.nsys_tool import find_nsys
    from nsys_report.profiling.command import CapturePlan
    from nsys_report.profiling.environment import rank_of
    from nsys_report.profiling.record import prepare
    from nsys_report.profiling.window_spec import parse_window

    spec, named, limit = parse_window(window, delay, duration), _labels(labels), _seconds(wait)
    rank = rank_of(os.environ)
    if rank is not None and keep is None and not dry_run:
        raise click.UsageError(f"this is rank {rank} of several: give --keep DIR, in which each has a folder")
    nsys = find_nsys(nsys_path)
    name = "capture" if rank is None else f"capture_rank{rank}"
    with _folder(keep, rank, dry_run) as folder:
        plans = [CapturePlan(nsys, program, spec, folder, name, traces, graph_mode, end_program)]
        if passes == "2":
            plans = [_in_pass(plans[0], folder / f"{mode}_pass", mode) for mode in ("node", "graph")]
        _announce(plans, dry_run)
        if dry_run:
            return 0
        found = prepare(limit, warm, named, _say)
        with failure_said(folder if rank is not None else None):
            runs = [_run(plan, found) for plan in plans]
        is_short = False
        if rank in (None, 0):
            of_ranks, is_short = report_of_run(folder.parent, rank_wait) if rank == 0 and len(runs) == 1 else (None, False)
            _report(runs, found, paths, of_ranks)
        return 1 if is_short or any(run.exit_code for run in runs) else 0


def _in_pass(plan: CapturePlan, folder: Path, mode: Any) -> CapturePlan:
    from dataclasses import replace

    return replace(plan, folder=folder, graph_mode=mode)


def _labels(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [label.partition("=") for label in given]
    for name, sign, _ in pairs:
        if not (name and sign):
            raise click.UsageError(f"--label {name!r} is not NAME=TEXT")
    return {name: text for name, _, text in pairs}


def _seconds(text: str) -> float:
    """120, 120s or 2m, in seconds."""
    unit = {"s": 1, "m": 60}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    if not number.isascii() or not number.isdigit():
        raise click.UsageError(f"--wait {text!r} is no time such as 120s or 2m")
    return float(number) * (unit or 1)


@contextmanager
def _folder(keep: Path | None, rank: int | None, dry_run: bool) -> Iterator[Path]:
    """Where the run goes: the folder to keep, or one that is gone afterwards."""
    if dry_run:
        yield (keep or Path("DIR")) / ("" if rank is None else f"rank_{rank}")
        return
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="nsys-report-") as made:
            yield Path(made) / "run"
        return
    # absolute, since XLA and the hook write there from wherever the program has gone
    folder = keep.absolute() if rank is None else keep.absolute() / f"rank_{rank}"
    if folder.is_dir() and any(folder.iterdir()):
        raise click.UsageError(f"{folder}: not empty; a run is kept in a new or an empty directory")
    yield folder


def _announce(plans: list[CapturePlan], to_stdout: bool) -> None:
    """The commands that run, with what they set, as a person could type them."""
    from nsys_report.profiling.environment import program_environment

    for limit in plans[0].nsys.limits():
        click.echo(f"{plans[0].nsys.name_and_version}: {limit}", err=True)
    for plan in plans:
        ours = program_environment(os.environ, plan.dump, plan.folder / "program_{pid}.json", plan.window)
        setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(ours.items()))
        for words in (plan.profile_command(), plan.export_command()):
            click.echo(f"{setting} {shlex.join(words)}" if "profile" in words[:2] else shlex.join(words), err=not to_stdout)


def _run(plan: CapturePlan, found: Conditions) -> ProfiledRun:
    from nsys_report.profiling.record import document, write
    from nsys_report.profiling.run import run

    done = run(plan, os.environ, _say)
    write(document(done, found, os.environ.get("XLA_FLAGS", "")), plan.folder)
    return done


def _report(runs: list[ProfiledRun], found: Conditions, paths: Mapping[str, Path | None], of_ranks: Finished | None) -> None:
    """The report of a run, or of its ranks where there are several, with what is known of how it was made."""
    from dataclasses import replace

    from nsys_report.cli.outputs import OUTPUTS, Finished
    from nsys_report.cli.report import deliver
    from nsys_report.profiling.passes import pair_passes
    from nsys_report.profiling.record import document, shown
    from nsys_report.reports.build import TOP, build_report
    from nsys_report.reports.run_page import with_run
    from nsys_report.version import __version__

    passes: list[PassPair] = []
    if of_ranks is None:
        analyses = [_analyze(run) for run in runs]
        passes = pair_passes(*analyses) if len(analyses) == 2 else []
        name = runs[0].plan.export.name
        of_ranks = Finished(build_report([analyses[0].named(name)], f"nsys-report {__version__}", TOP), {name: analyses[0]})
    report = with_run(of_ranks.report, shown(document(runs[0], found, "")), _notices(runs, found), passes)
    deliver(replace(of_ranks, report=report), [(output, path) for output in OUTPUTS if (path := paths[output.key]) is not None])
    _advise(runs[0], next(iter(of_ranks.analyses.values())))


def _advise(run: ProfiledRun, analysis: Analysis) -> None:
    """How to record steady steps alone, where the whole program was recorded."""
    busy = analysis.executions.groupby("hlo_module")["busy_time_ns"].sum()
    if run.plan.window.is_whole and len(busy):
        _say(f"the whole program was recorded; for steady steps alone: --window steps=20,skip=10,module={busy.idxmax()}")


def _analyze(run: ProfiledRun) -> Analysis:
    from nsys_report.cli.progress import progress_line
    from nsys_report.notebook import analyze

    dump = run.plan.dump if any(run.plan.dump.iterdir()) else None
    with progress_line() as progress:
        return analyze(run.plan.export, dump, progress=progress)


def _notices(runs: list[ProfiledRun], found: Conditions) -> list[Notice]:
    from nsys_report.reports.model import Notice
    from nsys_report.reports.run_page import contended_notices

    notices = [Notice("run-remark", remark) for run in runs for remark in run.remarks]
    notices += contended_notices(found.idleness)
    inside = runs[0].program.get("compiles_in_window", 0)
    if inside:
        notices.append(Notice("compiled-in-window", f"{inside} programs were compiled inside the window", "skip more executions: skip=N"))
    return notices


def _say(text: str) -> None:
    click.echo(text, err=True)
