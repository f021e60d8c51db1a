"""What becomes of many HLO texts: `python -m tests.xla_texts TEXTS.jsonl[.xz] [--show N]`. Not part of the tests.

A line of the input is a JSON object with `text`, and `source` and `line` of where it comes from. Each text is read, costed and classed;
its verdict is `read`, `refused` (no text of XLA's printer, says the parser) or the stage and the error that it failed with. What is read
is printed and read again, which must give the same module. Ends with 1 where anything failed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlo_mapping.errors import HloError, HloSyntaxError
from hlo_mapping.facts import module_facts
from hlo_mapping.ir import Module
from hlo_mapping.text.parser import parse_module
from hlo_mapping.text.printer import print_module


def verdict(text: str) -> tuple[str, str]:
    """The verdict on one text, and the message that belongs to it."""
    try:
        module = parse_module(text)
    except HloSyntaxError as error:
        return "refused", error.message
    except Exception as error:  # what fails here is what this is for
        return f"text: {type(error).__name__}", str(error)
    for stage, work in (("text printed again", _same_again), ("costs", _facts)):
        try:
            work(module)
        except HloError as error:
            return f"{stage}: refused", error.brief
        except Exception as error:
            return f"{stage}: {type(error).__name__}", str(error)
    return "read", ""


def _same_again(module: Module) -> None:
    if parse_module(print_module(module)) != module:
        raise ValueError("another module")


def _facts(module: Module) -> None:
    module_facts(module, 0)


def texts(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, packed by xz or not."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as lines:
        yield from map(json.loads, lines)


def main() -> int:
    """Prints how many texts had each verdict, and the first of each failure."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("texts", type=Path)
    arguments.add_argument("--show", type=int, default=5, help="texts shown of each verdict")
    options = arguments.parse_args()
    counts, shown = Counter[str](), defaultdict[str, list[str]](list)
    for entry in texts(options.texts):
        kind, message = verdict(entry["text"])
        counts[kind] += 1
        if kind != "read" and len(shown[kind]) < options.show:
            shown[kind].append(f"{entry.get('source', '')}:{entry.get('line', '')}: {message}")
    for kind, number in counts.most_common():
        print(f"{number:6,} {kind}", *shown[kind], sep="\n       ")
    return 0 if set(counts) <= {"read"} else 1


if __name__ == "__main__":
    sys.exit(main())
