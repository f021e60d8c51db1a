"""The HLO that the page shows: an instruction, what it calls, and what it came of before XLA's passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from nsys_report.analysis.program_rows import of_program
from nsys_report.reports.build import worth_a_section
from nsys_report.reports.programs import title_of

if TYPE_CHECKING:
    from hlo_mapping import Instruction, Module, Origin, Origins, Program
    from nsys_report.session import Session

LONGEST_TEXT = 6_000
"""Characters of one instruction's text, with the body of what it calls."""
LONGEST_VALUE = 160
"""Characters of one attribute of an instruction."""
LEFT_OUT = frozenset({"metadata", "frontend_attributes"})
"""Attributes that the page says otherwise, or nobody reads; of all but library calls backend_config is one of them."""
MOST_ORIGINS = 12
"""Of one instruction; those that most parameters tell from others come first."""
TOLD = {
    "parameters": "",
    "most parameters": " (nearly the same parameters)",
    "name": " (by name alone)",
}


def hlo_texts(session: Session, room: int) -> Iterable[tuple[str, dict[str, str]]]:
    """The HLO text of each instruction that ran in a program with a section, most time first, until the room is used."""
    for record in worth_a_section(session)[0] if len(session.results.modules) else ():
        program = session.joined.programs.get(record["program_id"])
        if program is None or program.module is None:
            continue
        names = of_program(session.results.instructions, record)["hlo_instruction"].to_pylist()
        origins = _origins(program, program.module)
        texts: dict[str, str] = {}
        for name in names:
            if name is None or (text := hlo_text(program.module, name)) is None:
                continue
            text += "".join(f"\n{line}" for line in origin_lines(origins, name)) if origins is not None else ""
            room -= len(text)
            if room < 0:
                break
            texts[name] = text
        yield title_of(record), texts


def text_of(program: Program, name: str) -> str | None:
    """An instruction of a program with what it calls, and what it came of where the dump has that; None without its HLO."""
    if program.module is None or (text := hlo_text(program.module, name)) is None:
        return None
    origins = _origins(program, program.module)
    return "\n".join((text, *origin_lines(origins, name))) if origins is not None else text


def _origins(program: Program, module: Module) -> Origins | None:
    from hlo_mapping import find_origins, read_before

    before = read_before(program)
    return find_origins(before, module) if before is not None else None


def origin_lines(origins: Origins, name: str) -> Iterator[str]:
    """What an instruction came of, one line each; of several that fit equally the first, with how many there are. Empty without any."""
    found = sorted(origins.of(name), key=lambda origin: (len(origin.candidates), origin.distance))
    if found:
        yield ""
        yield "before XLA's passes, by op_name, source and the parameters that it depends on:"
    yield from map(_origin_line, found[:MOST_ORIGINS])
    if len(found) > MOST_ORIGINS:
        yield f"  … and {len(found) - MOST_ORIGINS} more"


def _origin_line(origin: Origin) -> str:
    many = len(origin.candidates)
    return f"  {_line(origin.candidates[0])}" + (f" (one of {many} alike)" if many > 1 else "") + TOLD[origin.method]


def hlo_text(module: Module, name: str) -> str | None:
    """An instruction and what it calls, as text without what nobody reads; None for one that the module has not."""
    found = module.instruction(name)
    if found is None:
        return None
    lines = [_line(found)]
    for called in found.called if found.opcode not in ("while", "conditional", "call") else ():
        computation = module.by_name.get(called)
        if computation is not None:
            lines += ["", f"{called} {{", *(f"  {_line(i)}" for i in computation.instructions), "}"]
    text = "\n".join(lines)
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT].rsplit("\n", 1)[0] + "\n…"


def _line(instruction: Instruction) -> str:
    from hlo_mapping import print_instruction

    left_out = LEFT_OUT if instruction.opcode == "custom-call" else LEFT_OUT | {"backend_config"}
    kept = [(k, v if len(v) <= LONGEST_VALUE else v[:LONGEST_VALUE] + "…") for k, v in instruction.attributes if k not in left_out]
    literal = instruction.literal
    short = literal if literal is None or len(literal) <= LONGEST_VALUE else literal[:LONGEST_VALUE] + "…"
    return print_instruction(replace(instruction, attributes=tuple(kept), literal=short))
