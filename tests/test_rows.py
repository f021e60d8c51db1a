"""The types of rows are what the schemas say."""

from __future__ import annotations

from tests import write_rows


def test_rows_are_written_from_the_schemas() -> None:
    assert write_rows.TARGET.read_text(encoding="utf-8") == write_rows.rows_module(), "run python -m tests.write_rows"
