"""The keys of the report as a document (`--json`), as types: what export.py fills in, and what its JSON Schema is written from.

A key that goes or changes its meaning raises reports.model.FORMAT_VERSION and stands in CHANGELOG.md; a new key only needs the schema
written again (`python -m tests.write_schema`).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

Scalar = str | int | float | bool | None
"""A raw value: ns, bytes, ratios from 0 to 1, words; null is something that nobody knows."""
Rows = list[dict[str, Scalar]]


class FactDocument(TypedDict):
    label: str
    value: Annotated[Scalar, "raw, in its unit"]
    unit: Annotated[str, "ns, bytes, bytes_per_s, ratio, count, ..."]
    text: Annotated[str, "as the pages write it"]


class NoticeDocument(TypedDict):
    slug: str
    severity: Literal["ok", "info", "warning", "error"]
    message: Annotated[str, "what must be known before a figure is trusted"]
    hint: Annotated[str, "what to do about it; empty for nothing"]


class ColumnDocument(TypedDict):
    key: Annotated[str, "its key in rows; the unit stands in the name"]
    heading: str
    unit: str
    shown_in: Annotated[str, "the unit that cells of `text` leave out"]
    about: str


class MarkDocument(TypedDict):
    column: str
    sign: str
    says: str


class TableDocument(TypedDict):
    title: str
    columns: list[ColumnDocument]
    rows: Annotated[Rows, "every row, raw, by column key"]
    text: Annotated[list[list[str]], "the same rows in words"]
    marks: Annotated[list[list[MarkDocument]], "doubts and remarks of each row"]
    notes: list[str]


class ExplainedDocument(TypedDict):
    category: Annotated[str, "row of the program's budget"]
    part: str
    ns: float


class ElsewhereDocument(TypedDict):
    module: str | None
    explained_ns: float
    gain_ns: float | None
    executions: int
    explains: list[ExplainedDocument]
    instructions: list[str]
    text: str


class FindingDocument(TypedDict):
    id: str
    slug: str
    title: str
    module: Annotated[str | None, "name#number of the program; null for the capture as a whole"]
    severity: Literal["error", "warning", "info"]
    confidence: Literal["sure", "likely", "possible"]
    explained_ns: Annotated[float, "time of a typical step that its cause occupies and no other finding accounts for"]
    gain_ns: Annotated[float | None, "what the remedy gives back at most each time; null where the capture cannot decide it"]
    tried: Annotated[str | None, "what came of the remedy where it was tried"]
    explains: list[ExplainedDocument]
    gains: dict[str, FactDocument]
    why: str
    remedy: str
    basis: Annotated[str, "how the gain was worked out"]
    to_capture: Annotated[str, "what to capture, where the capture cannot decide it"]
    facts: dict[str, FactDocument]
    places: TableDocument | None
    also: Annotated[list[ElsewhereDocument], "the same cause in other programs"]


class SectionDocument(TypedDict):
    key: str
    title: str
    module: Annotated[str | None, "name#number of the program that it is about"]
    lines: list[str]
    facts: dict[str, FactDocument]
    notices: list[NoticeDocument]
    tables: dict[str, TableDocument]


class CaptureDocument(TypedDict):
    name: str
    headline: str
    lines: list[str]
    facts: dict[str, FactDocument]
    notices: list[NoticeDocument]
    findings: Annotated[list[FindingDocument], "most to be gained first"]
    sections: list[SectionDocument]


class ReportDocument(TypedDict):
    format: Literal["nsys-report"]
    version: Annotated[int, "version of this form: a key that goes raises it"]
    made_by: str
    captures: list[CaptureDocument]
    summary: Annotated[TableDocument | None, "of several captures, a row each"]
