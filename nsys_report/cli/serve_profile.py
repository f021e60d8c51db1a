"""`nsys-report serve-profile`: a served model under load, timed or under nsys."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsys_report.cli.options import A_PATH
from nsys_report.cli.report import output_options

if TYPE_CHECKING:
    from nsys_report.notebook import Analysis
    from nsys_report.serving.calls import JoinedCalls
    from nsys_report.serving.drivers import Driver
    from nsys_report.serving.profile import NsysSession, Served
    from nsys_report.serving.workloads import Workload

EPILOG = """
\b
Workloads: decode:PREFIX:STEPS[:STREAMS], prefill:PREFIX:CHUNKS, prompts:TOKENS:ROUNDS:STREAMS; STREAMS also as 1,2,4,8
\b
Example:
  nsys-report serve-profile --server "tritonserver --model-repository models" --url http://localhost:8000 \\
      --model llm --workload prefill:512:8 --workload decode:512:64:1,4,16
"""
DRIVER_NAMES = ("kserve", "infer", "openai")
MODES = ("time", "nsys")
KEYS = ("server", "url", "model", "driver", "request", "workload", "mode", "repeats", "ready", "timeline")
A_TEXT: tuple[str, Callable[[Any], bool]] = ("a text in quotation marks", lambda value: isinstance(value, str))
VALUES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "workload": (
        'a list, such as ["decode:512:64"]',
        lambda value: isinstance(value, list) and all(isinstance(form, str) for form in value),
    ),
    "request": ("a table, or JSON", lambda value: isinstance(value, (dict, str))),
    "driver": (" or ".join(DRIVER_NAMES), lambda value: value in DRIVER_NAMES),
    "mode": (" or ".join(MODES), lambda value: value in MODES),
    "repeats": ("a whole number from 1 to 1000", lambda value: type(value) is int and 1 <= value <= 1000),
    "ready": ("a number of seconds from 1 on", lambda value: type(value) in (int, float) and value >= 1),
}
"""What the keys of a file take beyond a text, in words and as a test."""


@click.command("serve-profile", short_help="A served model under load.", epilog=EPILOG)
@click.option("--config", metavar="FILE", type=A_PATH, help="TOML file with these options by name; options on the command line win.")
@click.option("--server", metavar="COMMAND", help="Starts the server; without it one is taken that runs already.")
@click.option("--url", metavar="URL", help="Where it listens.  [default: http://127.0.0.1:8000]")
@click.option("--model", metavar="NAME", help="The model's name.")
@click.option(
    "--driver",
    type=click.Choice(DRIVER_NAMES),
    help="KServe v2 with Triton's generate, v2 with tensors as the model's metadata says, or /v1/completions.  [default: kserve]",
)
@click.option("--request", metavar="JSON", help="Fields of each request's body, over those that the driver sets; a table in --config.")
@click.option("--workload", "workloads", metavar="FORM", multiple=True, help="What it is asked. Repeatable.")
@click.option("--mode", type=click.Choice(MODES), help="Time it, or capture the first repeat under nsys.  [default: time]")
@click.option("--repeats", metavar="N", type=click.IntRange(1, 1000), help="How often each workload runs.  [default: 3]")
@click.option("--ready", metavar="S", type=click.FloatRange(min=1), help="How long to wait until it is ready.  [default: 600]")
@click.option("--timeline", metavar="FILE", type=A_PATH, help="The server's log of its calls, to be laid over the capture.")
@click.option("--capture", metavar="SQLITE", type=A_PATH, help="Lay --timeline over a capture that is there already, and serve nothing.")
@click.option("--xla-dump", "dump", metavar="DIR", type=A_PATH, help="The dump of that capture.")
@click.option("--nsys", "nsys_path", metavar="PATH", type=A_PATH, help="The nsys to use, with --mode nsys.")
@click.option(
    "--wait", "wait_s", metavar="S", type=click.FloatRange(min=0), default=120.0, show_default=True, help="For an idle GPU; 0: no look."
)
@click.option("--keep", metavar="DIR", type=A_PATH, help="Keep the capture, its export, the dump and the server's output. New or empty.")
@output_options
def command(
    config: Path | None,
    workloads: tuple[str, ...],
    capture: Path | None,
    dump: Path | None,
    nsys_path: Path | None,
    wait_s: float,
    keep: Path | None,
    **options: Any,
) -> int:
    """Start a server, load it as asked, and report what its clients, its own counters and the GPU saw."""
    from nsys_report.serving.workloads import parse_workloads

    chosen = _chosen(config, options, workloads)
    if capture is not None:
        return _lay_over(capture, dump, chosen, options)
    if not chosen["workload"]:
        raise click.UsageError("there is nothing to ask: give --workload, such as decode:512:64")
    if not chosen["model"]:
        raise click.UsageError("which model? give --model NAME")
    parsed = [workload for written in chosen["workload"] for workload in parse_workloads(written)]
    if chosen["driver"] == "infer" and any(workload.output_tokens > 1 and workload.written.startswith("decode") for workload in parsed):
        raise click.UsageError("--driver infer asks for one answer, not for tokens: give prefill or prompts workloads")
    if keep is not None and keep.is_dir() and any(keep.iterdir()):
        raise click.UsageError(f"{keep}: not empty; a run is kept in a new or an empty directory")
    with tempfile.TemporaryDirectory(prefix="nsys-report-") as made:
        folder = keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        served, analysis, joined = _profile(chosen, parsed, folder, nsys_path, wait_s)
        _keep_record(served, chosen, folder)
        _deliver(served, analysis, joined, options)
    return 1 if any(f.failed for f in served.measured) else 0


def _chosen(config: Path | None, options: Mapping[str, Any], workloads: tuple[str, ...]) -> dict[str, Any]:
    """What the command line, then the file, then the defaults say."""
    import tomllib

    from nsys_report.errors import InputError

    given: dict[str, Any] = {}
    if config is not None:
        try:
            given = tomllib.loads(config.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"{config}: cannot be read: {error}", "a TOML file with url, model, workload, ...", slug="serve-config"
            ) from error
        unknown = set(given) - set(KEYS)
        if unknown:
            raise click.UsageError(f"{config}: {', '.join(sorted(unknown))} is not known; it takes {', '.join(KEYS)}")
        _check_values(config, given)
    defaults = {"url": "http://127.0.0.1:8000", "driver": "kserve", "mode": "time", "repeats": 3, "ready": 600.0, "workload": []}
    chosen = {key: options.get(key) if options.get(key) is not None else given.get(key, defaults.get(key)) for key in KEYS}
    chosen["workload"] = list(workloads) or chosen["workload"]
    chosen["request"] = _fields(chosen["request"])
    return chosen


def _check_values(config: Path, given: Mapping[str, Any]) -> None:
    """Raises where a value of the file is none that its option takes."""
    for key, value in given.items():
        takes, fits = VALUES.get(key, A_TEXT)
        if not fits(value):
            raise click.UsageError(f"{config}: {key} = {value!r}: it takes {takes}")


def _fields(given: Any) -> dict[str, Any]:
    """A request's own fields: a table of the file, or JSON of the command line."""
    import json

    try:
        fields = json.loads(given) if isinstance(given, str) else given or {}
    except ValueError as error:
        raise click.UsageError(f"--request is no JSON: {error}") from error
    if not isinstance(fields, dict):
        raise click.UsageError('--request takes an object, such as {"temperature": 0}')
    return fields


def _profile(
    chosen: Mapping[str, Any], workloads: list[Workload], folder: Path, nsys_path: Path | None, wait_s: float
) -> tuple[Served, Analysis | None, JoinedCalls | None]:
    from dataclasses import replace

    from nsys_report.profiling.record import prepare
    from nsys_report.serving.drivers import DRIVERS
    from nsys_report.serving.profile import load_timed, serving

    driver: Driver = DRIVERS[chosen["driver"]](chosen["url"], chosen["model"], chosen["request"])
    server = shlex.split(chosen["server"] or "")
    with closing(driver):
        if chosen["mode"] == "nsys":
            return _recorded(driver, server, chosen, workloads, folder, nsys_path, wait_s)
        with serving(driver, server, os.environ, folder / "server.log", chosen["ready"], None):
            found = prepare(wait_s, False, {}, _say)
            served = load_timed(driver, workloads, chosen["repeats"])
            return replace(served, conditions=found), None, None


def _recorded(
    driver: Driver,
    server: list[str],
    chosen: Mapping[str, Any],
    workloads: list[Workload],
    folder: Path,
    nsys_path: Path | None,
    wait_s: float,
) -> tuple[Served, Analysis | None, JoinedCalls | None]:
    from nsys_report.nsys_tool import find_nsys
    from nsys_report.profiling.command import WITHOUT_NVTX
    from nsys_report.profiling.run import lost_strings
    from nsys_report.serving.profile import NsysSession

    if not server:
        raise click.UsageError("--mode nsys starts the server itself: give --server COMMAND")
    nsys = find_nsys(nsys_path)
    served, capture = _run_under(NsysSession(nsys, folder / "capture"), driver, server, chosen, workloads, folder, wait_s)
    if lost_strings(capture):
        click.echo("nsys's importer stumbled over NVTX ranges and lost CUDA tables; serving once more without NVTX", err=True)
        shutil.rmtree(folder / "xla_dump")
        for log in folder.glob("program_*.json"):
            log.unlink()
        served, capture = _run_under(NsysSession(nsys, folder / "capture", WITHOUT_NVTX), driver, server, chosen, workloads, folder, 0.0)
    analysis = _analyze(capture, folder / "xla_dump")
    return served, analysis, _join(capture, analysis, Path(chosen["timeline"])) if chosen["timeline"] else None


def _run_under(
    session: NsysSession,
    driver: Driver,
    server: list[str],
    chosen: Mapping[str, Any],
    workloads: list[Workload],
    folder: Path,
    wait_s: float,
) -> tuple[Served, Path]:
    """One life of the server under nsys: what came of the load, and the export."""
    from dataclasses import replace

    from nsys_report.profiling.environment import program_environment
    from nsys_report.profiling.record import prepare
    from nsys_report.profiling.window_spec import WindowSpec
    from nsys_report.serving.profile import export, load_recorded, serving

    dump = folder / "xla_dump"
    dump.mkdir()
    environment = {**os.environ, **program_environment(os.environ, dump, folder / "program_{pid}.json", WindowSpec())}
    with serving(driver, server, environment, folder / "server.log", chosen["ready"], session):
        found = prepare(wait_s, False, {}, _say)
        served = load_recorded(driver, workloads, chosen["repeats"], session.recording(environment))
    return replace(served, conditions=found), export(session)


def _lay_over(capture: Path, dump: Path | None, chosen: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    from nsys_report.serving.profile import Served

    if not chosen["timeline"]:
        raise click.UsageError("--capture goes with --timeline FILE: what is to be laid over it?")
    analysis = _analyze(capture, dump)
    _deliver(Served((), {}), analysis, _join(capture, analysis, Path(chosen["timeline"])), options)
    return 0


def _analyze(capture: Path, dump: Path | None) -> Analysis:
    from nsys_report.cli.progress import progress_line
    from nsys_report.notebook import analyze

    with progress_line() as progress:
        return analyze(capture, dump if dump is not None and any(dump.iterdir()) else None, progress=progress)


def _join(capture: Path, analysis: Analysis, timeline: Path) -> JoinedCalls:
    from nsys_report.capture.session import read_session_start
    from nsys_report.serving.calls import join_calls
    from nsys_report.serving.timeline import read_timeline

    return join_calls(read_timeline(timeline), analysis.joined.executions, read_session_start(capture))


def _deliver(served: Served, analysis: Analysis | None, joined: JoinedCalls | None, options: Mapping[str, Any]) -> None:
    """The page of the load, and the capture's own after it."""
    from nsys_report.cli.outputs import OUTPUTS, Finished
    from nsys_report.cli.report import deliver
    from nsys_report.reports.build import TOP, build_report
    from nsys_report.reports.model import Report
    from nsys_report.reports.serving_page import serving_part
    from nsys_report.version import __version__

    made_by = f"nsys-report {__version__}"
    parts = build_report([analysis], made_by, TOP).parts if analysis is not None else ()
    part = serving_part(served, joined, _floor(analysis))
    analyses = {parts[0].name: analysis} if analysis is not None else {}
    wanted = [(output, path) for output in OUTPUTS if (path := options.get(output.key)) is not None]
    deliver(Finished(Report((part, *parts), None, made_by), analyses), wanted)


def _keep_record(served: Served, chosen: Mapping[str, Any], folder: Path) -> None:
    """How it was served, beside what is kept."""
    from nsys_report.profiling.record import surroundings, write

    if served.conditions is not None:
        asked = {key: chosen[key] for key in ("server", "model", "driver", "workload", "mode", "repeats")}
        write({**surroundings(served.conditions), **asked}, folder)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _floor(analysis: Analysis | None) -> float | None:
    """Tokens a second if the program that makes tokens and takes most time took its floor; None without one."""
    rows = analysis.results.steps.to_pylist() if analysis is not None else []
    made = [row for row in rows if row["floor_tokens_per_s"]]
    floor = max(made, key=lambda row: row["total_ns"], default={"floor_tokens_per_s": None})["floor_tokens_per_s"]
    return float(floor) if floor else None
