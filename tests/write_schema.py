"""Writes the JSON Schema of the report's document from its types, and the keys of fixtures' documents: `python -m tests.write_schema`.

Keys that a version of the document has stay in it: where one is gone, this refuses until reports.model.FORMAT_VERSION is raised.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nsys_report.reports import document, model
from nsys_report.reports.export import json_text

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "nsys_report" / "reports" / "report.schema.json"
KEYS = Path(__file__).parent / "document_keys.json"
FIXTURES = ROOT / "fixtures"
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}
Keys = dict[str, list[str]]
"""Where keys stand, such as `section program: table classes`, and the keys."""


def schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) of a whole document."""
    definitions: dict[str, Any] = {}
    top = schema_of(document.ReportDocument, definitions)
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "The report of nsys-report --json"}
    fixed = definitions["ReportDocument"]["properties"]["version"]
    fixed["const"] = model.FORMAT_VERSION
    return {**about, **top, "$defs": dict(sorted(definitions.items()))}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type; of a TypedDict a reference, and its own schema in `definitions`."""
    if kind in SCALARS:
        return {"type": SCALARS[kind]}
    if typing.is_typeddict(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # it may hold itself
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return {**schema_of(inner[0], definitions), "description": inner[1]}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inner[1], definitions)}
    if origin in (types.UnionType, typing.Union):
        return _one_of(inner, definitions)
    raise TypeError(f"the schema has no form for {kind}")


def _one_of(kinds: Iterable[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    found = [schema_of(kind, definitions) for kind in kinds]
    return {"type": [s["type"] for s in found]} if all(list(s) == ["type"] for s in found) else {"anyOf": found}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    properties = {key: schema_of(hint, definitions) for key, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": sorted(kind.__required_keys__), "additionalProperties": False}


def documents() -> list[dict[str, Any]]:
    """The documents of all fixtures, and one of two captures."""
    from tests.nsys_report.pages import analyzed

    made = [analyzed(path.parent.name) for path in sorted(FIXTURES.glob("*/capture.sqlite"))]
    from nsys_report.reports.build import build_report

    reports = [*(analysis.report() for analysis in made), build_report(made[:2], "nsys-report")]
    return [json.loads(json_text(report)) for report in reports]


def keys(found: Iterable[dict[str, Any]]) -> Keys:
    """The keys of facts, tables and columns that stand in documents, by where they stand; programs count as one kind of section."""
    all_keys: dict[str, set[str]] = {}
    for report in found:
        for part in report["captures"]:
            all_keys.setdefault("capture: facts", set()).update(part["facts"])
            for section in part["sections"]:
                kind = section["key"].split(":")[0]
                all_keys.setdefault(f"section {kind}: facts", set()).update(section["facts"])
                for key, table in section["tables"].items():
                    all_keys.setdefault(f"section {kind}: table {key}", set()).update(c["key"] for c in table["columns"])
        if report["summary"] is not None:
            all_keys.setdefault("summary", set()).update(c["key"] for c in report["summary"]["columns"])
    return {where: sorted(names) for where, names in sorted(all_keys.items())}


def gone(before: Keys, after: Keys) -> list[str]:
    """Keys that were there and are no more."""
    return [f"{where}: {key}" for where, names in before.items() for key in names if key not in after.get(where, [])]


def kept() -> dict[str, Any]:
    """The committed keys: `version`, `keys`, and the members of the schema's objects as `members`."""
    read: dict[str, Any] = json.loads(KEYS.read_text(encoding="utf-8"))
    return read


def members() -> Keys:
    """The keys of each object of the schema."""
    return {name: sorted(one["properties"]) for name, one in schema()["$defs"].items()}


def text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Writes both files. Exits where a key is gone and the version is the same."""
    now = {"version": model.FORMAT_VERSION, "members": members(), "keys": keys(documents())}
    if KEYS.exists() and (old := kept())["version"] == model.FORMAT_VERSION:
        lost = [*gone(old["members"], now["members"]), *gone(old["keys"], now["keys"])]
        if lost:
            raise SystemExit("keys are gone; raise FORMAT_VERSION and say so in CHANGELOG.md:\n" + "\n".join(lost))
    KEYS.write_text(text(now), encoding="utf-8")
    SCHEMA.write_text(text(schema()), encoding="utf-8")


if __name__ == "__main__":
    main()
