"""Branches of conditionals that the dump holds and the capture has no record of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hlo_mapping import Instruction, Module
from nsys_report.analysis.arrays.view import Ints, View


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A conditional instruction of which a branch's work is nowhere in the capture."""

    hlo_module: str
    conditional: str
    source: str
    """Its line of source, as file:line; "" where the dump does not say."""
    launches: int
    """Instructions of its largest unrecorded branch that launch work, in one pass of it."""

    @property
    def description(self) -> str:
        """The instruction with its line, and what its branch holds."""
        at = f" ({self.source})" if self.source else ""
        return f"{self.conditional}{at} in {self.hlo_module}, a branch of which launches {self.launches}"


def unrecorded_branches(view: View) -> tuple[Unrecorded, ...]:
    """The conditionals of programs that ran, of whose branches one launches work that no activity is joined to."""
    joined, found = view.joined, list[Unrecorded]()
    ran = pc.unique(joined.facts["program_id"].take(pa.array(_recorded(view)))).to_pylist()
    for number in sorted(set(ran) & joined.programs.keys()):
        module = joined.programs[number].module
        if module is not None and any(i.opcode == "conditional" for c in module.computations for i in c.instructions):
            found += _of_program(view, number, module)
    return tuple(found)


def _of_program(view: View, number: int, module: Module) -> Iterator[Unrecorded]:
    facts = view.joined.facts.select(["program_id", "hlo_instruction"])
    mine = pc.field("program_id") == number
    launching = set(facts.filter(mine)["hlo_instruction"].to_pylist())
    recorded = set(facts.take(pa.array(_recorded(view))).filter(mine)["hlo_instruction"].to_pylist())
    for computation in module.computations:
        for i in computation.instructions:
            if i.opcode == "conditional":
                bodies = [{name for name in _instructions(module, called) if name in launching} for called in i.called]
                most = max((len(body) for body in bodies if body and not body & recorded), default=0)
                if most:
                    yield Unrecorded(module.name, i.name, _source(i), most)


def _recorded(view: View) -> Ints:
    """The rows of the facts that activities are joined to."""
    rows = np.unique(view.instruction).astype(np.int64)
    return rows[rows >= 0]


def _instructions(module: Module, computation: str) -> Iterator[str]:
    """The names in a computation, and in those that its own instructions run outside of kernels."""
    for i in module.by_name[computation].instructions:
        yield i.name
        if i.opcode in ("while", "conditional", "call", "async-start"):
            for called in i.called:
                yield from _instructions(module, called)


def _source(i: Instruction) -> str:
    return f"{i.metadata.source_file.rpartition('/')[2]}:{i.metadata.source_line}" if i.metadata.source_file else ""
