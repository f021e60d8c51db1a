"""Whether annotations and the dump speak of the same modules and instructions."""

from __future__ import annotations

from hlo_mapping.ir import Module


def same_module(dumped: str, annotated: str) -> bool:
    """Whether a dumped module can be the annotated one: equal names, or one cut short by the other's length limit."""
    return (
        dumped == annotated or (len(annotated) > 40 and dumped.startswith(annotated)) or (len(dumped) > 40 and annotated.startswith(dumped))
    )


def holds(module: Module, outer: str, inner: str) -> bool:
    """Whether an instruction stands in a computation that another one runs, directly or further down."""
    found = module.instruction(outer)
    called = list(found.called) if found is not None else []
    home = module.home.get(inner)
    seen: set[str] = set()
    while called:
        name = called.pop()
        if name == home:
            return True
        if name not in seen and (computation := module.by_name.get(name)) is not None:
            seen.add(name)
            called += [c for i in computation.instructions for c in i.called]
    return False
