"""Programs of a few lines that run in made-up captures, and the fixtures' findings, for the tests of the rules."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hlo_mapping.dump.program import Program
from hlo_mapping.facts import module_facts
from hlo_mapping.text.parser import parse_module
from nsys_report import notebook
from nsys_report.analysis import compute_results, find_ceilings
from nsys_report.capture.health import Health
from nsys_report.capture.health_items import HealthItem
from nsys_report.findings.model import Finding
from nsys_report.findings.rules.apply import find
from nsys_report.joined import Joined
from tests.nsys_report.joined_samples import copy, fact, joined, kernel

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
ROOF = 1e12
"""Bytes a second of the made-up GPU: a kB takes a nanosecond."""


@functools.cache
def analysis(name: str) -> notebook.Analysis:
    """A fixture, analyzed once."""
    folder = FIXTURES / name
    dump = folder / "xla_dump"
    return notebook.analyze(folder / "capture.sqlite", dump if dump.is_dir() else None)


def findings(name: str) -> dict[str, Finding]:
    """A fixture's findings by slug, in their order."""
    return {finding.slug: finding for finding in analysis(name).causes}


def program(text: str, number: int = 1) -> Program:
    """A program of a dump from the text of its module."""
    module = parse_module(text, "made up")
    return Program(number, module.name, module, (), False, False, (), Path())


def health(*items: HealthItem) -> Health:
    """A capture's health with these items."""
    return Health(items, "none", 1, 1, 0, 0, 0, 0, 0)


def run(
    text: str | None,
    times: dict[str, int],
    *,
    steps: int = 4,
    between: int = 0,
    facts: list[dict[str, Any]] = (),  # type: ignore[assignment]
    copies: tuple[dict[str, Any], ...] = (),
    **more: Any,
) -> Joined:
    """A program whose instructions run one after another, `steps` times with a pause; times in ns by instruction.

    `copies` (offset from an execution's end, kind, bytes, duration) lie in each pause.
    """
    rows = module_facts(parse_module(text, "made up"), 1).to_pylist() if text is not None else list(facts)
    numbers = {row["hlo_instruction"]: i for i, row in enumerate(rows)}
    name = rows[0]["hlo_module"]
    activities, executions, start = [], {}, 0
    for step in range(steps):
        first = start
        for instruction, time in times.items():
            activities.append(kernel(start, start + time, step, numbers[instruction]))
            start += time
        for one in copies:
            at = start + one["offset"]
            activities.append(copy(at, at + one["time"], one["kind"], one["bytes"], None))
        executions[step] = {"hlo_module": name, "busy_time_ns": start - first}
        start += between
    made = joined(activities, rows, executions, **more)
    return replace(made, programs={1: program(text)} if text is not None else {})


def found(made: Joined, state: Health | None = None, **ceilings: float) -> dict[str, Finding]:
    """What is found in a made-up capture, on a GPU whose memory moves ROOF bytes a second."""
    given = find_ceilings("made up", None, {"measured": ROOF / 1e9, **ceilings})
    return {f.slug: f for f in find(made, compute_results(made, given), state or health())}


def with_info(made: Joined, **info: Any) -> Joined:
    """The same capture with more known of it."""
    capture = SimpleNamespace(**vars(made.capture) | {"info": SimpleNamespace(**{"gpus": ()} | info)})
    return replace(made, capture=capture)  # type: ignore[arg-type]


__all__ = ["FIXTURES", "ROOF", "analysis", "copy", "fact", "findings", "found", "health", "joined", "kernel", "program", "run", "with_info"]
