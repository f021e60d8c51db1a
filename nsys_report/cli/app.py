"""The command `nsys-report`: its group of commands, and the one place where errors become text and exit codes.

Exit codes: 0 done, 1 an input cannot be used, 2 wrong usage, 3 less was joined than --min-coverage demands, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

import click


@dataclass(frozen=True, slots=True)
class Listed:
    """A command in the help: the module that holds it as `command`, loaded when used so that help is quick; its line; how it is used."""

    module: str
    line: str
    example: str


COMMANDS = {
    "report": Listed(
        "nsys_report.cli.report",
        "Where the time of a capture goes: executions, classes, ceilings (the default).",
        "nsys-report capture.sqlite --xla-dump xla_dump --html report.html",
    ),
    "capture": Listed(
        "nsys_report.cli.capture",
        "Run a program under nsys with XLA's dump, and report on it.",
        "nsys-report capture --window steps=20,skip=10 -- python train.py",
    ),
    "diff": Listed(
        "nsys_report.cli.diff",
        "Did it get slower, where, and is it noise? Captures before and after, paired by HLO.",
        "nsys-report diff old.sqlite new.sqlite --xla-dump old_dump --xla-dump new_dump",
    ),
    "record": Listed(
        "nsys_report.cli.record",
        "Add a run to a history of medians.",
        "nsys-report record capture.sqlite --xla-dump xla_dump --registry history.jsonl --case decode",
    ),
    "compare": Listed(
        "nsys_report.cli.compare",
        "Hold a run against its history; exit 3 on a regression.",
        "nsys-report compare capture.sqlite --xla-dump xla_dump --registry history.jsonl --case decode",
    ),
    "bench": Listed("nsys_report.cli.bench", "Run a file of cases: measure, compare, record.", "nsys-report bench cases.toml"),
    "trend": Listed(
        "nsys_report.cli.trend",
        "How figures moved over a history, and where their level changed.",
        "nsys-report trend history.jsonl --html trend.html",
    ),
    "serve-profile": Listed(
        "nsys_report.cli.serve_profile",
        "A served model under load: latencies, tokens a second, the server's calls.",
        "nsys-report serve-profile --server './serve.sh' --model llama --workload decode:512:64:8",
    ),
    "mcp": Listed(
        "nsys_report.cli.mcp",
        "Serve captures to assistants over the Model Context Protocol.",
        "nsys-report mcp capture.sqlite --xla-dump xla_dump",
    ),
    "check": Listed(
        "nsys_report.cli.check",
        "What a capture can and cannot answer, and the flag that would mend it.",
        "nsys-report check capture.sqlite --xla-dump xla_dump --assert 'host_gap_ns < 200us'",
    ),
    "modules": Listed(
        "nsys_report.cli.modules",
        "What XLA compiled: the programs of a dump, their parameters and sizes.",
        "nsys-report modules xla_dump",
    ),
    "anonymize": Listed(
        "nsys_report.cli.anonymize",
        "A copy of a capture and dump that may be attached to a public report.",
        "nsys-report anonymize capture.sqlite copy --xla-dump xla_dump",
    ),
    "ceilings": Listed(
        "nsys_report.cli.ceilings",
        "The bandwidth and compute ceilings this program knows.",
        "nsys-report ceilings measure --write gpu.toml",
    ),
}

DEBUG = "NSYS_REPORT_DEBUG"
WIDEST_NAME = max(map(len, COMMANDS)) + 2
"""Where the lines of commands begin in the help."""
LONGEST_SIZE = 4
"""Digits of a terminal's width or height."""


class Commands(click.Group):
    """A group whose commands load when used, and whose default command is `report`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = [a for a in args if a != "--debug"]
        if len(rest) != len(args):
            os.environ[DEBUG] = "1"
        if rest and rest[0] not in COMMANDS and rest[0] not in ("--help", "-h", "--version"):
            _refuse_misspelt(rest[0], ctx)
            rest = ["report", *rest]
        return super().parse_args(ctx, rest)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name].module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            for name, listed in COMMANDS.items():
                formatter.write_dl([(name, listed.line)], col_max=WIDEST_NAME, col_spacing=WIDEST_NAME - len(name))
                formatter.write(f"{'':{WIDEST_NAME + 2}}{listed.example}\n")


def _refuse_misspelt(word: str, ctx: click.Context) -> None:
    """A word that is no file but nearly a command is not taken for a capture."""
    import difflib

    close = [name for name in COMMANDS if len(word) > 2 and name.startswith(word)] or difflib.get_close_matches(word, COMMANDS, 1)
    if close and not os.path.exists(word):
        raise click.UsageError(f"there is no command and no file {word!r}; did you mean the command {close[0]}?", ctx)


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from nsys_report.version import __version__

        click.echo(f"nsys-report {__version__}")
        ctx.exit()


@click.group(cls=Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version and exit.")
def group() -> None:
    """Joins NVIDIA Nsight Systems captures to XLA's HLO dumps.

    `nsys-report CAPTURE.sqlite --xla-dump DIR` reports one or several captures; `nsys-report COMMAND --help` says what each command
    takes. With --debug, an error shows its traceback.

    Completion: eval "$(_NSYS_REPORT_COMPLETE=bash_source nsys-report)" in ~/.bashrc; zsh_source and fish_source for other shells.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command line (`sys.argv` without one) and exits."""
    for name in ("SIGTERM", "SIGHUP"):  # ended from outside, no half-written file is left either
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_DFL:
            signal.signal(getattr(signal, name), _end)
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and gives its exit code; errors are printed to stderr, without a traceback unless debugging."""
    _be_lenient_about_letters()
    _forget_impossible_sizes()
    with _without_collector():
        return _run(arguments)


@contextmanager
def _without_collector() -> Iterator[None]:
    """A command makes hundreds of thousands of small values, no cycles worth collecting, and ends: looking for garbage takes 5 %."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = group.main(args=None if arguments is None else list(arguments), prog_name="nsys-report", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        _say(error.format_message(), _usage_hint(error))
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return 130
    except BrokenPipeError:
        _leave_pipe()
        return 1
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _explain(error)


def _end(number: int, _frame: object) -> NoReturn:
    """Ends as a shell expects of a signal, with the clean-up of an exit."""
    raise SystemExit(128 + number)


def _explain(error: Exception) -> int:
    """Prints an error for a person and gives the exit code."""
    from hlo_mapping import HloError
    from nsys_report.errors import ReportError

    if isinstance(error, ReportError):
        _say(error.message, error.hint)
        return error.exit_code
    if isinstance(error, HloError):
        _say(str(error), error.hint)
    elif isinstance(error, MemoryError):
        _say("not enough memory for this capture", "trace a shorter window, or run on a machine with more memory")
    elif isinstance(error, OSError):
        _say(f"{error.filename or 'the output'}: {error.strerror or error}", "check the path, its permissions and the disk")
    else:
        _say(f"this program failed where it should not: {type(error).__name__}: {error}", "run it again with --debug for the traceback")
    return 1


def _say(message: str, hint: str = "") -> None:
    from nsys_report.units import visible

    click.echo("error: " + "\n".join(map(visible, message.splitlines())), err=True)
    for line in hint.splitlines():
        click.echo(f"  → {visible(line)}", err=True)


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context is not None else ""


def _be_lenient_about_letters() -> None:
    """A terminal without µ or → gets a question mark, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _forget_impossible_sizes() -> None:
    """Libraries read a terminal's size from these as whole numbers, and fail on anything else."""
    for name in ("COLUMNS", "LINES"):
        given = os.environ.get(name, "")
        if given and not (given.isascii() and given.isdigit() and len(given) <= LONGEST_SIZE):
            del os.environ[name]


def _leave_pipe() -> None:
    """Points stdout at nothing, so that Python's last flush does not complain about a reader that has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
