"""Files of assertions (TOML), and the files that CI systems show: JUnit XML and Markdown."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from nsys_report.assertions.judging import Answer
from nsys_report.assertions.language import Assertion, parse
from nsys_report.errors import InputError, UsageError
from nsys_report.reports.markdown import code, text
from nsys_report.units import visible

EXAMPLE = """\
[[assert]]
name = "weights stream"          # optional
program = "jit_decode_step"      # optional
that = "weights.share_of_measured >= 0.9"
"""


def read_assertions(path: Path) -> tuple[Assertion, ...]:
    """The assertions of a TOML file: tables `[[assert]]` with `that`, and `name` and `program` where wanted.

    Raises InputError for a file that cannot be read, UsageError for assertions that cannot.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check the path", slug="assertions") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}", f"such as\n{EXAMPLE}", slug="assertions") from None
    unknown = set(document) - {"assert"}
    rows = document.get("assert")
    if unknown or not isinstance(rows, list) or not rows:
        found = f"it has {', '.join(sorted(document)) or 'nothing'}"
        raise UsageError(f"{path} holds no tables [[assert]]: {found}", f"such as\n{EXAMPLE}", slug="assertions")
    return tuple(_assertion(path, number, row) for number, row in enumerate(rows, 1))


def _assertion(path: Path, number: int, row: Any) -> Assertion:
    keys = {"that", "name", "program"}
    if not isinstance(row, dict) or set(row) - keys or not all(isinstance(v, str) for v in row.values()) or "that" not in row:
        raise UsageError(f"{path}: [[assert]] number {number} must have `that`, and may have `name` and `program`, all texts", EXAMPLE)
    return parse(row["that"], row.get("name", ""), row.get("program"))


def junit(answers: Sequence[Answer]) -> bytes:
    """The answers as JUnit XML: a suite for each capture, a case for each assertion."""
    failed = [a for a in answers if not a.holds]
    root = ElementTree.Element("testsuites", name="nsys-report", tests=str(len(answers)), failures=str(len(failed)), errors="0")
    for capture in dict.fromkeys(a.capture for a in answers):
        mine = [a for a in answers if a.capture == capture]
        count = str(sum(not a.holds for a in mine))
        suite = ElementTree.SubElement(root, "testsuite", name=visible(capture), tests=str(len(mine)), failures=count, errors="0")
        for answer in mine:
            case = ElementTree.SubElement(suite, "testcase", classname=visible(capture), name=visible(answer.assertion.title))
            if not answer.holds:
                message = f"{answer.assertion.text}: {answer.found}"
                ElementTree.SubElement(case, "failure", message=visible(message), type="assertion").text = visible(message)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def markdown(answers: Sequence[Answer]) -> str:
    """The answers as a Markdown table, failures first, for a job's summary."""
    failed = [a for a in answers if not a.holds]
    lines = [
        f"## {len(answers) - len(failed)} of {len(answers)} assertions hold",
        "",
        "| | assertion | found | capture |",
        "|---|---|---|---|",
    ]
    for answer in (*failed, *(a for a in answers if a.holds)):
        sign, name = ("✓" if answer.holds else "✗"), answer.assertion.name
        said = code(answer.assertion.text) + (f" {text(name)}" if name else "")
        lines.append(f"| {sign} | {said} | {text(answer.found)} | {text(answer.capture)} |")
    return "\n".join(lines) + "\n"
