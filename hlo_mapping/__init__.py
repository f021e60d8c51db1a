"""HLO from XLA's dumps: parsed, joined to the launches of a capture, classed and costed.

The names below are this package's door; what lies behind it may move. They are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo_mapping.classification.overrides import RoleOverrides as RoleOverrides
    from hlo_mapping.dump.index import DumpIndex as DumpIndex
    from hlo_mapping.dump.index import index_dump as index_dump
    from hlo_mapping.dump.program import Program as Program
    from hlo_mapping.errors import HloError as HloError
    from hlo_mapping.facts import ProgramFacts as ProgramFacts
    from hlo_mapping.facts import program_facts as program_facts
    from hlo_mapping.ir import Module as Module
    from hlo_mapping.matching.join import join as join
    from hlo_mapping.program_kind import ProgramKind as ProgramKind
    from hlo_mapping.text.parser import parse_module as parse_module

_HOMES = {
    "DumpIndex": "dump.index",
    "HloError": "errors",
    "Module": "ir",
    "Program": "dump.program",
    "ProgramFacts": "facts",
    "ProgramKind": "program_kind",
    "RoleOverrides": "classification.overrides",
    "index_dump": "dump.index",
    "join": "matching.join",
    "parse_module": "text.parser",
    "program_facts": "facts",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
