"""HLO text read into a Module: every dialect that XLA:GPU wrote from late 2024 to 2026.

One pattern takes an instruction's head and one each attribute; meanings are read later, from the raw text. Where a pattern does not
fit, `hlo_mapping.text.slow_path` walks the same text step by step: it reads rare forms and says exactly what is wrong with the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlo_mapping.ir import Computation, Instruction, Module, Operand, OpMetadata
from hlo_mapping.shape import Shape
from hlo_mapping.text import attributes as attribute_text
from hlo_mapping.text import slow_path
from hlo_mapping.text.calls import check_depth
from hlo_mapping.text.lexer import ATTRIBUTE, CLOSER, COMPUTATION, INSTRUCTION, OPERAND, SIGNATURE
from hlo_mapping.text.shapes import read_shape
from hlo_mapping.text.source import SourceText
from hlo_mapping.text.tables import TITLES, Frame, read_frames

_HEADER = re.compile(r"(?:\s++|//[^\n]*+\n)*+HloModule ([^\s,]+)")
_BLANK = re.compile(r"(?:[ \t\r]*+(?://[^\n]*+)?+\n)*+")
_INDEX = re.compile(r"#(\d+)")
_LINE_END = re.compile(r"[ \t\r]*(?://[^\n]*)?(?:\n|\Z)")
LITERAL_OPCODES = frozenset({"constant", "parameter"})
"""Opcodes whose parentheses hold a literal and no operands."""


def parse_module(text: str, source: str = "<text>") -> Module:
    """Read the text of one HLO module; `source` names it in errors. HloSyntaxError says where the text is wrong, and how."""
    whole = SourceText(text.replace("\r\n", "\n"), source)
    try:
        return _Parser(whole).module()
    except RecursionError:
        raise whole.error("a shape is nested too deeply to be read", 0) from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise whole.error("a number in it has thousands of digits", 0) from None


class _Parser:
    """The state of one reading: what is shared between instructions, so that equal parts are read once."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text
        self.frames: dict[int, Frame] = {}
        self.shapes: dict[str, Shape] = {}
        self.operands: dict[str, Operand] = {}
        self.metadata: dict[str, OpMetadata] = {}

    def module(self) -> Module:
        header = _HEADER.match(self.text)
        if header is None:
            raise slow_path.header_error(self.source)
        attributes, at = self.attributes(header.end(), is_header=True)
        tables, at = self.tables(self.end_of_line(at))
        self.frames = read_frames(tables)
        computations = self.computations(at)
        entries = [c for c in computations if c.is_entry]
        if not entries:
            raise self.source.truncated(f"module {header[1]}, before its ENTRY computation")
        named = dict(attributes)
        module = Module(
            name=header[1],
            computations=computations,
            entry_name=entries[-1].name,
            attributes=attributes,
            aliases=attribute_text.aliases(named.get("input_output_alias", "")),
            donors=attribute_text.donors(named.get("buffer_donor", "")),
            tables=tables,
            source=self.source.name,
            text=self.text,
            by_name={c.name: c for c in computations},
            home={i.name: c.name for c in computations for i in c.instructions},
        )
        self.check_calls(module)
        check_depth(module.by_name, self.source.name)
        return module

    def tables(self, at: int) -> tuple[str, int]:
        """The stack-frame tables, raw, and the offset after them."""
        start = at = self.skip_blank(at)
        while any(self.text.startswith(title, at) for title in TITLES):
            end = self.text.find("\n\n", at)
            if end < 0:
                raise self.source.truncated("the stack-frame tables")
            at = self.skip_blank(end)
        return self.text[start:at].strip("\n"), at

    def computations(self, at: int) -> tuple[Computation, ...]:
        found: dict[str, Computation] = {}
        at = self.skip_blank(at)
        while at < len(self.text):
            head = COMPUTATION.match(self.text, at)
            if head is None:
                raise slow_path.computation_error(self.source, at)
            start = head.end() if SIGNATURE.fullmatch(head["rest"]) else slow_path.signature_end(self.source, at, head.start("rest"))
            if head["name"] in found:
                raise self.source.error(f"there is a computation named {head['name']} already", head.start("name"), head.end("name"))
            found[head["name"]], at = self.computation(head, start)
            at = self.skip_blank(at)
        return tuple(found.values())

    def computation(self, head: re.Match[str], at: int) -> tuple[Computation, int]:
        """The computation with this head, whose instructions stand from `at`, and the offset after it."""
        text = self.text
        by_name: dict[str, Instruction] = {}
        while True:
            at = self.skip_blank(at)
            if text.startswith("}", at):
                break
            if at >= len(text):
                raise self.source.truncated(f"computation {head['name']}")
            instruction, end = self.instruction(at)
            if instruction.name in by_name:
                raise slow_path.name_error(
                    self.source, at, instruction.name, "there is an instruction named {} in this computation already"
                )
            by_name[instruction.name] = instruction
            at = self.end_of_line(end)
        if not by_name:
            raise self.source.error(f"computation {head['name']} holds no instructions", at)
        closer = CLOSER.match(text, at)
        suffix = closer["suffix"].strip() if closer else ""
        instructions = tuple(by_name.values())
        self.check_operands(instructions, by_name)
        computation = Computation(
            name=head["name"],
            instructions=instructions,
            is_entry=head["entry"] is not None,
            suffix="" if suffix.startswith("//") else suffix,
            by_name=by_name,
        )
        return computation, closer.end() if closer else at

    def instruction(self, at: int) -> tuple[Instruction, int]:
        """The instruction on the line at `at`, and the offset after it."""
        head = INSTRUCTION.match(self.text, at)
        if head is None:
            parts = slow_path.instruction_head(self.source, at)
        else:
            parts = slow_path.Head(
                is_root=head["root"] is not None,
                name=head["name"],
                shape=head["shape"],
                shape_at=head.start("shape"),
                opcode=head["opcode"],
                arguments=head["arguments"],
                arguments_at=head.start("arguments"),
                end=head.end(),
            )
        attributes, end = self.attributes(parts.end)
        is_literal = parts.opcode in LITERAL_OPCODES
        instruction = Instruction(
            parts.name,
            self.shape(parts.shape, parts.shape_at),
            parts.opcode,
            () if is_literal else self.operand_list(parts.arguments, parts.arguments_at),
            parts.arguments if is_literal else None,
            attributes,
            attribute_text.computations(parts.opcode, attributes),
            self.op_metadata(attributes),
            parts.is_root,
            slow_path.parameter_number(self.source, parts) if parts.opcode == "parameter" else None,
            at,
        )
        return instruction, end

    def attributes(self, at: int, is_header: bool = False) -> tuple[tuple[tuple[str, str], ...], int]:
        """The `, name=value` pairs that stand at `at`, and the offset after them."""
        found: list[tuple[str, str]] = []
        while self.text.startswith(",", at):
            match = ATTRIBUTE.match(self.text, at)
            if match is None or "\n" in match[2]:
                pair, at = slow_path.attribute(self.source, at, is_header)
            else:
                pair, at = (match[1], match[2]), match.end()
            found.append(pair)
        return tuple(found), at

    def shape(self, text: str, at: int) -> Shape:
        shape = self.shapes.get(text)
        if shape is None:
            shape, end = read_shape(self.source, at)
            if end != at + len(text):
                raise self.source.error("expected a space and an opcode after the shape", end)
            self.shapes[text] = shape
        return shape

    def operand_list(self, arguments: str, at: int) -> tuple[Operand, ...]:
        if not arguments or arguments.isspace():
            return ()
        known = self.operands
        try:
            return tuple([known[part] for part in arguments.split(", ")])
        except KeyError:
            return tuple(self.read_operands(arguments, at))

    def read_operands(self, arguments: str, at: int) -> Iterable[Operand]:
        done = 0
        while done <= len(arguments):
            found = OPERAND.match(arguments, done)
            if found is None:
                raise slow_path.operand_error(self.source, arguments, at, done)
            operand = Operand(found["name"], tuple(map(int, _INDEX.findall(found["index"]))))
            self.operands[arguments[done : found.end()].removeprefix(" ")] = operand
            yield operand
            done = found.end() + 1

    def op_metadata(self, attributes: tuple[tuple[str, str], ...]) -> OpMetadata:
        for key, raw in attributes:
            if key == "metadata":
                known = self.metadata.get(raw)
                if known is None:
                    known = self.metadata[raw] = self.placed(attribute_text.op_metadata(raw))
                return known
        return OpMetadata()

    def placed(self, metadata: OpMetadata) -> OpMetadata:
        """The metadata with file and line from its innermost stack frame, where the text has only the frame's id."""
        frame = self.frames.get(metadata.stack_frame_id)
        if frame is None or metadata.source_file:
            return metadata
        return OpMetadata(
            metadata.op_type, metadata.op_name, frame.file, frame.line,
            metadata.stack_frame_id, metadata.scheduling_name, metadata.deduplicated_name,
        )  # fmt: skip

    def check_operands(self, instructions: tuple[Instruction, ...], by_name: dict[str, Instruction]) -> None:
        for instruction in instructions:
            for operand in instruction.operands:
                if operand.name not in by_name:
                    raise slow_path.name_error(
                        self.source, instruction.offset, operand.name, "there is no instruction named {} in this computation", after="("
                    )

    def check_calls(self, module: Module) -> None:
        for computation in module.computations:
            for instruction in computation.instructions:
                for name in instruction.called:
                    if name not in module.by_name:
                        raise slow_path.name_error(
                            self.source, instruction.offset, name, "there is no computation named {} in this module", after="="
                        )

    def skip_blank(self, at: int) -> int:
        """The offset of the next line that says something, after its indentation."""
        found = _BLANK.match(self.text, at)
        at = found.end() if found else at
        while self.text.startswith((" ", "\t"), at):
            at += 1
        return at

    def end_of_line(self, at: int) -> int:
        found = _LINE_END.match(self.text, at)
        if found is None:
            raise slow_path.line_error(self.source, at)
        return found.end()
