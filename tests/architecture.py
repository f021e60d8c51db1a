"""The rooms of the house and who may import whom: the one list that the architecture is held to.

A room is a folder ("text/") or a single file ("ir.py"). RULES names every room once, from the bottom of the house to the top: a room may
import itself and the rooms named beside it, all of which stand above it in the list, so that nothing reaches upwards and no two rooms
need each other. A folder's name stands for the files directly in it; a file with a line of its own follows that line alone.
A new folder is a new line, put where it belongs in the order.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("hlo_mapping", "nsys_report")
Tree = Mapping[str, str]
"""The text of each source file by its path from the root of the repository."""

VALUES = "errors.py shape.py ir.py kernel_classes.py opcodes.py kernel_kinds.py"
"""What all of hlo_mapping speaks of: shapes, instructions, and the tables of opcodes and of kernel kinds."""
HLO_MAPPING: dict[str, str] = {
    # room: the rooms it may import | the packages of others
    "errors.py": "",
    "shape.py": "",
    "quoting.py": "",
    "kernel_classes.py": "",
    "opcodes.py": "kernel_classes.py",
    "kernel_kinds.py": "kernel_classes.py",
    "columns.py": "| pyarrow",
    "ir.py": "shape.py quoting.py",
    "text/": f"{VALUES} quoting.py",
    "dump/": "errors.py quoting.py ir.py text/",
    "launches.py": "ir.py text/attributes.py",
    "replica_groups.py": "| numpy",
    "collectives.py": "ir.py opcodes.py replica_groups.py",
    "dots.py": VALUES,
    "skeleton.py": "errors.py ir.py dump/",
    "origins.py": "ir.py",
    "dataflow.py": f"{VALUES} text/calls.py",
    "pairing/": f"{VALUES} dataflow.py",
    "matching/": f"{VALUES} dump/ | numpy pyarrow",
    "memory/": f"{VALUES} dump/",
    "costs/": f"{VALUES} dataflow.py text/attributes.py",
    "classification/": f"{VALUES} dataflow.py costs/",
    "naming/": f"{VALUES} dataflow.py classification/",
    "launch_costs.py": f"{VALUES} dataflow.py costs/ classification/",
    "floor.py": f"{VALUES} launches.py dataflow.py costs/ classification/",
    "phases.py": f"{VALUES} dataflow.py costs/ classification/",
    "program_evidence.py": f"{VALUES} dataflow.py costs/ classification/",
    "program_kind.py": f"{VALUES} classification/ program_evidence.py",
    "facts.py": f"{VALUES} columns.py dump/ dataflow.py costs/ classification/ launch_costs.py floor.py phases.py program_kind.py"
    " naming/ | pyarrow",
    "summary.py": f"{VALUES} dump/ dots.py skeleton.py classification/ facts.py",
    "__init__.py": "classification/overrides.py classification/reasons.py classification/roles.py collectives.py columns.py floor.py"
    " dataflow.py dots.py dump/anonymous.py dump/choosing.py dump/debug_options.py dump/files.py dump/index.py dump/program.py errors.py"
    " facts.py ir.py kernel_classes.py launches.py matching/confidence.py matching/join.py matching/names.py matching/result.py opcodes.py"
    " memory/usage.py origins.py pairing/instructions.py pairing/programs.py pairing/work.py phases.py program_kind.py shape.py summary.py"
    " text/parser.py text/printer.py text/vocabulary.py",
}
"""HLO alone: knows nothing of captures, commands or pages."""

ANALYSIS = "analysis/arrays/ analysis/times/ analysis/roofline/ analysis/idle/ analysis/structure/ analysis/budget/ analysis/rollup/"
"""What is computed, from the columns up to the budget."""

NSYS_REPORT: dict[str, str] = {
    "errors.py": "",
    "words.py": "",
    "intervals.py": "| numpy",
    "scratch.py": "",
    "packed.py": "errors.py scratch.py | pyarrow",
    "nsys_tool.py": "errors.py",
    "paths.py": "| pyarrow",
    "sources.py": "errors.py",
    "units.py": "words.py",
    "fact.py": "units.py",
    "quantities.py": "",
    "columns.py": "hlo_mapping/__init__.py | pyarrow",
    "role_files.py": "hlo_mapping/__init__.py",
    "capture/": "intervals.py hlo_mapping/__init__.py errors.py nsys_tool.py packed.py scratch.py words.py paths.py"
    " | adbc_driver_manager adbc_driver_sqlite numpy pyarrow",
    "measuring/": "errors.py | numpy",
    "stepbench/": "errors.py | jax numpy pynvml",
    "executions/": "intervals.py hlo_mapping/__init__.py columns.py words.py capture/ | numpy pyarrow",
    "joined.py": "hlo_mapping/__init__.py capture/model.py executions/activities.py executions/ran.py | pyarrow",
    "analysis/arrays/": "hlo_mapping/__init__.py capture/arrays.py capture/model.py joined.py | numpy pyarrow",
    "analysis/times/": "intervals.py hlo_mapping/__init__.py analysis/arrays/ | numpy pyarrow",
    "analysis/roofline/": "hlo_mapping/__init__.py errors.py joined.py analysis/arrays/ analysis/times/ | numpy pyarrow",
    "analysis/idle/": "intervals.py hlo_mapping/__init__.py capture/catalogue.py analysis/arrays/ analysis/times/ | numpy pyarrow",
    "analysis/structure/": "hlo_mapping/__init__.py analysis/arrays/ analysis/times/ analysis/roofline/ analysis/idle/ | numpy pyarrow",
    "analysis/budget/": "hlo_mapping/__init__.py analysis/arrays/ analysis/times/ analysis/roofline/ analysis/idle/ | numpy pyarrow",
    "analysis/rollup/": "hlo_mapping/__init__.py analysis/arrays/ analysis/roofline/ | numpy pyarrow",
    "analysis/": f"intervals.py hlo_mapping/__init__.py errors.py joined.py {ANALYSIS} | pyarrow",
    "findings/": "intervals.py hlo_mapping/__init__.py units.py fact.py capture/health.py joined.py analysis/ analysis/arrays/"
    " analysis/times/"
    " analysis/idle/ | numpy pyarrow",
    "findings/rules/": "intervals.py hlo_mapping/__init__.py units.py words.py fact.py capture/health.py joined.py analysis/"
    " analysis/arrays/"
    " analysis/times/ analysis/idle/ findings/ | numpy pyarrow",
    "counters/": "errors.py capture/model.py capture/gpu_metrics.py joined.py analysis/ | numpy pyarrow",
    "session.py": "sources.py capture/health.py joined.py analysis/ findings/ counters/ | pyarrow",
    "pipeline.py": "hlo_mapping/__init__.py errors.py packed.py paths.py role_files.py capture/ executions/ joined.py analysis/"
    " analysis/roofline/ceilings.py findings/rules/apply.py counters/ session.py | pyarrow",
    "selection.py": "errors.py units.py joined.py analysis/ findings/ findings/rules/ session.py | numpy pyarrow",
    "comparison/": "hlo_mapping/__init__.py units.py analysis/ analysis/arrays/"
    " analysis/budget/ analysis/structure/ session.py | numpy scipy",
    "ranks/": "intervals.py hlo_mapping/__init__.py errors.py units.py fact.py capture/session.py analysis/arrays/ analysis/idle/ findings/"
    " session.py | numpy",
    "ranks/engine.py": "hlo_mapping/__init__.py errors.py capture/session.py pipeline.py session.py ranks/ | distributed",
    "history/": "errors.py units.py stepbench/result.py analysis/program_rows.py session.py | filelock ruptures numpy",
    "profiling/hook/": "| jax",
    "profiling/": "errors.py nsys_tool.py capture/ session.py profiling/hook/ | pyarrow",
    "serving/": "intervals.py errors.py nsys_tool.py units.py fact.py analysis/arrays/ capture/session.py findings/model.py profiling/"
    " | httpx numpy pyarrow",
    # What renders takes the finished report, and computes nothing.
    "reports/model.py": "units.py fact.py findings/model.py",
    "reports/arrays.py": "analysis/arrays/ | numpy pyarrow",
    "reports/lanes.py": "| numpy",
    "reports/scales.py": "",
    "reports/palette.py": "",
    "reports/document.py": "",
    "reports/finding_page.py": "findings/model.py reports/model.py",
    "reports/export.py": "errors.py scratch.py units.py fact.py findings/model.py reports/model.py"
    " reports/document.py reports/finding_page.py | pyarrow",
    "reports/csv_files.py": "units.py reports/model.py reports/export.py",
    "reports/short.py": "units.py findings/model.py reports/model.py",
    "reports/terminal_table.py": "units.py reports/model.py | rich",
    "reports/markdown.py": "units.py findings/model.py reports/model.py reports/short.py",
    "reports/terminal_page.py": "units.py findings/model.py reports/model.py reports/short.py reports/terminal_table.py | rich",
    # What builds chooses what is shown.
    "reports/": "hlo_mapping/__init__.py units.py fact.py quantities.py paths.py capture/model.py capture/health.py"
    " capture/health_items.py capture/survey.py analysis/ analysis/times/"
    " analysis/structure/branches.py analysis/roofline/ analysis/budget/ analysis/rollup/"
    " analysis/idle/ findings/ session.py comparison/model.py history/ counters/ profiling/gpu.py profiling/passes.py profiling/record.py"
    " ranks/ serving/ | numpy pyarrow",
    "reports/pictures/": "units.py joined.py ranks/ analysis/program_rows.py analysis/arrays/ analysis/idle/"
    " analysis/roofline/ceilings.py session.py reports/"
    " reports/arrays.py reports/lanes.py"
    " | numpy pyarrow",
    "reports/figures/": "units.py reports/palette.py reports/scales.py reports/export.py reports/pictures/model.py | matplotlib numpy",
    "reports/timeline/": "intervals.py units.py joined.py analysis/ analysis/arrays/ analysis/idle/ analysis/structure/ analysis/times/"
    " capture/model.py"
    " session.py reports/ reports/arrays.py reports/lanes.py | numpy pyarrow",
    "reports/html/": "hlo_mapping/__init__.py units.py fact.py quantities.py analysis/program_rows.py analysis/roofline/ceilings.py"
    " session.py comparison/model.py history/trend.py"
    " reports/model.py reports/palette.py reports/scales.py reports/finding_page.py reports/export.py reports/ reports/pictures/"
    " reports/timeline/ | jinja2 markupsafe numpy",
    "reports/perfetto/": "intervals.py capture/gpu_metrics.py units.py analysis/arrays/ session.py reports/ reports/arrays.py"
    " reports/lanes.py"
    " reports/timeline/ | numpy perfetto",
    "plots.py": "errors.py session.py reports/pictures/ reports/figures/ | matplotlib",
    "version.py": "",
    "saving.py": "version.py errors.py columns.py session.py reports/model.py reports/export.py reports/markdown.py reports/"
    " reports/html/ reports/perfetto/ | pyarrow",
    "notebook.py": "saving.py errors.py columns.py analysis/ analysis/roofline/ceilings.py analysis/rollup/ findings/ pipeline.py"
    " session.py selection.py reports/model.py reports/ reports/html/ reports/pictures/build.py plots.py | pandas pyarrow",
    "anonymize/": "hlo_mapping/__init__.py errors.py packed.py scratch.py capture/ notebook.py | numpy pyarrow",
    "assertions/": "hlo_mapping/__init__.py errors.py units.py analysis/arrays/schemas.py analysis/budget/parts.py findings/slugs.py"
    " session.py reports/markdown.py reports/ | pyarrow",
    "diffing.py": "version.py errors.py comparison/ reports/model.py reports/ reports/html/ notebook.py | pandas",
    "run_of_ranks.py": "errors.py units.py findings/model.py ranks/ ranks/engine.py reports/model.py reports/ reports/html/ | pandas",
    "benching/": "errors.py history/ notebook.py",
    "__init__.py": "version.py profiling/window.py stepbench/benchmark.py notebook.py diffing.py run_of_ranks.py",
    "agents/": "hlo_mapping/__init__.py version.py errors.py reports/document.py reports/export.py reports/html/ notebook.py diffing.py"
    " | mcp pydantic",
    "cli/": "hlo_mapping/__init__.py sources.py version.py errors.py nsys_tool.py packed.py paths.py units.py role_files.py"
    " capture/__init__.py capture/session.py capture/survey.py measuring/ analysis/roofline/ceilings.py analysis/whatif.py"
    " selection.py profiling/ ranks/ ranks/engine.py serving/"
    " reports/model.py reports/export.py"
    " reports/csv_files.py reports/markdown.py reports/terminal_page.py reports/"
    " reports/pictures/ reports/figures/ reports/html/ reports/perfetto/ notebook.py anonymize/ assertions/ diffing.py"
    " history/ benching/ agents/ | click rich",
    "__main__.py": "cli/app.py",
}
"""Captures to reports, and the command line."""


@dataclass(frozen=True, slots=True)
class Room:
    """One line of the rules: what the room may import, by full names."""

    name: str
    rooms: frozenset[str]
    packages: frozenset[str]


def _rooms() -> Iterator[Room]:
    for package, lines in zip(PACKAGES, (HLO_MAPPING, NSYS_REPORT), strict=True):
        for name, line in lines.items():
            rooms, _, packages = line.partition("|")
            full = frozenset(r if r.startswith(PACKAGES) else f"{package}/{r}" for r in rooms.split())
            yield Room(f"{package}/{name}", full, frozenset(packages.split()))


RULES = tuple(_rooms())


def source_tree() -> dict[str, str]:
    """The sources as they are."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def room_of(file: str, rules: tuple[Room, ...] = RULES) -> Room | None:
    """The room of a file: its own line, else that of its folder; files directly in a package need a line of their own."""
    names = {room.name: room for room in rules}
    return names.get(file) or names.get(folder_of(file))


def folder_of(file: str) -> str:
    """The folder that a file lies in, with a slash at the end; a file directly in a package is a room by itself."""
    folder, _, _ = file.rpartition("/")
    return file if folder in PACKAGES else f"{folder}/"


@cache
def imported(text: str) -> frozenset[str]:
    """Dotted names that a source imports: at the top, within functions, for type checking alone, and by name where it loads lazily."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(tuple(f"{p}." for p in PACKAGES)):
            names.add(node.value)
    return frozenset(names)


def files_imported(file: str, tree: Tree) -> set[str]:
    """The files of the house that a file imports, itself left out."""
    found = {_file(name, tree) for name in imported(tree[file])}
    return {target for target in found if target is not None} - {file}


def _file(name: str, tree: Tree) -> str | None:
    """The file that a dotted name of the house lies in: a module, or the module that holds that name."""
    path = name.replace(".", "/")
    above = path.rpartition("/")[0]
    ways = (f"{path}.py", f"{path}/__init__.py", f"{above}.py", f"{above}/__init__.py")
    return next((way for way in ways if way in tree), None) if name.startswith(PACKAGES) else None


def packages_imported(file: str, tree: Tree) -> set[str]:
    """Packages of others, and relative imports as they stand."""
    tops = {name if name.startswith(".") else name.split(".")[0] for name in imported(tree[file])}
    return tops - set(sys.stdlib_module_names) - set(PACKAGES)


def allows(room: Room, target: str) -> bool:
    """Whether a room's line lets its files import a file of the house."""
    own = room.name.endswith("/") and folder_of(target) == room.name
    return own or target in room.rooms or folder_of(target) in room.rooms


def violations(tree: Tree) -> set[tuple[str, str]]:
    """Every (file, import) that no line allows; a file without a line is one with itself."""
    wrong: set[tuple[str, str]] = set()
    for file in tree:
        room = room_of(file)
        if room is None:
            wrong.add((file, file))
            continue
        wrong |= {(file, target) for target in files_imported(file, tree) if not allows(room, target)}
        wrong |= {(file, package) for package in packages_imported(file, tree) - room.packages}
    return wrong


def file_circles(tree: Tree) -> list[set[str]]:
    """Files that need each other, a set for each circle or knot of circles."""
    return circles({file: files_imported(file, tree) for file in tree})


def folder_circles(tree: Tree) -> list[set[str]]:
    """Folders that need each other."""
    edges: dict[str, set[str]] = {}
    for file in tree:
        edges.setdefault(folder_of(file), set()).update(map(folder_of, files_imported(file, tree)))
    return circles({folder: targets - {folder} for folder, targets in edges.items()})


def circles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """The sets of nodes that reach each other: what is left of each node's reach after those that do not reach back."""
    reach = {node: _reach(node, edges) for node in edges}
    knots = {frozenset(other for other in reach[node] if node in reach[other]) for node in edges}
    return [set(knot) for knot in knots if knot]


def _reach(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = edges.get(waiting.pop(), set()) - seen
        seen |= fresh
        waiting += fresh
    return seen
