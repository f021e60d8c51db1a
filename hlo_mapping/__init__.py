"""HLO from XLA's dumps: parsed, joined to the launches of a capture, classed and costed.

The names below are this package's door; what lies behind it may move. They are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo_mapping.classification.overrides import RoleOverrides as RoleOverrides
    from hlo_mapping.classification.roles import ParameterRole as ParameterRole
    from hlo_mapping.classification.roles import parameter_roles as parameter_roles
    from hlo_mapping.costs.floor import floor_bytes as floor_bytes
    from hlo_mapping.dump.index import DumpIndex as DumpIndex
    from hlo_mapping.dump.index import index_dump as index_dump
    from hlo_mapping.dump.program import Program as Program
    from hlo_mapping.errors import DumpError as DumpError
    from hlo_mapping.errors import HloError as HloError
    from hlo_mapping.errors import HloSyntaxError as HloSyntaxError
    from hlo_mapping.facts import ProgramFacts as ProgramFacts
    from hlo_mapping.facts import instruction_facts as instruction_facts
    from hlo_mapping.facts import program_facts as program_facts
    from hlo_mapping.ir import Computation as Computation
    from hlo_mapping.ir import Instruction as Instruction
    from hlo_mapping.ir import Module as Module
    from hlo_mapping.launches import launch_counts as launch_counts
    from hlo_mapping.matching.join import join as join
    from hlo_mapping.program_kind import ProgramKind as ProgramKind
    from hlo_mapping.summary import ProgramSummary as ProgramSummary
    from hlo_mapping.summary import summarize as summarize
    from hlo_mapping.text.parser import parse_module as parse_module

_HOMES = {
    "Computation": "ir",
    "DumpError": "errors",
    "DumpIndex": "dump.index",
    "HloError": "errors",
    "HloSyntaxError": "errors",
    "Instruction": "ir",
    "Module": "ir",
    "ParameterRole": "classification.roles",
    "Program": "dump.program",
    "ProgramFacts": "facts",
    "ProgramKind": "program_kind",
    "ProgramSummary": "summary",
    "RoleOverrides": "classification.overrides",
    "floor_bytes": "costs.floor",
    "index_dump": "dump.index",
    "instruction_facts": "facts",
    "join": "matching.join",
    "launch_counts": "launches",
    "parameter_roles": "classification.roles",
    "parse_module": "text.parser",
    "program_facts": "facts",
    "summarize": "summary",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
