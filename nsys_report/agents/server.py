"""The answers as tools of an MCP server. All tools only read, and none sees anything but the captures that were given."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from hlo_mapping import HloError
from nsys_report.agents.answers import MOST_FINDINGS, MOST_ROWS, Answers
from nsys_report.agents.filters import OPERATORS
from nsys_report.errors import ReportError
from nsys_report.version import __version__

INSTRUCTIONS = """Captures of XLA programs on NVIDIA GPUs, analyzed: where each step's time goes against what the hardware allows.
Start with `summary`; then `findings` for causes and remedies, `table` for figures (raw, in the unit that a column's name ends in),
`instruction` for one kernel's HLO and source, `diff` to compare two captures. null means that nobody knows, never zero."""

Capture = Annotated[str, Field(description="name of the capture as `summary` lists it; empty for the first")]
Program = Annotated[str, Field(description="name or name#number of a program; empty for all")]
Conditions = Annotated[list[str] | None, Field(description=f"conditions COLUMN {'|'.join(OPERATORS)} VALUE, all of which must hold")]
Instruction = Annotated[str, Field(description="name of an HLO instruction, such as fusion.12")]
Limit = Annotated[int, Field(description="most rows of the answer", ge=1, le=MOST_ROWS)]
Parameters = ParamSpec("Parameters")
Answer = dict[str, Any]


def make_server(answers: Answers) -> MCPServer:
    """A server of these answers, for `run` or for a client in the same process."""
    server: MCPServer = MCPServer("nsys-report", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    tool = server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False))

    @tool
    @_explained
    def summary(capture: Capture = "") -> Answer:
        """What a capture is of: its programs with their step budgets, the first causes of lost time, and the tables that there are."""
        return answers.summary(capture)

    @tool
    @_explained
    def findings(
        capture: Capture = "",
        program: Program = "",
        slug: Annotated[str, Field(description="only this kind of finding")] = "",
        limit: Annotated[int, Field(ge=1, le=MOST_FINDINGS)] = 5,
    ) -> Answer:
        """Causes of lost time, most to be gained first: why, what to do, how surely, and on which instructions that rests."""
        return answers.findings(capture, program, slug, limit)

    @tool
    @_explained
    def table(
        table: Annotated[str, Field(description="a table that `summary` lists, as section/key or key: instructions, classes, budget, ...")],
        capture: Capture = "",
        columns: Annotated[list[str] | None, Field(description="only these columns")] = None,
        where: Conditions = None,
        sort: Annotated[str | None, Field(description="column to sort by")] = None,
        descending: bool = True,
        limit: Limit = 20,
        offset: Annotated[int, Field(description="rows to leave out before the first", ge=0)] = 0,
    ) -> Answer:
        """Rows of one table of the report, filtered and sorted."""
        return answers.table(table, capture, columns or (), where or (), sort, descending, limit, offset)

    @tool
    @_explained
    def instruction(name: Instruction, capture: Capture = "", program: Program = "") -> Answer:
        """One HLO instruction: time, class, bytes, operations, op_name and source line, and its HLO before and after XLA's passes."""
        return answers.instruction(name, capture, program)

    @tool
    @_explained
    def diff(before: Capture, after: Capture, limit: Limit = 10) -> Answer:
        """Whether the second capture is slower than the first, in which instructions, and whether it is more than noise."""
        return answers.diff(before, after, limit)

    return server


def _explained(answer: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """What is wrong with a question, and what there is instead, as an answer that the asker reads."""

    @wraps(answer)
    def asked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        try:
            return answer(*args, **kwargs)
        except (ReportError, HloError) as error:
            raise ToolError(f"{error.message}{f' ({error.hint})' if error.hint else ''}") from error

    return asked
