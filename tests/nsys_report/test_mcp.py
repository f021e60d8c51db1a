"""The report for assistants: answers that are bounded and only read, asked by the SDK's own client, in this process and over stdio."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from nsys_report.agents.answers import MOST_ROWS, Answers, Captured
from nsys_report.agents.filters import chosen
from nsys_report.agents.server import make_server
from nsys_report.errors import UsageError
from tests.nsys_report.pages import FIXTURES, analyzed

MOST_BYTES = 40_000
"""Of one answer: about ten thousand tokens."""


@cache
def answers() -> Answers:
    return Answers([Captured(name, lambda name=name: analyzed(name)) for name in ("decode", "train")])  # type: ignore[misc]


def ask(tool: str, **arguments: Any) -> Any:
    """What a client in this process is told, or the error as text."""

    async def asked() -> Any:
        async with Client(make_server(answers())) as client:
            return await client.call_tool(tool, arguments)

    found = asyncio.run(asked())
    text = found.content[0].text
    assert len(text) < MOST_BYTES
    return text if found.is_error else json.loads(text)


def test_tools_only_read_and_say_what_they_take() -> None:
    async def listed() -> Any:
        async with Client(make_server(answers())) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in asyncio.run(listed())}
    assert set(tools) == {"summary", "findings", "table", "instruction", "diff"}
    assert all(tool.annotations is not None and tool.annotations.read_only_hint and tool.description for tool in tools.values())
    assert "COLUMN" in json.dumps(tools["table"].input_schema)


def test_a_summary_names_programs_findings_and_tables() -> None:
    found = ask("summary")
    assert found["captures"] == ["decode", "train"]
    (program,) = found["programs"]
    assert program["program"] == "jit_decode_step#21184"
    assert sum(ns for category, ns, _ in program["budget"][:-1]) == pytest.approx(program["budget"][-1][1], rel=1e-3)
    assert found["findings"][0]["slug"] == "waiting-for-host"
    assert found["tables"]["program:jit_decode_step#21184/instructions"] > 20


def test_findings_come_with_reason_remedy_and_places() -> None:
    (found,) = ask("findings", program="jit_decode_step", slug="split-product", limit=1)["findings"]
    assert found["remedy"] and found["why"] and found["gain_ns"] > 0
    assert any(place.get("hlo_instruction") for place in found["places"])
    assert "there are" in ask("findings", slug="nothing")


def test_rows_are_filtered_sorted_and_bounded() -> None:
    found = ask(
        "table",
        table="instructions",
        columns=["hlo_instruction", "kernel_class", "time_per_execution_ns"],
        where=["kernel_class == weights", "time_per_execution_ns > 10000"],
        sort="time_per_execution_ns",
        limit=3,
    )
    times = [row[2] for row in found["rows"]]
    assert len(times) == 3 < found["total"]
    assert times == sorted(times, reverse=True) and min(times) > 10_000
    assert {row[1] for row in found["rows"]} == {"weights"}
    assert found["next_offset"] == 3
    after = ask("table", table="instructions", sort="time_per_execution_ns", where=["kernel_class == weights"], limit=2, offset=2)
    assert after["offset"] == 2
    everything = ask("table", table="instructions", limit=MOST_ROWS)
    assert 20 < everything["next_offset"] == len(everything["rows"]) <= MOST_ROWS


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"table": "instructoins"}, "instructions"),
        ({"table": "instructions", "columns": ["time_shar"]}, "did you mean"),
        ({"table": "instructions", "where": ["weights"]}, "COLUMN OPERATOR VALUE"),
        ({"table": "instructions", "capture": "other"}, "there are decode, train"),
    ],
)
def test_a_wrong_question_is_told_what_there_is(arguments: dict[str, Any], says: str) -> None:
    assert says in ask("table", **arguments)


def test_an_instruction_comes_with_hlo_and_source() -> None:
    found = ask("instruction", name="gemm_fusion_dot.103")
    assert found["figures"]["kernel_class"] == "weights"
    assert found["figures"]["source_file"] and found["figures"]["source_line"] > 0
    assert found["hlo"].startswith("%gemm_fusion_dot.103 = ") or "gemm_fusion_dot.103 = " in found["hlo"]
    assert "did you mean gemm_fusion_dot.103" in ask("instruction", name="gemm_fusion_dot.1033")


def test_two_captures_are_compared() -> None:
    found = ask("diff", before="decode", after="decode")
    assert found["verdict"] == "same"
    assert found["total_instructions"] > len(found["instructions"]) == 10


def test_unknown_values_satisfy_no_condition_and_come_last() -> None:
    rows = [{"n": 1.0, "t": "Mlp.up"}, {"n": None, "t": None}, {"n": 3.0, "t": "attn"}]
    assert chosen(rows, ["n", "t"], ["n < 5"], "n", True) == [rows[2], rows[0]]
    assert chosen(rows, ["n", "t"], ["t ~ mlp"], None, True) == [rows[0]]
    assert chosen(rows, ["n", "t"], [], "n", False) == [rows[0], rows[2], rows[1]]
    with pytest.raises(UsageError, match="no column 'm'"):
        chosen(rows, ["n", "t"], ["m > 1"], None, True)


def test_the_command_serves_over_stdio(fixture_path: Callable[..., Path]) -> None:
    capture, dump = fixture_path("int8", "capture.sqlite"), fixture_path("int8", "xla_dump")
    command = ["-m", "nsys_report", "mcp", str(capture), "--xla-dump", str(dump)]

    async def asked() -> Any:
        server = StdioServerParameters(command=sys.executable, args=command, cwd=str(FIXTURES.parent))
        async with Client(server) as client:
            return await client.call_tool("summary", {})

    found = asyncio.run(asyncio.wait_for(asked(), 60))
    assert not found.is_error
    assert found.structured_content["programs"][0]["program"].startswith("jit_quantized_mlp")


def test_a_dump_that_is_not_there_is_said_before_serving(fixture_path: Callable[..., Path], tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "nsys_report",
        "mcp",
        str(fixture_path("int8", "capture.sqlite")),
        "--xla-dump",
        str(tmp_path / "none"),
    ]
    done = subprocess.run(command, cwd=FIXTURES.parent, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode == 1 and f"there is no directory {tmp_path / 'none'}" in done.stderr
