"""Programs and streams of launches written by hand, for tests of matching: every name and number in a test stands in the test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hlo_mapping.dump.program import Program
from hlo_mapping.dump.thunks import Thunk
from hlo_mapping.ir import Module
from hlo_mapping.matching.automaton import Automaton
from hlo_mapping.matching.beam import StreamCutter
from hlo_mapping.matching.schedule import build_schedule
from hlo_mapping.matching.segments import Cut
from hlo_mapping.matching.tokens import Token
from hlo_mapping.text.parser import parse_module

Launch = str | Token
"""A kernel by name, or any token."""


def kernel(name: str, instruction: str | None = None, grid: int = 1, kind: str = "kCustomKernel") -> Thunk:
    """A thunk that launches one kernel of `grid` blocks of 128 threads; its instruction has the kernel's name unless given."""
    return Thunk(id=None, kind=kind, kernel=name, grid=(grid, 1, 1), block=(128, 1, 1), instruction=instruction or name)


def call(kind: str, instruction: str) -> Thunk:
    """A thunk without a kernel of its own: a library call, a copy, a memset."""
    return Thunk(id=None, kind=kind, instruction=instruction)


def nest(kind: str, instruction: str | None = None, **branches: Sequence[Thunk]) -> Thunk:
    """A thunk that holds others, by label."""
    return Thunk(id=None, kind=kind, instruction=instruction, branches=tuple((label, tuple(inside)) for label, inside in branches.items()))


def program(name: str, *thunks: Thunk, number: int = 1, module: Module | None = None, metadata: bool = True) -> Program:
    return Program(number, name, module, thunks, bool(thunks), metadata, (), Path("dump"))


def module(*lines: str, computations: str = "", name: str = "jit_f") -> Module:
    """A scheduled module whose entry holds these lines."""
    body = "\n".join(f"  {line}" for line in lines)
    return parse_module(f"HloModule {name}, is_scheduled=true\n\n{computations}\nENTRY %main () -> f32[] {{\n{body}\n}}\n")


def copy(size: int) -> Token:
    return Token("copy", "", None, None, size)


def memset(size: int) -> Token:
    return Token("memset", "", None, None, size)


def readback(size: int = 1) -> Token:
    return Token("readback", "", None, None, size)


def launched(name: str, grid: int = 1, block: int = 128) -> Token:
    return Token("kernel", name, f"{grid},1,1", f"{block},1,1", None)


def tokens_of(launches: Iterable[Launch]) -> tuple[list[Token], np.ndarray]:
    """The distinct tokens of a stream, and its codes."""
    numbers: dict[Token, int] = {}
    codes = [numbers.setdefault(launched(item) if isinstance(item, str) else item, len(numbers)) for item in launches]
    return list(numbers), np.array(codes, np.int32)


def cut(
    launches: Sequence[Launch], *programs: Program, graph: Sequence[bool] | None = None, fresh: Sequence[bool] | None = None
) -> tuple[Cut, list[tuple[str, int, int]]]:
    """The cut of a stream, and its executions as (program, first launch, launch after the last)."""
    alphabet, codes = tokens_of(launches)
    automata = [Automaton(build_schedule(p), alphabet) for p in programs]
    inside = np.zeros(len(codes), bool) if graph is None else np.array(graph, bool)
    found = StreamCutter(automata).cut(codes, inside, None if fresh is None else np.array(fresh, bool))
    return found, [(automata[s.program].schedule.name, s.start, s.end) for s in found.segments]
