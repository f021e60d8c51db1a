"""What a program launches, read from its scheduled HLO: for dumps without a thunk sequence, or without thunk metadata.

The kernel that a fusion launches may carry the name of any fusion with the same body, since XLA emits one kernel for all of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from hlo_mapping.dump.thunks import Thunk
from hlo_mapping.ir import Computation, Instruction, Module
from hlo_mapping.kernel_kinds import kind_of_target
from hlo_mapping.matching.names import kernel_name
from hlo_mapping.opcodes import MEMSETS, NO_WORK, OPCODES, SLICING, is_collective

SLICE_FUSION = "kSliceFusion"
"""Our name for a fusion that only reads or writes a slice of a buffer: it runs as a kernel or as a copy, as XLA sees fit."""


PASS_SUFFIX = re.compile(r"__\d+$")
"""What XLA appends to the names of further kernels of one instruction."""


def pseudo_thunks(module: Module) -> tuple[Thunk, ...]:
    """The thunks that a scheduled module should have, one an instruction, loops and branches nested."""
    return _computation_thunks(module, module.entry)


def _computation_thunks(module: Module, computation: Computation) -> tuple[Thunk, ...]:
    return tuple(t for i in computation.instructions for t in _instruction_thunks(module, i))


def _instruction_thunks(module: Module, instruction: Instruction) -> Iterator[Thunk]:
    op, name = instruction.opcode, instruction.name
    if op in NO_WORK or op.endswith("-done"):
        return
    if (nested := _nested_thunk(module, instruction)) is not None:
        yield nested
    elif op in MEMSETS:
        yield _thunk("kMemset32BitValue", name)
    elif op == "fusion":
        yield _fusion_thunk(module, instruction)
    elif op == "custom-call":
        yield _thunk(kind_of_target(instruction.custom_call_target).thunk, name)
    elif is_collective(op):
        yield _thunk("kCollective", name)
    elif op in OPCODES and OPCODES[op].thunk:
        yield _thunk(OPCODES[op].thunk, name)
    else:
        yield _thunk("kKernel", name, kernel=kernel_name(name))


def _nested_thunk(module: Module, instruction: Instruction) -> Thunk | None:
    """The thunk of an instruction that runs other computations, with theirs inside; None for others."""
    op, name, called = instruction.opcode, instruction.name, instruction.called
    if op == "while":
        condition, body = (_named(module, c) for c in called[:2])
        return _thunk("kWhile", name, branches=(("condition", condition), ("body", body)))
    if op == "conditional":
        return _thunk("kConditional", name, branches=tuple((f"branch_{n}", _named(module, c)) for n, c in enumerate(called)))
    if op == "call" and called and called[0].startswith("command_buffer"):
        return _thunk("kCommandBuffer", None, branches=(("sequence", _named(module, called[0])),))
    if op in ("call", "async-start") and called:
        return _thunk("kSequential", None if op == "call" else name, branches=(("sequence", _named(module, called[0])),))
    return None


def _named(module: Module, computation: str) -> tuple[Thunk, ...]:
    found = module.by_name.get(computation)
    return _computation_thunks(module, found) if found is not None else ()


def _fusion_thunk(module: Module, instruction: Instruction) -> Thunk:
    kind = (instruction.backend_config.get("fusion_backend_config") or {}).get("kind", "")
    if kind == "__dynamic_memcpy":
        return _thunk("kCopy", instruction.name)
    body = module.by_name.get(instruction.called[0]) if instruction.called else None
    if body is not None and sum(i.opcode == "custom-call" for i in body.instructions) == 1:
        return _thunk("kCustomCall", instruction.name)
    sorts = body is not None and body.root.opcode == "sort"
    if sorts or kind in ("__cudnn$fusion", "__custom_fusion"):
        return _thunk("kSort" if sorts else "kCuDnn", instruction.name)
    if body is not None and is_collective(body.root.opcode):
        return _thunk("kCollective", instruction.name)
    # scalars in it only say where the slice is
    slices = body is not None and all(i.opcode in NO_WORK or i.opcode in SLICING or not i.shape.dimensions for i in body.instructions)
    return _thunk(SLICE_FUSION if slices else "kKernel", instruction.name, kernel=kernel_name(instruction.name))


def _thunk(
    kind: str, instruction: str | None, kernel: str | None = None, branches: tuple[tuple[str, tuple[Thunk, ...]], ...] = ()
) -> Thunk:
    return Thunk(
        id=None,
        kind=kind,
        kernel=kernel,
        grid=None,
        block=None,
        shared_memory=None,
        instruction=instruction,
        stream_id=None,
        branches=branches,
    )


def kernel_names(module: Module) -> dict[str, frozenset[str]]:
    """The kernel names that each fusion may launch under: its own and those of all fusions with the same body."""
    groups: dict[object, list[str]] = defaultdict(list)
    for computation in module.computations:
        for i in computation.instructions:
            if i.opcode == "fusion" and i.called:
                groups[fingerprint(module, i.called[0]), i.shape].append(i.name)
    return {name: frozenset(map(kernel_name, names)) for names in groups.values() for name in names}


def fingerprint(module: Module, computation: str, _depth: int = 0) -> object:
    """A value equal for computations that differ in names and metadata alone."""
    found = module.by_name.get(computation)
    if found is None or _depth > 8:
        return computation
    numbers = {i.name: n for n, i in enumerate(found.instructions)}
    return tuple(
        (
            i.opcode,
            i.shape,
            i.literal,
            tuple((numbers.get(o.name, -1), o.index) for o in i.operands),
            tuple(a for a in i.attributes if a[0] not in ("metadata", "backend_config", "calls", "to_apply", "frontend_attributes")),
            tuple(fingerprint(module, c, _depth + 1) for c in i.called),
        )
        for i in found.instructions
    )


def sort_kernels(module: Module) -> dict[str, str]:
    """What the first kernel of each sort is called: after the sort itself, or the one within a fusion."""
    found = {}
    for computation in module.computations:
        for i in computation.instructions:
            body = module.by_name.get(i.called[0]) if i.opcode == "fusion" and i.called else None
            if i.opcode == "sort" or (body is not None and body.root.opcode == "sort"):
                found[i.name] = kernel_name(body.root.name if body is not None else i.name)
    return found
