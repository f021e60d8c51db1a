"""The README and the page of columns say what the program does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

import nsys_report
from hlo_mapping.columns import about
from nsys_report.cli.app import COMMANDS, group
from tests import write_docs

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_of_columns_is_written_from_the_schemas() -> None:
    assert write_docs.COLUMNS.read_text(encoding="utf-8") == write_docs.columns_page(), "run python -m tests.write_docs"


def test_the_page_of_findings_is_written_from_the_rules() -> None:
    assert write_docs.FINDINGS.read_text(encoding="utf-8") == write_docs.findings_page(), "run python -m tests.write_docs"


def test_the_report_in_the_readme_is_what_its_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", write_docs.WIDTH)  # so that it is set back after the test
    assert write_docs.readme() == README, "run python -m tests.write_docs"


@pytest.mark.parametrize("schema", [schema for schema, _ in write_docs.TABLES.values()], ids=write_docs.TABLES)
def test_every_column_says_what_it_is(schema: object) -> None:
    assert all(text.strip() for text in about(schema).values())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_stands_in_the_readme_and_has_help(name: str) -> None:
    assert f"nsys-report {name}" in README
    command = group.get_command(click.Context(group), name)
    assert command is not None and command.help


def test_every_option_of_report_stands_in_the_readme() -> None:
    command = group.get_command(click.Context(group), "report")
    assert command is not None
    options = [o for p in command.params if isinstance(p, click.Option) for o in p.opts]
    assert [o for o in options if f"`{o}" not in README] == []


def test_links_in_the_readme_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_ci_runs_the_readmes_test_command() -> None:
    assert "bash tests/run" in README
    assert "bash tests/run" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_public_names_are_sorted_and_there() -> None:
    assert nsys_report.__all__ == sorted(nsys_report.__all__)
    assert all(getattr(nsys_report, name) is not None for name in nsys_report.__all__)


def test_files_the_readme_runs_on_are_there() -> None:
    paths = re.findall(r"\bfixtures/[\w./-]+", README)
    assert paths
    assert [p for p in paths if not (ROOT / p).exists()] == []


def shown_commands() -> list[str]:
    """The command lines of this program in the README's code blocks."""
    blocks = re.findall(r"```(?:sh|bash)\n(.*?)```", README, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip().startswith("nsys-report ")]


@pytest.mark.parametrize("line", shown_commands())
def test_the_commands_in_the_readme_have_the_options_that_are_shown(line: str) -> None:
    _, *given = shlex.split(line, comments=True)
    name = given.pop(0) if given[0] in COMMANDS else "report"
    command = group.get_command(click.Context(group), name)
    assert command is not None, line
    command.make_parser(click.Context(command)).parse_args(given)
