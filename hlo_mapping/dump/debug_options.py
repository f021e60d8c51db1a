"""The XLA flags that a program was compiled with, where they differ from the defaults."""

from __future__ import annotations

from hlo_mapping.dump import files
from hlo_mapping.dump.program import Program
from hlo_mapping.quoting import unquote


def read_debug_options(program: Program) -> dict[str, tuple[str, ...]]:
    """The values of each flag by name, one for each line that sets it; {} where the dump has no debug_options file (before mid 2025)."""
    path = program.files.get(files.DEBUG_OPTIONS)
    return parse_debug_options(files.read_text(path)) if path is not None else {}


def parse_debug_options(text: str) -> dict[str, tuple[str, ...]]:
    """The flags in the text of a debug_options file, a `name: value` to a line; flags that repeat have several values."""
    options: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(":")
        if separator and not name.startswith(" "):
            options[name.strip()] = (*options.get(name.strip(), ()), unquote(value.strip()))
    return options
