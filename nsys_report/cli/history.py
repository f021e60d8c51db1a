"""`nsys-report record`, `compare` and `bench`: runs and their history."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nsys_report.cli.options import A_PATH, captures_argument
from nsys_report.cli.page import show
from nsys_report.cli.places import keep_apart

if TYPE_CHECKING:
    from nsys_report.history.judging import CaseResult
    from nsys_report.history.model import Record

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
FLAGGED = 3
AUTOMATIC = "automatic"
TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}


A_TIME = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(ns|us|µs|ms|s)\s*")


class Perturbed(click.Command):
    """A command whose --perturb has a time only where one follows: what else follows is an argument of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        following = [*args[1:], ""]
        bare = f"--perturb={AUTOMATIC}"
        told = [bare if a == "--perturb" and not A_TIME.fullmatch(b) else a for a, b in zip(args, following, strict=True)] if args else []
        return super().parse_args(ctx, told)


def _amount(ctx: click.Context, param: click.Parameter, value: str | None) -> float | str | None:
    """A time such as 3ms, in ns; AUTOMATIC and None pass."""
    if value is None or value == AUTOMATIC:
        return value
    found = A_TIME.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no time, such as 3ms.", ctx, param)
    return float(found[1]) * TIMES[found[2]]


def shared_options(command: Decorated) -> Decorated:
    """What record, compare and bench have in common."""
    options = (
        click.option("--no-record", is_flag=True, help="Leave the history as it is."),
        click.option("--out", metavar="FILE", type=A_PATH, help="The figures, with the history's, as JSON."),
        click.option(
            "--perturb",
            metavar="[TIME]",
            callback=_amount,
            is_flag=False,
            flag_value=AUTOMATIC,
            help="Self-test: add the larger of 3 ms and 0.6 of the median, or TIME, to every step. Every case must be flagged (exit 3).",
        ),
        click.option("--label", "labels", metavar="KEY=VALUE", multiple=True, help="Stands beside the record: xla=0.11.2. Repeatable."),
        click.option("--full", is_flag=True, help="Show every figure, not steps, kernel time, host gaps and what is flagged alone."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _files_options(command: Decorated) -> Decorated:
    options = (
        captures_argument,
        click.option(
            "--xla-dump", "dumps", metavar="DIR", type=A_PATH, multiple=True, help="The captures' dumps: one for all, or one each."
        ),
        click.option(
            "--registry",
            metavar="FILE",
            type=A_PATH,
            required=True,
            help="The history: JSON lines; SQLite where it ends in .db or .sqlite.",
        ),
        click.option("--case", metavar="NAME", help="What the run is called in the history; a StepBenchmark's line has its own name."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("record", cls=Perturbed, short_help="Add a run to a history.")
@_files_options
@shared_options
def record(registry: Path, case: str | None, no_record: bool, **options: Any) -> int:
    """Add the medians of a run to a history: steps, kernel time, host gap, classes, bytes, coverage.

    CAPTURE is a capture, several of one case (medians of medians), or a file with the line of StepBenchmark.to_json.
    """
    return _one(registry, case, keep=not no_record, judge=options["perturb"] is not None, **options)


@click.command("compare", cls=Perturbed, short_help="Hold a run against its history.")
@_files_options
@click.option("--record", "add", is_flag=True, help="Add the run to the history too.")
@shared_options
def compare(registry: Path, case: str | None, no_record: bool, add: bool, **options: Any) -> int:
    """Hold a run against the last ten records of its case on this GPU; exit 3 where a figure is flagged.

    Times: above max(1.25 m, m + 4·1.4826·MAD) of the median m, with fewer than three records 1.5 m, and by 0.1 ms at least.
    Bytes: 1 % more. Coverage: a hundredth less.
    """
    return _one(registry, case, keep=add and not no_record, judge=True, **options)


@click.command("bench", cls=Perturbed, short_help="Run cases, compare and record them.")
@click.argument("cases_file", metavar="CASES.toml", type=A_PATH)
@click.option("--registry", metavar="FILE", type=A_PATH, help="The history; without it the one that the file names.")
@click.option("--case", "chosen", metavar="NAME", multiple=True, help="Only this case. Repeatable.")
@shared_options
def bench(
    cases_file: Path,
    registry: Path | None,
    chosen: tuple[str, ...],
    no_record: bool,
    out: Path | None,
    perturb: float | str | None,
    labels: tuple[str, ...],
    full: bool,
) -> int:
    """Run the cases of a file: measure, compare with the history, record; one table, exit 3 on a regression.

    A case has a name, a command (which prints the line of a StepBenchmark, or makes captures) or captures, and how it is treated:
    measured, once (neither compared nor recorded) or skipped, with the reason. A regression is recorded too: the trend shows it.
    """
    from hlo_mapping import HloError
    from nsys_report.benching.cases import read_cases
    from nsys_report.benching.run import measure
    from nsys_report.errors import InputError, ReportError
    from nsys_report.history.environment import environment
    from nsys_report.history.judging import CaseResult
    from nsys_report.history.store import open_store

    found = read_cases(cases_file)
    path = registry or found.registry
    if path is None:
        raise click.UsageError("no history: give --registry FILE, or `registry` in the file of cases")
    cases = _chosen(found.cases, chosen)
    _check_out(out)
    keep_apart({"--registry": path, "--out": out}, [cases_file])
    known, store = environment(labels, found.folder), open_store(path)
    history, results, failed = store.read(), [], []
    for case in cases:
        if case.treatment == "skipped":
            results.append(CaseResult(case.name, "skipped", case.reason))
            continue
        try:
            made = measure(case, found.folder, known)
            result = _judged(made, history, perturb) if case.treatment == "measured" else None
        except (ReportError, HloError) as error:
            results.append(CaseResult(case.name, "failed", f"{error}"))
            failed.append(error)
            continue
        if case.treatment == "once":
            plain = tuple((name, _unjudged(value)) for name, value in made.figures.items())
            results.append(CaseResult(case.name, "once", case.reason, made, plain))
            continue
        assert result is not None
        if not no_record and perturb is None:
            store.append([made])
        results.append(result)
    code = _finish(results, out, full)
    if failed:
        raise InputError("\n".join(str(error) for error in failed), failed[0].hint, "bench")
    return code


def _chosen(cases: Sequence[Any], names: Sequence[str]) -> list[Any]:
    known = [case.name for case in cases]
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no case {name!r}; there are {', '.join(known)}")
    return [case for case in cases if not names or case.name in names]


def _one(
    registry: Path,
    case: str | None,
    captures: Sequence[Path],
    dumps: Sequence[Path],
    out: Path | None,
    perturb: float | str | None,
    labels: Sequence[str],
    full: bool,
    *,
    keep: bool,
    judge: bool,
) -> int:
    """Records or judges one run."""
    from nsys_report.benching.run import record_files
    from nsys_report.history.environment import environment
    from nsys_report.history.store import open_store

    _check_out(out)
    keep_apart({"--registry": registry, "--out": out}, [*captures, *dumps])
    store = open_store(registry)
    history = store.read()
    made = record_files(case, captures, dumps, environment(labels))
    result = _judged(made, history, perturb)
    if keep and perturb is None:
        store.append([made])
        click.echo(f"recorded {made.case} in {registry}", err=True)
    code = _finish([result], out, full)
    return code if judge else 0


def _judged(made: Record, history: Sequence[Record], perturb: float | str | None) -> CaseResult:
    from nsys_report.history.judging import judge_record, self_test

    if perturb is None:
        return judge_record(made, history)
    return self_test(made, history, None if perturb == AUTOMATIC else float(perturb))


def _unjudged(value: float) -> Any:
    from nsys_report.history.rule import Judged

    return Judged(value, None, None, 0, False)


def _check_out(out: Path | None) -> None:
    from nsys_report.reports.export import require_file

    if out is not None:
        require_file(out)


def _finish(results: Sequence[CaseResult], out: Path | None, full: bool) -> int:
    """Prints the table, writes the JSON; 3 where a case is flagged."""
    from nsys_report.reports.export import write_whole
    from nsys_report.reports.history_page import history_section

    show([history_section(results, full)])
    flagged = [r.case for r in results if r.flagged]
    if out is not None:
        document = {"format": "nsys-report history", "version": 1, "flagged": flagged, "cases": [r.document() for r in results]}
        text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
        write_whole(out, lambda file: file.write(text.encode()))
    return FLAGGED if flagged else 0
