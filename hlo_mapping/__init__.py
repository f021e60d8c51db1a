"""HLO from XLA's dumps: parsed, joined to the launches of a capture, classed and costed.

The names below are this package's door; what lies behind it may move. They are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo_mapping.classification.overrides import RoleOverrides as RoleOverrides
    from hlo_mapping.classification.overrides import check_overrides as check_overrides
    from hlo_mapping.classification.overrides import read_manifest as read_manifest
    from hlo_mapping.classification.overrides import read_roles_file as read_roles_file
    from hlo_mapping.classification.reasons import COPIES_CACHE as COPIES_CACHE
    from hlo_mapping.classification.reasons import SUMS_SPLIT_PRODUCT as SUMS_SPLIT_PRODUCT
    from hlo_mapping.classification.reasons import is_written_out as is_written_out
    from hlo_mapping.classification.roles import ParameterRole as ParameterRole
    from hlo_mapping.classification.roles import parameter_roles as parameter_roles
    from hlo_mapping.collectives import Collective as Collective
    from hlo_mapping.collectives import module_collectives as module_collectives
    from hlo_mapping.columns import ACTIVITIES as ACTIVITIES
    from hlo_mapping.columns import COSTS as COSTS
    from hlo_mapping.columns import FACTS as FACTS
    from hlo_mapping.columns import JOIN as JOIN
    from hlo_mapping.columns import LAUNCHES as LAUNCHES
    from hlo_mapping.columns import WORD as WORD
    from hlo_mapping.columns import column as column
    from hlo_mapping.dataflow import Graph as Graph
    from hlo_mapping.dataflow import Kernel as Kernel
    from hlo_mapping.dataflow import build_graph as build_graph
    from hlo_mapping.dataflow import donated as donated
    from hlo_mapping.dots import Dot as Dot
    from hlo_mapping.dots import dot_from_words as dot_from_words
    from hlo_mapping.dots import dots_of as dots_of
    from hlo_mapping.dots import operand_leaves as operand_leaves
    from hlo_mapping.dump.anonymous import anonymous_dump as anonymous_dump
    from hlo_mapping.dump.anonymous import module_names as module_names
    from hlo_mapping.dump.choosing import Ran as Ran
    from hlo_mapping.dump.debug_options import read_debug_options as read_debug_options
    from hlo_mapping.dump.files import OPTIMIZED as OPTIMIZED
    from hlo_mapping.dump.index import DumpIndex as DumpIndex
    from hlo_mapping.dump.index import index_dump as index_dump
    from hlo_mapping.dump.program import Program as Program
    from hlo_mapping.dump.program import load_program as load_program
    from hlo_mapping.dump.program import read_before as read_before
    from hlo_mapping.errors import DumpError as DumpError
    from hlo_mapping.errors import HloError as HloError
    from hlo_mapping.errors import HloSyntaxError as HloSyntaxError
    from hlo_mapping.facts import ProgramFacts as ProgramFacts
    from hlo_mapping.facts import instruction_facts as instruction_facts
    from hlo_mapping.facts import program_facts as program_facts
    from hlo_mapping.floor import floor_bytes as floor_bytes
    from hlo_mapping.ir import Computation as Computation
    from hlo_mapping.ir import Instruction as Instruction
    from hlo_mapping.ir import Module as Module
    from hlo_mapping.kernel_classes import DETAILS as DETAILS
    from hlo_mapping.kernel_classes import KERNEL_CLASSES as KERNEL_CLASSES
    from hlo_mapping.kernel_classes import Detail as Detail
    from hlo_mapping.kernel_classes import KernelClass as KernelClass
    from hlo_mapping.launches import launch_counts as launch_counts
    from hlo_mapping.matching.confidence import AUTOTUNING as AUTOTUNING
    from hlo_mapping.matching.confidence import GOOD_FIT as GOOD_FIT
    from hlo_mapping.matching.confidence import JOIN_METHODS as JOIN_METHODS
    from hlo_mapping.matching.confidence import POOR_FIT as POOR_FIT
    from hlo_mapping.matching.confidence import JoinMethod as JoinMethod
    from hlo_mapping.matching.join import join as join
    from hlo_mapping.matching.names import is_known_kernel as is_known_kernel
    from hlo_mapping.matching.result import Annotations as Annotations
    from hlo_mapping.matching.result import JoinedExecution as JoinedExecution
    from hlo_mapping.matching.result import LaunchJoin as LaunchJoin
    from hlo_mapping.memory.usage import ProgramMemory as ProgramMemory
    from hlo_mapping.memory.usage import TemporaryValue as TemporaryValue
    from hlo_mapping.memory.usage import program_memory as program_memory
    from hlo_mapping.opcodes import VIEW_OPCODES as VIEW_OPCODES
    from hlo_mapping.origins import Origin as Origin
    from hlo_mapping.origins import Origins as Origins
    from hlo_mapping.origins import find_origins as find_origins
    from hlo_mapping.pairing.instructions import Change as Change
    from hlo_mapping.pairing.instructions import InstructionPair as InstructionPair
    from hlo_mapping.pairing.instructions import pair_instructions as pair_instructions
    from hlo_mapping.pairing.programs import Described as Described
    from hlo_mapping.pairing.programs import pair_programs as pair_programs
    from hlo_mapping.pairing.work import Work as Work
    from hlo_mapping.pairing.work import works_of as works_of
    from hlo_mapping.phases import TRAINING_PHASES as TRAINING_PHASES
    from hlo_mapping.program_kind import ProgramKind as ProgramKind
    from hlo_mapping.shape import ELEMENT_BITS as ELEMENT_BITS
    from hlo_mapping.shape import HOST_MEMORY as HOST_MEMORY
    from hlo_mapping.summary import ProgramSummary as ProgramSummary
    from hlo_mapping.summary import summarize as summarize
    from hlo_mapping.text.parser import parse_module as parse_module
    from hlo_mapping.text.printer import print_instruction as print_instruction
    from hlo_mapping.text.vocabulary import Renamer as Renamer

_HOMES = {
    "ACTIVITIES": "columns",
    "AUTOTUNING": "matching.confidence",
    "Annotations": "matching.result",
    "COPIES_CACHE": "classification.reasons",
    "COSTS": "columns",
    "Change": "pairing.instructions",
    "Collective": "collectives",
    "Computation": "ir",
    "DETAILS": "kernel_classes",
    "Described": "pairing.programs",
    "Detail": "kernel_classes",
    "Dot": "dots",
    "DumpError": "errors",
    "DumpIndex": "dump.index",
    "ELEMENT_BITS": "shape",
    "FACTS": "columns",
    "GOOD_FIT": "matching.confidence",
    "Graph": "dataflow",
    "HOST_MEMORY": "shape",
    "HloError": "errors",
    "HloSyntaxError": "errors",
    "Instruction": "ir",
    "InstructionPair": "pairing.instructions",
    "JOIN": "columns",
    "JOIN_METHODS": "matching.confidence",
    "JoinMethod": "matching.confidence",
    "JoinedExecution": "matching.result",
    "KERNEL_CLASSES": "kernel_classes",
    "Kernel": "dataflow",
    "KernelClass": "kernel_classes",
    "LAUNCHES": "columns",
    "LaunchJoin": "matching.result",
    "Module": "ir",
    "OPTIMIZED": "dump.files",
    "Origin": "origins",
    "Origins": "origins",
    "POOR_FIT": "matching.confidence",
    "ParameterRole": "classification.roles",
    "Program": "dump.program",
    "ProgramFacts": "facts",
    "ProgramKind": "program_kind",
    "ProgramMemory": "memory.usage",
    "ProgramSummary": "summary",
    "RoleOverrides": "classification.overrides",
    "SUMS_SPLIT_PRODUCT": "classification.reasons",
    "TRAINING_PHASES": "phases",
    "VIEW_OPCODES": "opcodes",
    "WORD": "columns",
    "TemporaryValue": "memory.usage",
    "Work": "pairing.work",
    "Ran": "dump.choosing",
    "Renamer": "text.vocabulary",
    "anonymous_dump": "dump.anonymous",
    "build_graph": "dataflow",
    "check_overrides": "classification.overrides",
    "column": "columns",
    "donated": "dataflow",
    "dot_from_words": "dots",
    "dots_of": "dots",
    "find_origins": "origins",
    "floor_bytes": "floor",
    "index_dump": "dump.index",
    "instruction_facts": "facts",
    "is_known_kernel": "matching.names",
    "is_written_out": "classification.reasons",
    "join": "matching.join",
    "launch_counts": "launches",
    "load_program": "dump.program",
    "module_collectives": "collectives",
    "module_names": "dump.anonymous",
    "operand_leaves": "dots",
    "pair_instructions": "pairing.instructions",
    "pair_programs": "pairing.programs",
    "parameter_roles": "classification.roles",
    "parse_module": "text.parser",
    "print_instruction": "text.printer",
    "program_facts": "facts",
    "program_memory": "memory.usage",
    "read_before": "dump.program",
    "read_debug_options": "dump.debug_options",
    "read_manifest": "classification.overrides",
    "read_roles_file": "classification.overrides",
    "summarize": "summary",
    "works_of": "pairing.work",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
