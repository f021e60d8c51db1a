"""Rows of a table by conditions on their columns, sorted, a page of them at a time."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nsys_report.errors import UsageError

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "~": lambda value, text: str(text).lower() in str(value).lower(),
}
_CONDITION = re.compile(rf"\s*(\w+)\s*({'|'.join(map(re.escape, OPERATORS))})\s*(.+?)\s*")
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Condition:
    """A column held against a value; `~` asks whether a text holds another. An unknown value satisfies none."""

    column: str
    sign: str
    value: float | str

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row satisfies it."""
        found = row[self.column]
        if found is None:
            return False
        is_number = isinstance(found, (int, float)) and isinstance(self.value, float)
        return OPERATORS[self.sign](found if is_number else str(found), self.value if is_number else str(self.value))


def parse_condition(text: str, columns: Sequence[str]) -> Condition:
    """A condition such as `time_share > 0.05`, `kernel_class == weights`, `op_name ~ mlp`. Raises UsageError."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(f"no condition: {text!r}", f"write COLUMN OPERATOR VALUE with one of {' '.join(OPERATORS)}")
    value: float | str = match[3].strip("'\"")
    with suppress(ValueError):
        value = float(value)
    return Condition(_known(match[1], columns), match[2], value)


def _known(column: str, columns: Sequence[str]) -> str:
    if column in columns:
        return column
    close = difflib.get_close_matches(column, columns, 3)
    raise UsageError(f"no column {column!r}", f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(columns)}")


def chosen(rows: Rows, columns: Sequence[str], conditions: Iterable[str], sort: str | None, descending: bool) -> list[Mapping[str, Any]]:
    """The rows that satisfy every condition, sorted by a column with unknown values last; as they stand without one."""
    wanted = [parse_condition(text, columns) for text in conditions]
    found = [row for row in rows if all(condition.holds(row) for condition in wanted)]
    if sort is None:
        return found
    key = _known(sort, columns)
    known = sorted((row for row in found if row[key] is not None), key=lambda row: row[key], reverse=descending)
    return known + [row for row in found if row[key] is None]


def shown_columns(columns: Sequence[str], asked: Sequence[str]) -> list[str]:
    """The columns asked for, all without. Raises UsageError for one that is not there."""
    return [_known(name, columns) for name in asked] or list(columns)
