"""Modules for tests: small ones written out, those of fixtures/programs, and those of the captured programs."""

from __future__ import annotations

import functools
import gzip
import re
from pathlib import Path
from typing import Any

from hlo_mapping.facts import module_facts
from hlo_mapping.ir import Module
from hlo_mapping.text.parser import parse_module

FIXTURES = Path(__file__).parents[2] / "fixtures"
PROGRAMS = tuple(sorted(p.name.split(".")[0] for p in (FIXTURES / "programs").glob("*.txt*")))
Row = dict[str, Any]

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""


def module(entry: str, before: str = "", header: str = "") -> Module:
    """A module from the lines of its entry computation; `before` holds other computations."""
    lines = "\n".join(f"  {line.strip()}" for line in entry.strip().splitlines())
    return parse_module(f"HloModule m, is_scheduled=true{header}\n\n{ADD}\n{before}\nENTRY %main {{\n{lines}\n}}\n")


def rows(found: Module) -> dict[str, Row]:
    """Facts by instruction name."""
    return {row["hlo_instruction"]: row for row in module_facts(found, 1).to_pylist()}


@functools.cache
def text(name: str) -> str:
    """The text of one module of fixtures/programs, or of fixtures/named_programs."""
    packed = [FIXTURES / folder / f"{name}.txt.gz" for folder in ("programs", "named_programs")]
    found = next((p for p in packed if p.exists()), None)
    return gzip.decompress(found.read_bytes()).decode() if found else (FIXTURES / "programs" / f"{name}.txt").read_text()


@functools.cache
def program(name: str) -> Module:
    """One module of fixtures/programs."""
    return parse_module(text(name))


@functools.cache
def program_rows(name: str) -> dict[str, Row]:
    """Facts of one module of fixtures/programs, by instruction name."""
    return rows(program(name))


def captured_path(capture: str, name: str) -> Path:
    """The optimized module of a captured program."""
    (path,) = (FIXTURES / capture / "xla_dump").glob(f"*.{name}.*gpu_after_optimizations.txt")
    return path


@functools.cache
def captured(capture: str, name: str) -> Module:
    """One module of a captured program."""
    return parse_module(captured_path(capture, name).read_text())


@functools.cache
def captured_rows(capture: str, name: str) -> dict[str, Row]:
    """Facts of one module of a captured program, by instruction name."""
    return rows(captured(capture, name))


def total(found: dict[str, Row], column: str, **where: str) -> int:
    """The sum of a column over the rows with these values; null counts nothing."""
    return sum(row[column] or 0 for row in found.values() if all(row[k] == v for k, v in where.items()))


def in_class(found: dict[str, Row], kernel_class: str, detail: str | None = None) -> set[str]:
    """The instructions of one class."""
    return {n for n, row in found.items() if row["kernel_class"] == kernel_class and detail in (None, row["class_detail"])}


def without_names(source: str) -> str:
    """The module without what people named: parameters become Arg_N, metadata and source tables are gone."""
    source = re.sub(r', metadata=\{(?:[^{}"]|"(?:\\.|[^"])*")*\}', "", source)
    source = re.sub(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n.*?(?=\n\n)", "", source, flags=re.DOTALL)
    entry = source[source.index("\nENTRY ") :].split("\n}")[0]
    names = {m[1]: f"Arg_{m[2]}" for m in re.finditer(r"^ +%?([\w.\-]+) = [^\n]*? parameter\((\d+)\)", entry, re.MULTILINE)}
    word = re.compile(r"(?<![\w.\-])(" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")(?![\w.\-])")
    return word.sub(lambda m: names[m[1]], source)
