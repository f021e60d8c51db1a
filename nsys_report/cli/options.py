"""Options that commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hlo_mapping import KERNEL_CLASSES

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
ROLLUPS = ("name", "scope", "source", "layer", "parameter", "class", "opcode", "phase")


class PathType(click.Path):
    """A path, judged by whoever opens it; an empty one, as of a variable that is not set, is not taken for the directory at hand."""

    name = "path"

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(readable=False, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty; is a variable not set?", param, ctx)
        return super().convert(value, param, ctx)


class ShareType(click.FloatRange):
    """A share of a whole, from 0 to 1."""

    name = "share"

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:  # nor is it "nan", which click lets pass
            self.fail(f"{value!r} is no share from 0 to 1, such as 0.95.", param, ctx)
        return share


A_PATH = PathType()

captures_argument = click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True, type=A_PATH)


def role_options(command: Decorated) -> Decorated:
    """--roles and --manifest: what the user knows about parameters, which wins over what is inferred."""
    roles = click.option("--roles", metavar="FILE", type=A_PATH, help="TOML file: patterns of parameter names to roles; they win.")
    manifest = click.option("--manifest", metavar="FILE", type=A_PATH, help="Serving manifest (JSON) whose entries name each input's role.")
    return roles(manifest(command))


def ceiling_option(command: Decorated) -> Decorated:
    """--ceiling NAME=VALUE, repeatable."""
    return click.option(
        "--ceiling",
        "ceilings",
        metavar="NAME=VALUE",
        multiple=True,
        help="A ceiling of this GPU: measured, nominal, nvlink or network in GB/s; bf16, tf32, f32, fp8 or int8 in TFLOPS. Repeatable.",
    )(command)


def ceilings_file_option(command: Decorated) -> Decorated:
    """--ceilings FILE: a table of GPUs that comes before the built-in one."""
    about = "TOML table of GPUs that comes before the built-in one; `nsys-report ceilings measure` writes such entries."
    return click.option("--ceilings", "ceilings_file", metavar="FILE", type=A_PATH, help=about)(command)


def ncu_option(command: Decorated) -> Decorated:
    """--ncu FILE: a profile by Nsight Compute of the same program."""
    about = "CSV of Nsight Compute on the same program (ncu --csv --page raw): its bytes beside the implied ones."
    return click.option("--ncu", metavar="FILE", type=A_PATH, help=about)(command)


def what_if_option(command: Decorated) -> Decorated:
    """--what-if SCENARIO, repeatable."""
    about = "Predict the step: weights=int8, kv=fp8 (f32, bf16, f16, int8, fp8, int4, fp4), no-host-gap, kv_gather=fused. Repeatable."
    return click.option("--what-if", "scenarios", metavar="SCENARIO", multiple=True, help=about)(command)


def narrowing_options(command: Decorated) -> Decorated:
    """--top, --module, --execution and --class: what the report is about."""
    options = (
        click.option("--top", metavar="N", type=click.IntRange(min=0), default=12, show_default=True, help="Rows of long tables; 0: all."),
        click.option("--module", "modules", metavar="NAME", multiple=True, help="Only programs of this name, or name#number. Repeatable."),
        click.option("--execution", "executions", metavar="N", type=int, multiple=True, help="Only this execution (its id). Repeatable."),
        click.option("--class", "classes", type=click.Choice(KERNEL_CLASSES), multiple=True, help="Only this class. Repeatable."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def rollup_option(command: Decorated) -> Decorated:
    """--rollup BY: by what the terminal and Markdown sum up what runs."""
    about = "Sum up what runs by this; --json, --csv and --html have all of them."
    return click.option("--rollup", type=click.Choice(ROLLUPS), default="name", show_default=True, help=about)(command)
