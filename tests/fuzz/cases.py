"""Cases by number: a fixture, one to three faults in its capture or dump or something harmless, and the judgment of what comes out."""

from __future__ import annotations

import random
import shutil
import sqlite3
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz import captures, dumps
from tests.fuzz.judge import Outcome, outcome
from tests.fuzz.rooms import ROOMS, room_fault

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
SMALL = ("moe", "int8", "torch_mlp", "train", "threads", "sharded_nocb", "graph_2025", "shapes")
"""Fixtures of at most about 300 kernels."""
KINDS = {"captures": ("capture", "capture", "bytes", "harmless"), "dumps": ("dump", "dump", "dump", "harmless")}
"""What is done to captures, and to dumps; something harmless now and then."""
ALL = "all"


@dataclass(frozen=True, slots=True)
class Case:
    """One case: what was done to which fixture, and what is wrong with what came out ("" for nothing)."""

    number: int
    fixture: str
    done: tuple[str, ...]
    wrong: str
    message: str


def run_case(number: int, folder: Path, seed: int = 0, of: str = ALL) -> Case:
    """Builds a case in a folder, which is left for whoever wants to look, and judges it. The same number and seed give the same case.

    `of` is a key of KINDS, or ALL. Beside the report, one other command is given each case.
    """
    rng = random.Random(f"{seed}:{number}:{of}")
    kinds = KINDS[of] if of != ALL else tuple(kind for some in KINDS.values() for kind in some)
    there = [name for name in SMALL if (FIXTURES / name / "capture.sqlite").exists()]
    if of == "dumps":
        there = [name for name in there if (FIXTURES / name / "xla_dump").is_dir()]
    fixture, kind = rng.choice(there), rng.choice(kinds)
    source = FIXTURES / fixture
    capture, dump = folder / "capture.sqlite", folder / "xla_dump"
    shutil.copyfile(source / "capture.sqlite", capture)
    has_dump = (source / "xla_dump").is_dir()
    if has_dump:
        shutil.copytree(source / "xla_dump", dump, copy_function=shutil.copyfile)
    done = tuple(_do(kind if has_dump or kind != "dump" else "capture", capture, dump, rng))
    found = outcome(capture, dump if has_dump else None)
    wrong = found.wrong
    if kind == "harmless" and not wrong:
        wrong = _difference(_untouched(fixture), found)
    wrong = wrong or room_fault(rng.choice(ROOMS), source / "capture.sqlite", capture, dump if has_dump else None, folder / "out")
    return Case(number, fixture, done, wrong, found.message)


def _do(kind: str, capture: Path, dump: Path, rng: random.Random) -> list[str]:
    if kind == "dump":
        return [dumps.damage(dump, rng) for _ in range(rng.randint(1, 3))]
    if kind == "bytes":
        data = bytearray(capture.read_bytes())
        what = captures.damaged_bytes(data, rng)
        capture.write_bytes(data)
        return [what]
    faults = captures.HARMLESS if kind == "harmless" else captures.FAULTS
    with sqlite3.connect(capture) as database:
        done = [_tried(rng.choice(faults), database, rng) for _ in range(rng.randint(1, 3))]
    database.close()
    if kind == "harmless" and dump.is_dir():
        done.append(dumps.add_stranger(dump))
    return done


def _tried(fault: captures.Fault, database: sqlite3.Connection, rng: random.Random) -> str:
    try:
        return fault(database, rng)
    except (sqlite3.Error, OverflowError) as error:  # what an earlier fault made impossible
        return f"{fault.__name__} refused: {error}"


@cache
def _untouched(fixture: str) -> Outcome:
    dump = FIXTURES / fixture / "xla_dump"
    return outcome(FIXTURES / fixture / "capture.sqlite", dump if dump.is_dir() else None)


def _difference(one: Outcome, other: Outcome) -> str:
    if one.figures is None or other.figures is None:
        return "" if one.message == other.message else f"was {one.message or 'a report'}, is {other.message or 'a report'}"
    return next(
        (
            f"{key} changed: {one.figures[key]} became {other.figures[key]}"[:600]
            for key in one.figures
            if one.figures[key] != other.figures[key]
        ),
        "",
    )
