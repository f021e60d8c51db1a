"""The document keeps its promise: its schema is its types, every fixture's document follows it, and no key is lost unsaid."""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, Literal, TypedDict

import jsonschema
import pytest

from nsys_report.reports.model import FORMAT_VERSION
from tests import write_schema

CHANGELOG = (write_schema.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@cache
def documents() -> list[dict[str, Any]]:
    return write_schema.documents()


def test_the_committed_schema_is_the_types() -> None:
    assert write_schema.SCHEMA.read_text(encoding="utf-8") == write_schema.text(write_schema.schema()), "run python -m tests.write_schema"
    jsonschema.Draft202012Validator.check_schema(write_schema.schema())


def test_every_fixtures_document_follows_the_schema() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(write_schema.SCHEMA.read_text(encoding="utf-8")))
    assert len(documents()) > 15
    for document in documents():
        assert [error.message for error in validator.iter_errors(document)] == []


@pytest.mark.parametrize("break_it", ["rename", "leave out", "add", "another version", "a word for a number"])
def test_the_schema_bites(break_it: str) -> None:
    document = json.loads(json.dumps(documents()[0]))
    capture = document["captures"][0]
    if break_it == "rename":
        capture["title"] = capture.pop("headline")
    elif break_it == "leave out":
        del capture["findings"]
    elif break_it == "add":
        capture["sections"][0]["more"] = 1
    elif break_it == "another version":
        document["version"] += 1
    else:
        capture["findings"][0]["gain_ns"] = "much"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, write_schema.schema())


def test_no_key_goes_without_a_version_and_a_word() -> None:
    """A key that is gone: raise FORMAT_VERSION, say so in CHANGELOG.md, run python -m tests.write_schema."""
    kept = write_schema.kept()
    assert kept["version"] == FORMAT_VERSION, "run python -m tests.write_schema"
    assert f"document version {FORMAT_VERSION}" in CHANGELOG
    assert write_schema.gone(kept["members"], write_schema.members()) == []
    assert write_schema.gone(kept["keys"], write_schema.keys(documents())) == []


def test_new_keys_are_kept_too() -> None:
    """A key that is new: run python -m tests.write_schema, so that it cannot go unseen."""
    kept = write_schema.kept()
    assert write_schema.gone(write_schema.members(), kept["members"]) == []
    assert write_schema.gone(write_schema.keys(documents()), kept["keys"]) == []


def test_a_key_that_is_gone_is_named() -> None:
    assert write_schema.gone({"summary": ["a", "b"], "facts": ["c"]}, {"summary": ["b", "d"]}) == ["summary: a", "facts: c"]


class Small(TypedDict):
    name: Annotated[str, "what it is"]
    value: int | None
    more: list[Small]
    kind: Literal["a", "b"]


def test_a_type_becomes_a_schema() -> None:
    definitions: dict[str, Any] = {}
    assert write_schema.schema_of(Small, definitions) == {"$ref": "#/$defs/Small"}
    assert definitions["Small"]["properties"] == {
        "name": {"type": "string", "description": "what it is"},
        "value": {"type": ["integer", "null"]},
        "more": {"type": "array", "items": {"$ref": "#/$defs/Small"}},
        "kind": {"enum": ["a", "b"]},
    }
    assert definitions["Small"]["required"] == ["kind", "more", "name", "value"]
