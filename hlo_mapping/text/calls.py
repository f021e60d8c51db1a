"""How a module's computations call each other: what is checked before anything walks along the calls."""

from __future__ import annotations

from collections.abc import Mapping

from hlo_mapping.errors import HloError
from hlo_mapping.ir import Computation

DEEPEST = 200
"""Levels of calls that are followed. XLA's own programs nest a dozen: a fusion in a branch in a loop in a call."""
INLINED = frozenset({"fusion", "reduce", "scatter", "sort", "map", "reduce-window", "select-and-scatter", "all-reduce", "reduce-scatter"})
"""Opcodes whose computations run within the instruction's own launch."""
MOST_STEPS = 10_000_000
"""Instructions, each counted as often as it is called, that one execution may run (a loop's body once): far more than any compiles."""


def check_depth(by_name: Mapping[str, Computation], source: str) -> None:
    """Raise HloError where computations call each other in a circle, nest too deeply, or multiply beyond what a program can run.

    `source` names the text in the error.
    """
    depths = dict[str, int]()
    steps = dict[str, int]()
    for name in _callees_first(by_name, source):
        called = {callee for i in by_name[name].instructions for callee in i.called}
        depths[name] = 1 + max((depths[callee] for callee in called), default=0)
        steps[name] = sum(1 + (0 if i.opcode in INLINED else sum(steps[callee] for callee in i.called)) for i in by_name[name].instructions)
        if depths[name] > DEEPEST:
            raise _impossible(source, name, f"calls others more than {DEEPEST} deep")
        if steps[name] > MOST_STEPS:
            raise _impossible(source, name, f"runs more than {MOST_STEPS:,} instructions through its calls")


def expanded_sizes(by_name: Mapping[str, Computation]) -> dict[str, int]:
    """Instructions of each computation with all that it calls opened in place, each call anew: may be astronomical."""
    sizes = dict[str, int]()
    for name in _callees_first(by_name):
        sizes[name] = sum(1 + sum(sizes[callee] for callee in i.called) for i in by_name[name].instructions)
    return sizes


def _callees_first(by_name: Mapping[str, Computation], source: str = "<module>") -> list[str]:
    """The computations, each after all that it calls. HloError where they call each other in a circle."""
    ordered, open_now = dict[str, None](), set[str]()
    for start in by_name:
        stack = [(start, False)]
        while stack:
            name, is_done = stack.pop()
            if is_done:
                open_now.discard(name)
                ordered[name] = None
            elif name in open_now:
                raise _impossible(source, name, "calls itself through others")
            elif name not in ordered:
                open_now.add(name)
                stack.append((name, True))
                callees = dict.fromkeys(callee for i in by_name[name].instructions for callee in i.called)
                stack.extend((callee, False) for callee in callees if callee not in ordered)
    return list(ordered)


def _impossible(source: str, name: str, what: str) -> HloError:
    return HloError(f"{source}: computation {name} {what}, as no compiled program does", "Was the file changed? Make the dump again.")
