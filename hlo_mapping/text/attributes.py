"""The meaning of attributes whose text an instruction or module header keeps raw."""

from __future__ import annotations

import re

from hlo_mapping.ir import Alias, OpMetadata
from hlo_mapping.quoting import SIMPLE_ESCAPES, unquote
from hlo_mapping.text.lexer import CALLEE, COMMENT, NAME, STRING, closing

CALLING = frozenset(
    {"calls", "to_apply", "condition", "body", "branch_computations", "true_computation", "false_computation", "called_computations"}
)
"""Attributes that name computations."""
SELECT_AND_SCATTER = frozenset({"select", "scatter"})
"""Those of the select-and-scatter opcode."""

_PAIR = re.compile(rf'([\w.\-]+)\s*[=:]\s*({STRING}|[^\s,"{{}}]+)', re.DOTALL)
_MLIR_ESCAPE = re.compile(r"\\([0-9A-F]{2}|.)", re.DOTALL)
_ALIAS = re.compile(r"\{([\d,\s]*)\}\s*:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*(?:,\s*([\w\-]+))?\s*\)")
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")
_MLIR_ENTRY = re.compile(rf"\s*({NAME}|{STRING})\s*=\s*", re.DOTALL)


def _mlir_unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 16)) if len(code) == 2 else SIMPLE_ESCAPES.get(code, code)


def pairs(raw: str) -> dict[str, str]:
    """The entries of flat braces such as metadata={op_name="a" source_line=3} or {a="b",c="d"}, unquoted."""
    return {key: unquote(value) for key, value in _PAIR.findall(raw)}


def op_metadata(raw: str) -> OpMetadata:
    """An instruction's metadata={...}; entries that OpMetadata has no place for are left to the raw text."""
    found = pairs(raw)
    return OpMetadata(
        op_type=found.get("op_type", ""),
        op_name=found.get("op_name", ""),
        source_file=found.get("source_file", ""),
        source_line=number(found.get("source_line")),
        stack_frame_id=number(found.get("stack_frame_id")),
        scheduling_name=found.get("scheduling_name", ""),
        deduplicated_name=found.get("deduplicated_name", ""),
    )


def number(text: str | None) -> int:
    """The number that a text is; 0 for none, for other text and for what no field of 64 bits holds."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else 0


def mlir_attributes(raw: str) -> dict[str, str]:
    """A backend_config in MLIR's notation, as {grid_x = 1 : i32, name = "k"}: values without their types, strings unquoted.

    The bytes of a string come as the characters 0 to 255. {} where `raw` is not of that notation.
    """
    entries: dict[str, str] = {}
    if not raw.startswith("{") or not raw.endswith("}"):
        return entries
    at = 1
    while found := _MLIR_ENTRY.match(raw, at):
        end = _mlir_value_end(raw, found.end())
        entries[unquote(found[1])] = _mlir_value(raw[found.end() : end].strip())
        at = end + 1
    return entries


def _mlir_value(text: str) -> str:
    if text.startswith('"'):
        return _MLIR_ESCAPE.sub(_mlir_unescaped, text[1 : text.rindex('"')])
    return text if text[:1] in "{[(" else text.rpartition(" : ")[0] or text


def _mlir_value_end(raw: str, at: int) -> int:
    string = re.compile(STRING, re.DOTALL)
    while at < len(raw) - 1 and raw[at] != ",":
        if raw[at] == '"' and (found := string.match(raw, at)):
            at = found.end()
        elif raw[at] in "{[(" and (end := closing(raw, at)) > 0:
            at = end + 1
        else:
            at += 1
    return at


def integers(raw: str) -> tuple[int, ...]:
    """The integers of {0,1} or [0,1]; () for empty braces and for text without any."""
    return tuple(map(int, re.findall(r"-?\d+", raw)))


def slices(raw: str) -> tuple[tuple[int, int, int], ...]:
    """The (start, limit, stride) of each dimension of slice={[0:2], [0:8:2]}."""
    found = re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", raw)
    return tuple((int(start), int(limit), int(stride or 1)) for start, limit, stride in found)


def computations(opcode: str, attributes: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The computations that an instruction's attributes name, in order; of a while the condition comes first."""
    calling = SELECT_AND_SCATTER if opcode == "select-and-scatter" else CALLING
    named = [(key, value) for key, value in attributes if key in calling]
    if len(named) > 1:
        named.sort(key=lambda item: item[0] == "body")
    return tuple(name for _, value in named for name in CALLEE.findall(COMMENT.sub("", value)))


def aliases(raw: str) -> tuple[Alias, ...]:
    """The entries of a header's input_output_alias={ {0}: (3, {}, may-alias) }."""
    found = _ALIAS.findall(raw)
    return tuple(Alias(integers(out), int(parameter), integers(index), kind or "may-alias") for out, parameter, index, kind in found)


def donors(raw: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The entries of a header's buffer_donor={ (3, {}) }: (parameter number, index in it)."""
    return tuple((int(parameter), integers(index)) for parameter, index in _DONOR.findall(raw))


def operand_aliases(raw: str) -> tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]:
    """The entries of output_to_operand_aliasing={{0}: (2, {})}: (output index, operand number, index in that operand)."""
    return tuple((integers(out), int(operand), integers(index)) for out, operand, index, _ in _ALIAS.findall(raw))
