"""A Module written as HLO text, in the long form that XLA writes since 2025: names with %, computations with signatures."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_mapping.ir import Computation, Instruction, Module, Operand


def print_module(module: Module) -> str:
    """The text of a module. Reading it gives an equal module; attributes and stack-frame tables are written as they were read."""
    return "\n".join([*_header(module), *(line for c in module.computations for line in _computation(c))])


def _header(module: Module) -> Iterator[str]:
    yield f"HloModule {module.name}{print_attributes(module.attributes)}"
    yield ""
    if module.tables:
        yield module.tables
        yield ""


def _computation(computation: Computation) -> Iterator[str]:
    parameters = ", ".join(f"{p.name}: {p.shape.text(layouts=False)}" for p in computation.parameters)
    entry = "ENTRY " if computation.is_entry else ""
    yield f"{entry}%{computation.name} ({parameters}) -> {computation.root.shape.text(layouts=False)} {{"
    for instruction in computation.instructions:
        yield "  " + print_instruction(instruction)
    yield "}" + computation.suffix
    yield ""


def print_instruction(instruction: Instruction) -> str:
    """One instruction's line, without indentation."""
    literal = instruction.literal
    arguments = ", ".join(map(print_operand, instruction.operands)) if literal is None else literal
    root = "ROOT " if instruction.is_root else ""
    head = f"{root}%{instruction.name} = {instruction.shape} {instruction.opcode}({arguments})"
    return head + print_attributes(instruction.attributes)


def print_operand(operand: Operand) -> str:
    """A use of a value, as `%name` or `%tuple#1`."""
    return f"%{operand.name}" + "".join(f"#{i}" for i in operand.index)


def print_attributes(attributes: tuple[tuple[str, str], ...]) -> str:
    """Attributes as they stand behind a header or an instruction, each after a comma."""
    return "".join(f", {name}={value}" for name, value in attributes)
