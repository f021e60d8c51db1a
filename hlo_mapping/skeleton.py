"""A program without its sizes: what is the same for every shape that one function was compiled for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from hlo_mapping.dump import files
from hlo_mapping.dump.program import Program
from hlo_mapping.errors import HloError
from hlo_mapping.ir import Module

_INSTRUCTION = re.compile(r"^[ \t]++(?:ROOT )?%?[\w.\-]+ = (?P<shape>\(.*?\)|\S+) (?P<opcode>[a-z][\w\-]*)\(", re.MULTILINE)
_SIZES = re.compile(r"\[([^\]]*)\](?:\{[^}]*\})?|/\*.*?\*/|\s")


def skeleton(program: Program) -> str | None:
    """A digest of name, opcodes, element types and ranks in order: equal where programs differ in nothing but sizes of dimensions.

    Of the program before optimization where the dump has it, since the compiler chooses differently for different sizes;
    else of the optimized module; None where there is neither.
    """
    digest = hashlib.blake2b(program.name.encode(), digest_size=8)
    pieces = list(_as_written(_before(program)))
    if not pieces and program.module is None:
        return None
    for piece in pieces or _as_compiled(program.module):
        digest.update(piece.encode())
    return digest.hexdigest()


def _before(program: Program) -> str:
    path = program.files.get(files.BEFORE)
    try:
        return files.read_text(path) if path is not None else ""
    except HloError:
        return ""


def _as_written(text: str) -> Iterator[str]:
    for found in _INSTRUCTION.finditer(text):
        yield f"{found['opcode']} {_SIZES.sub(_rank, found['shape'])};"


def _rank(found: re.Match[str]) -> str:
    sizes = found[1]
    return "" if sizes is None else str(sizes.count(",") + bool(sizes))


def _as_compiled(module: Module | None) -> Iterator[str]:
    for computation in module.computations if module is not None else ():
        for i in computation.instructions:
            leaves = ",".join(f"{leaf.element_type}{len(leaf.dimensions)}" for leaf in i.shape.leaves)
            yield f"{i.opcode} {leaves} {len(i.operands)};"
