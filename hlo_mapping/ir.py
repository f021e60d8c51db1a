"""HLO modules as frozen values: what a dump's text says, before anybody interprets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hlo_mapping.quoting import backend_config
from hlo_mapping.shape import Shape


@dataclass(frozen=True, slots=True)
class Operand:
    """A use of another instruction's value; `index` is the part of a tuple that `%x#1` (or `%x#1#0`) names."""

    name: str
    index: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OpMetadata:
    """Where an instruction came from, as far as the text says; absent parts are "" or 0.

    `source_file`, `source_line` are filled from the stack-frame tables where the text has them (innermost frame).
    """

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    stack_frame_id: int = 0
    scheduling_name: str = ""
    deduplicated_name: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction.

    `attributes` are (name, raw text) in the order written, metadata and backend_config too; `literal` is the raw text between the
    parentheses of constants and parameters, None for every other opcode; `operands` is empty for those.
    `called` names the computations it calls, in order: a fusion's body; a while's [condition, body]; a conditional's branches
    (branch 0 first, or true before false); a reduce's to_apply; an async-start's wrapped computation.
    """

    name: str
    shape: Shape
    opcode: str
    operands: tuple[Operand, ...] = ()
    literal: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    called: tuple[str, ...] = ()
    metadata: OpMetadata = OpMetadata()
    is_root: bool = False
    parameter_number: int | None = None
    offset: int = field(default=0, compare=False)
    """Where its line starts in the module's text, for excerpts."""

    def attribute(self, name: str, default: str = "") -> str:
        """The raw text of an attribute, or `default`."""
        return next((v for k, v in self.attributes if k == name), default)

    @property
    def backend_config(self) -> dict[str, Any]:
        """The backend_config read as JSON; {} where it is absent or in another notation."""
        return backend_config(self.attribute("backend_config"))

    @property
    def trip_count(self) -> int | None:
        """How often a while's body runs, where the compiler knows (WhileLoopTripCountAnnotator); None elsewhere."""
        known = self.backend_config.get("known_trip_count") if self.opcode == "while" else None
        count = str(known.get("n", "")) if isinstance(known, dict) else ""
        return int(count) if count.isdecimal() and len(count) < 20 else None

    @property
    def custom_call_target(self) -> str:
        return self.attribute("custom_call_target").strip('"')


@dataclass(frozen=True, slots=True)
class Computation:
    """Instructions in the order written, which is launch order in a scheduled module."""

    name: str
    instructions: tuple[Instruction, ...]
    is_entry: bool = False
    suffix: str = ""
    """What stood after the closing brace, such as an execution_thread."""
    by_name: dict[str, Instruction] = field(default_factory=dict, compare=False, repr=False)

    @property
    def root(self) -> Instruction:
        return next((i for i in reversed(self.instructions) if i.is_root), self.instructions[-1])

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """Its parameter instructions by parameter number."""
        found = [i for i in self.instructions if i.parameter_number is not None]
        return tuple(sorted(found, key=lambda i: i.parameter_number or 0))


@dataclass(frozen=True, slots=True)
class Alias:
    """Output leaf `output_index` reuses the buffer of parameter `parameter` at `parameter_index`."""

    output_index: tuple[int, ...]
    parameter: int
    parameter_index: tuple[int, ...]
    kind: str = "may-alias"


@dataclass(frozen=True, slots=True)
class Module:
    """One HLO module. `attributes` are the header's, raw; `tables` are the stack-frame tables, raw, for printing."""

    name: str
    computations: tuple[Computation, ...]
    entry_name: str
    attributes: tuple[tuple[str, str], ...] = ()
    aliases: tuple[Alias, ...] = ()
    donors: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """buffer_donor entries: (parameter, index), donated without an output to reuse them."""
    tables: str = field(default="", repr=False)
    source: str = field(default="", compare=False)
    """The file it was read from."""
    text: str = field(default="", compare=False, repr=False)
    """The text it was read from, for excerpts; "" for a module made in memory."""
    by_name: dict[str, Computation] = field(default_factory=dict, compare=False, repr=False)
    home: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The computation each instruction stands in, by instruction name (instruction names are unique in a module)."""

    @property
    def is_scheduled(self) -> bool:
        return self.attribute("is_scheduled") == "true"

    @property
    def entry(self) -> Computation:
        return self.by_name[self.entry_name]

    def attribute(self, name: str, default: str = "") -> str:
        return next((v for k, v in self.attributes if k == name), default)

    def instruction(self, name: str) -> Instruction | None:
        """An instruction anywhere in the module, or None."""
        home = self.home.get(name)
        return self.by_name[home].by_name.get(name) if home is not None else None

    def excerpt(self, name: str) -> str:
        """The line of text that an instruction was read from, or ""."""
        found = self.instruction(name)
        if found is None or not self.text:
            return ""
        end = self.text.find("\n", found.offset)
        return self.text[found.offset : end if end >= 0 else None].strip()
